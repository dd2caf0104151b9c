package proc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// MarkVar is the environment variable that carries a run's mark.
const MarkVar = "SIGNALBOX_RUN"

const (
	// killWait bounds the time from SIGKILL to proof. A process that lives longer
	// hangs in the kernel and cannot be killed.
	killWait = 5 * time.Second
	// hangUpWait is how long a terminal's programs may take to end on SIGHUP.
	hangUpWait = time.Second
	// drainWait bounds the reading of output once no process of the run is alive;
	// what is in the pipes by then arrives at once.
	drainWait = 2 * time.Second
	// lookEvery is the default interval between two scans for the run's
	// descendants.
	lookEvery = time.Second
)

// Spec describes what to start.
type Spec struct {
	Argv   []string      // program and arguments; never given to a shell
	Dir    string        // working directory
	Env    []string      // the complete environment, "K=V"; Start adds MarkVar
	Stdin  string        // passed as a file, so no goroutine has to feed it; empty is end of file
	Input  *os.File      // input instead of Stdin; Start closes it
	Stdout io.Writer     // written from one goroutine; nil discards
	Stderr io.Writer     // likewise, from another goroutine
	Mark   string        // unique per run, without control characters
	Grace  time.Duration // from SIGTERM to SIGKILL; 0 kills at once

	// Look is the interval between two scans for its descendants; 0 is a second.
	Look time.Duration
	// Bound sends the program SIGTERM when this process dies, even by SIGKILL, on
	// Linux. The program must end its own child processes.
	Bound bool
	// LeaveOrphans leaves orphans to the process that the system makes their
	// parent.
	LeaveOrphans bool

	// Box, if set, starts the program and knows its living processes. Its owner
	// frees it after End.
	Box Box

	// TTY gives the program a terminal of this size for input and outputs; the
	// output goes to Stdout, and Stdin and Stderr are not used.
	TTY *Size
}

// Ident identifies a started program beyond the life of the process that
// started it: PIDs are reused, but not with the same start time.
type Ident struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`          // start time in the platform's own unit
	Boot  string `json:"boot,omitempty"` // the boot that Start refers to
	Mark  string `json:"mark,omitempty"`
}

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // name of that signal
	// Held reports that a process that is not known to belong to the run keeps an
	// output open: what it prints from now on is lost.
	Held bool
}

// String describes the exit for people.
func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// UnkillableError is returned if processes of a run are still alive after
// SIGKILL and killWait.
type UnkillableError struct{ PIDs []int }

func (e *UnkillableError) Error() string {
	return fmt.Sprintf("processes %v live on after SIGKILL", e.PIDs)
}

// Process is a started program with all its descendants.
type Process struct {
	cmd   *exec.Cmd
	spec  Spec
	id    Ident
	kin   *kin
	boxed bool // its box knows the living processes, so that no scan is needed
	pipes []pipe
	tty   *os.File // our side of its terminal, if it has one; also in pipes

	exited  chan struct{} // the program itself has been reaped
	drained chan struct{} // both outputs have ended
	reading atomic.Int32  // number of outputs that have not ended

	end     sync.Once
	proven  atomic.Bool   // no process of the run is alive
	hurry   chan struct{} // closed when there is no more grace
	hurried sync.Once
	ended   chan struct{} // closed when the watch may stop
	exit    Exit
	exitErr error
}

// Start starts the program. After an error, nothing runs.
func Start(spec Spec) (*Process, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("no program to start")
	}
	if !spec.LeaveOrphans {
		becomeSubreaper()
	}
	var err error
	if spec.Box, err = systemBox(spec.Box); err != nil {
		return nil, err
	}
	p := &Process{
		spec: spec, exited: make(chan struct{}), drained: make(chan struct{}), hurry: make(chan struct{}), ended: make(chan struct{}),
	}
	p.cmd = exec.Command(spec.Argv[0], spec.Argv[1:]...)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = append(append([]string{}, spec.Env...), MarkVar+"="+spec.Mark)
	p.cmd.SysProcAttr = ownSession()
	wire := p.wirePipes
	if spec.TTY != nil {
		wire = p.wireTTY
	}
	if spec.Box != nil { // it is still empty, so the signal is sent at once
		_, p.boxed = spec.Box.Alive()
	}
	theirs, err := wire()
	start := p.start
	if p.boxed { // the box knows its processes; because of the stamp, runs without a box know that these are not theirs
		start = func() error { return spec.Box.Start(p.cmd) }
	}
	var s stamp
	if err == nil {
		p.id, s, err = startStamped(p.cmd, start)
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		for _, pipe := range p.pipes {
			pipe.f.Close()
		}
		freeBox(spec.Box)
		return nil, err
	}
	p.id.Mark = spec.Mark
	p.kin = newKin(p.id)
	p.kin.stamp, p.kin.keeps = s, !spec.LeaveOrphans && !p.boxed
	if spec.Box != nil {
		p.kin.spare = spec.Box.Wraps()
	}
	p.drain()
	go p.wait()
	if !p.boxed {
		go p.watch()
	}
	return p, nil
}

// start starts a program whose living processes no box knows.
func (p *Process) start() error {
	switch {
	case p.spec.Box != nil:
		return p.spec.Box.Start(p.cmd)
	case p.spec.Bound:
		return startBound(p.cmd)
	default:
		return p.cmd.Start()
	}
}

// pipe is an output of the program and its destination.
type pipe struct {
	f  *os.File
	to io.Writer
}

// wirePipes gives the program its input as a file, and pipes for its outputs.
// It returns the files that only the program needs.
func (p *Process) wirePipes() (theirs []*os.File, err error) {
	stdin := p.spec.Input
	if stdin == nil {
		if stdin, err = TextFile(p.spec.Stdin); err != nil {
			return nil, err
		}
	}
	theirs = append(theirs, stdin)
	for _, to := range []io.Writer{p.spec.Stdout, p.spec.Stderr} {
		r, w, err := pipeOut()
		if err != nil {
			return theirs, err
		}
		theirs, p.pipes = append(theirs, w), append(p.pipes, pipe{r, to})
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	return theirs, nil
}

// Ident identifies the program for a later Clear.
func (p *Process) Ident() Ident { return p.id }

// Exited is closed when the program itself has ended; its child processes may
// live until End.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Drained is closed when both outputs have ended: no process that could write
// to them is alive.
func (p *Process) Drained() <-chan struct{} { return p.drained }

func (p *Process) closePipes() {
	for _, pipe := range p.pipes {
		pipe.f.Close()
	}
	<-p.drained
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // the result is read from ProcessState
	close(p.exited)
}

// drain reads the outputs until both have ended.
func (p *Process) drain() {
	p.reading.Store(int32(len(p.pipes)))
	for _, pipe := range p.pipes {
		to := pipe.to
		if to == nil {
			to = io.Discard
		}
		go func() {
			buf := buffers.Get().(*[]byte)
			_, _ = io.CopyBuffer(writerOnly{to}, readerOnly{pipe.f}, *buf)
			buffers.Put(buf)
			if p.reading.Add(-1) == 0 {
				close(p.drained)
			}
		}()
	}
}

// buffers are for reading outputs.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// watch scans the descendants periodically, so that one that leaves the
// session and later loses its parent is still known.
func (p *Process) watch() {
	every := cmp.Or(p.spec.Look, lookEvery)
	t := time.Tick(every)
	for {
		select {
		case <-p.ended:
			return
		case <-t:
			p.kin.look()
			p.kin.reap()
		}
	}
}

// readerOnly and writerOnly hide the optimizations of io.Copy, which would
// splice between files and so keep a pipe open that Close should wake.
type readerOnly struct{ io.Reader }
type writerOnly struct{ io.Writer }

func exitOf(st *os.ProcessState) Exit {
	if st == nil { // another process collected it: the exit status is lost
		return Exit{Code: -1}
	}
	ws, ok := st.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Exit{Code: -1, Signal: ws.Signal().String()}
	}
	return Exit{Code: st.ExitCode()}
}

// Box is a place for one run that the system isolates, such as a control
// group; *confine.Box is one.
type Box interface {
	Start(cmd *exec.Cmd) error
	// Alive lists its living processes; ok is false if the box cannot know.
	Alive() (pids []int, ok bool)
	// Signal sends to all its living processes. No fork escapes SIGKILL.
	Signal(sig syscall.Signal) error
	// Wraps reports whether the program that Start starts only holds the sandbox
	// of the run: it gets no signal but SIGKILL.
	Wraps() bool
}

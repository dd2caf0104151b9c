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
	// killWait bounds the time from SIGKILL to proof. A process that lives
	// longer hangs in the kernel and cannot be killed by anyone.
	killWait = 5 * time.Second
	// hangUpWait bounds what a terminal's programs get for SIGHUP alone.
	hangUpWait = time.Second
	// drainWait bounds the reading of output once nothing of the run lives;
	// what is in the pipes by then arrives at once.
	drainWait = 2 * time.Second
	// lookEvery is the time between two looks at the run's descendants.
	lookEvery = time.Second
)

// Spec says what to start.
type Spec struct {
	Argv   []string      // program and arguments; never given to a shell
	Dir    string        // working directory
	Env    []string      // the whole environment, "K=V"; Start adds MarkVar
	Stdin  string        // given as a file, so nobody has to feed it; empty is end of file
	Input  *os.File      // its input instead of Stdin; Start closes it
	Stdout io.Writer     // written from one goroutine; nil discards
	Stderr io.Writer     // likewise, from another goroutine
	Mark   string        // unique per run, without control characters
	Grace  time.Duration // from SIGTERM to SIGKILL; 0 kills at once

	// Look is the time between two looks at what it started; 0 is a second.
	Look time.Duration
	// Bound has the program get SIGTERM when this process dies, be it by
	// SIGKILL, on Linux. What it started itself is its own to end.
	Bound bool
	// LeaveOrphans leaves orphans to whom the system hands them.
	LeaveOrphans bool

	// Box, if set, starts the program and knows what lives of it. Its owner
	// frees it after End.
	Box Box

	// TTY gives the program a terminal of that size for its input and outputs;
	// what it prints there goes to Stdout, and Stdin and Stderr are not used.
	TTY *Size
}

// Ident names a started program beyond the life of the process that started
// it: pids are used again, a pid with its start time is not.
type Ident struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`          // start time in the platform's own unit
	Boot  string `json:"boot,omitempty"` // identity of the boot that Start counts from
	Mark  string `json:"mark,omitempty"`
}

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit status; -1 when a signal ended it
	Signal string // name of that signal
	// Held tells that somebody keeps an output open who is not known to be of the
	// run: what that one prints from now on is lost.
	Held bool
}

// String says it in words.
func (e Exit) String() string {
	if e.Signal != "" {
		return "ended by signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// UnkillableError is returned when processes of a run still live after
// SIGKILL and killWait.
type UnkillableError struct{ PIDs []int }

func (e *UnkillableError) Error() string {
	return fmt.Sprintf("processes %v live on after SIGKILL", e.PIDs)
}

// Process is a started program with all it started.
type Process struct {
	cmd   *exec.Cmd
	spec  Spec
	id    Ident
	kin   *kin
	boxed bool // its box knows what lives, so that nobody looks at all processes
	pipes []pipe
	tty   *os.File // our side of its terminal, if it has one; also in pipes

	exited  chan struct{} // the program itself has been reaped
	drained chan struct{} // both outputs are at their end
	reading atomic.Int32  // outputs that are not

	end     sync.Once
	proven  atomic.Bool   // nothing of the run lives
	hurry   chan struct{} // closed when there is no grace any more
	hurried sync.Once
	ended   chan struct{} // closed when the watch may stop
	exit    Exit
	exitErr error
}

// Start starts the program. An error means that nothing runs.
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
	if spec.Box != nil { // it is empty yet, so it is told at once
		_, p.boxed = spec.Box.Alive()
	}
	theirs, err := wire()
	start := p.start
	if p.boxed { // which knows its own; by the stamp runs without a box know that they are not theirs
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

// start starts the program where no box knows what lives of it.
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

// pipe is an output of the program, and where it goes.
type pipe struct {
	f  *os.File
	to io.Writer
}

// wirePipes gives the program its input as a file, and pipes for its outputs.
// It returns the files that are the program's alone.
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

// Ident names the program for a later Clear.
func (p *Process) Ident() Ident { return p.id }

// Exited is closed when the program itself has ended; what it started may
// live on until End.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Drained is closed when both its outputs are at their end: nobody who could
// write to them lives.
func (p *Process) Drained() <-chan struct{} { return p.drained }

func (p *Process) closePipes() {
	for _, pipe := range p.pipes {
		pipe.f.Close()
	}
	<-p.drained
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // the outcome is read from ProcessState
	close(p.exited)
}

// drain reads the outputs until both are at their end.
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

// buffers are those that outputs are read into.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// watch looks at the descendants from time to time, so that one that leaves
// the session and loses its parent later is still known.
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

// readerOnly and writerOnly hide the shortcuts of io.Copy, which would splice
// between files and so keep a pipe open that Close should wake.
type readerOnly struct{ io.Reader }
type writerOnly struct{ io.Writer }

func exitOf(st *os.ProcessState) Exit {
	if st == nil { // somebody else collected it: how it ended is lost
		return Exit{Code: -1}
	}
	ws, ok := st.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Exit{Code: -1, Signal: ws.Signal().String()}
	}
	return Exit{Code: st.ExitCode()}
}

// Box is a place for one run that the system keeps apart, such as a control
// group; *confine.Box is one.
type Box interface {
	Start(cmd *exec.Cmd) error
	// Alive lists what lives in it; ok is false where the box cannot know.
	Alive() (pids []int, ok bool)
	// Signal sends to all that lives in it. No fork escapes SIGKILL.
	Signal(sig syscall.Signal) error
	// Wraps tells that the program which Start starts only holds the sandbox
	// of the run: it is sent nothing but SIGKILL.
	Wraps() bool
}

package proc

import (
	"os"
	"slices"
	"syscall"
	"time"
)

// Alive lists the living processes of the run.
func (p *Process) Alive() []int {
	if p.boxed {
		if p.proven.Load() {
			return nil // by now the box may be used by another run
		}
		if pids, ok := p.spec.Box.Alive(); ok {
			return pids
		}
	}
	return p.kin.alive()
}

// End is EndWithin the grace of its Spec.
func (p *Process) End() (Exit, error) { return p.EndWithin(p.spec.Grace) }

// Kill is EndWithin 0: SIGKILL at once. It is for a run that has timed out, and
// for processes that an ended program left behind.
func (p *Process) Kill() (Exit, error) { return p.EndWithin(0) }

// EndWithin ends all living processes. It sends SIGTERM first (for a terminal
// SIGHUP, as when a user closes it, and then SIGTERM) and SIGKILL after the
// grace. It returns how the program itself ended, once no process of the run is
// alive and its output has been read.
//
// The error is an *UnkillableError if that failed. Later calls wait for the
// first and return the same; a call with a grace of 0 cuts the grace of an
// earlier call short.
func (p *Process) EndWithin(grace time.Duration) (Exit, error) {
	if grace <= 0 {
		p.hurried.Do(func() { close(p.hurry) })
	}
	p.end.Do(func() { p.exitErr = p.endAll(grace) })
	return p.exit, p.exitErr
}

func (p *Process) endAll(grace time.Duration) error {
	e := p.ending()
	if p.tty != nil {
		e.hangUp(min(grace, hangUpWait))
	}
	err := e.end(grace)
	close(p.ended)
	if err != nil {
		p.exit = Exit{Code: -1}
		p.closePipes()
		return err
	}
	<-p.exited
	p.exit = exitOf(p.cmd.ProcessState)
	if !p.boxed {
		p.kin.reap() // a box collects its own
	}
	p.exit.Held, err = p.drainRest()
	p.proven.Store(err == nil)
	if err == nil {
		forgetOwn(p.id)
		freeBox(p.spec.Box)
	}
	p.closePipes()
	return err
}

// ending ends the processes of a run, however they are identified.
type ending struct {
	alive  func() []int
	signal func(syscall.Signal)
	over   bool            // the program has ended: usually no process is left to be signalled
	hurry  <-chan struct{} // closed when there is no more grace
	pause  time.Duration   // before the second check
}

func (k *kin) ending() ending {
	return ending{alive: k.alive, signal: k.signal, pause: time.Millisecond}
}

func (p *Process) ending() ending {
	e := p.kin.ending()
	if p.boxed {
		e = ending{alive: p.Alive, signal: p.signalBox, pause: 100 * time.Microsecond}
	}
	e.hurry = p.hurry
	select {
	case <-p.exited:
		e.over = true
	default:
	}
	return e
}

// signalBox falls back to the visible processes if the box fails.
func (p *Process) signalBox(sig syscall.Signal) {
	if p.spec.Box.Signal(sig) != nil {
		p.kin.signal(sig)
	}
}

// end sends signals until no process is alive: SIGTERM, then SIGKILL after
// grace.
func (e ending) end(grace time.Duration) error {
	if e.over && len(e.alive()) == 0 {
		return nil
	}
	if grace > 0 {
		e.signal(syscall.SIGTERM)
		e.signal(contSignal) // a stopped process handles the signal only after it continues
		if e.waitDead(grace, e.hurry, func() {}) {
			return nil
		}
	}
	if e.waitDead(killWait, nil, func() { e.signal(syscall.SIGKILL) }) {
		return nil
	}
	return &UnkillableError{PIDs: e.alive()}
}

// hangUp does what closing a terminal does to its processes.
func (e ending) hangUp(wait time.Duration) {
	if wait > 0 {
		e.signal(syscall.SIGHUP)
		e.signal(contSignal)
		e.waitDead(wait, e.hurry, func() {})
	}
}

// waitDead checks until no process is alive, d is over or hurry is closed. It
// calls again before each check.
func (e ending) waitDead(d time.Duration, hurry <-chan struct{}, again func()) bool {
	deadline := time.Now().Add(d)
	for pause := e.pause; ; pause = min(2*pause, 50*time.Millisecond) {
		again()
		if len(e.alive()) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		t := time.NewTimer(min(pause, time.Until(deadline)+time.Millisecond))
		select {
		case <-t.C:
		case <-hurry:
			t.Stop()
			return false
		}
	}
}

// ClearMarks ends, by SIGKILL at once, the living processes of runs that
// another process started and of which only the marks are known. It returns
// those that could not be killed, by mark. Scanning all processes costs the
// same for one run as for a thousand, so one scan searches for all marks.
func ClearMarks(marks []string) map[string][]int {
	if len(marks) == 0 {
		return nil
	}
	c := clearing{marks: map[string]bool{}, known: map[life]string{}}
	for _, m := range marks {
		c.marks[m] = m != ""
	}
	var left map[string][]int
	e := ending{
		alive: func() (pids []int) {
			left = map[string][]int{}
			for l, mark := range c.look() {
				pids, left[mark] = append(pids, l.pid), append(left[mark], l.pid)
			}
			return pids
		},
		signal: func(sig syscall.Signal) {
			for l := range c.look() {
				signalOne(entry{pid: l.pid, start: l.start}, sig)
			}
		},
		over:  true, // usually no process is left, and one check shows that
		pause: time.Millisecond,
	}
	if e.end(0) == nil {
		return nil
	}
	for _, pids := range left {
		slices.Sort(pids)
	}
	return left
}

// life identifies a process, even if its PID is reused later.
type life struct {
	pid   int
	start uint64
}

// clearing is the marks that are searched for, and the processes found.
type clearing struct {
	marks map[string]bool
	known map[life]string // mark of each process ever seen
}

// look returns the living processes of the runs, with their marks.
func (c *clearing) look() map[life]string {
	all := seen()
	of := map[int]string{}
	for _, e := range all {
		mark := c.known[life{e.pid, e.start}]
		if mark == "" && !e.zombie && e.pid > 1 && e.pid != os.Getpid() {
			mark = markAmong(e.pid, func(m string) bool { return c.marks[m] })
		}
		if mark != "" {
			of[e.pid] = mark
		}
	}
	for grew := len(of) > 0; grew; {
		grew = false
		for _, e := range all {
			if of[e.pid] == "" && of[e.ppid] != "" && e.pid != os.Getpid() {
				of[e.pid], grew = of[e.ppid], true
			}
		}
	}
	alive := map[life]string{}
	for _, e := range all {
		if mark := of[e.pid]; mark != "" {
			c.known[life{e.pid, e.start}] = mark
			if !e.zombie {
				alive[life{e.pid, e.start}] = mark
			}
		}
	}
	return alive
}

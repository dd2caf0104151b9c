package mcp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const (
	// closeGrace is what a program gets to end by itself once its stdin is
	// closed, termGrace what it gets after SIGTERM.
	closeGrace = 2 * time.Second
	termGrace  = 3 * time.Second
	// lastWords bounds the wait for output of a program that has ended, if
	// something it started holds it open.
	lastWords = 500 * time.Millisecond
	// lookEvery is the time between two looks at what it started.
	lookEvery = 15 * time.Second
)

// child is a server that is a program.
type child struct {
	*link
	proc   *proc.Process
	stdin  *os.File
	stderr *tail
	once   sync.Once
	ended  chan struct{} // nothing of it lives, or cannot be killed
	endErr error
}

// startChild starts the program; the child is a connection to it.
func startChild(s toolconf.Server, t *tap, said *budget) (*child, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{stdin: ours, stderr: newTail(t, said), ended: make(chan struct{})}
	c.link = newLink(t, func() { c.stdin.Close() })
	out := &gather{tap: t, deliver: c.deliver}
	c.proc, err = proc.Start(proc.Spec{
		Argv: append([]string{s.Command}, s.Args...), Dir: s.Cwd, Env: childEnv(os.Environ(), s.Env),
		Input: theirs, Stdout: out, Stderr: c.stderr,
		Mark: "mcp-" + rand.Text(), Grace: termGrace, Look: lookEvery, Bound: true, LeaveOrphans: true,
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("the program %q could not be started: %w", s.Command, bare(err))
	}
	go c.pump(func(data []byte) error {
		_, err := c.stdin.Write(append(data, '\n'))
		return err
	})
	go c.watch()
	return c, nil
}

// bare leaves the path out of an error where it only says the same again.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// watch closes the connection when the program has ended.
func (c *child) watch() {
	<-c.proc.Exited()
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-c.proc.Drained():
	case <-t.C:
	}
	c.fail(errEnded)
}

var errEnded = errors.New("the program has ended")

// end ends the program and all it started, and returns when nothing of it
// lives.
func (c *child) end() error {
	c.once.Do(func() {
		c.fail(errLinkClosed) // closes stdin
		deadline := time.Now().Add(closeGrace)
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-c.proc.Exited():
			for len(c.proc.Alive()) > 0 && time.Now().Before(deadline) { // its children, by themselves
				time.Sleep(20 * time.Millisecond)
			}
		case <-t.C:
		}
		_, c.endErr = c.proc.End()
		close(c.ended)
	})
	<-c.ended
	return c.endErr
}

// reason says why the program is of no use: how it ended, and what it said.
func (c *child) reason(err error) error {
	exit, words := "", c.stderr.last()
	select {
	case <-c.ended:
		e, _ := c.proc.End() // answers what it did
		exit = ", " + e.String()
	default:
	}
	if errors.Is(err, errEnded) {
		err = fmt.Errorf("the program has ended%s", exit)
	}
	if words != "" {
		err = fmt.Errorf("%w; it said: %s", err, words)
	}
	return err
}

// Package toolqueuetest makes calls of tool queues that a test can hold, watch
// and end: those of package toolqueue, and those of the stores that share them.
package toolqueuetest

import (
	"context"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Patience is how long a test waits for what must happen. It never passes in a
// good run.
const Patience = time.Minute

// Call is an Acquire in a goroutine of its own.
type Call struct {
	Waiting chan toolqueue.Waiting // what Waits was called with
	Cancel  context.CancelFunc     // takes it out of the line
	Permit  toolqueue.Permit       // these two once it has returned
	Err     error

	t        testing.TB
	patience time.Duration
	done     chan struct{} // closed when Acquire has returned
}

// Start begins an Acquire, with a bound on its wait where within is not 0, and
// returns once it waits or has returned.
func Start(t testing.TB, q *toolqueue.Queues, queue string, who toolqueue.Who, within time.Duration) *Call {
	t.Helper()
	return StartPatiently(t, q, queue, who, within, Patience)
}

// StartPatiently is Start with another patience: on the clock of a bubble a minute
// may well pass in a good run.
func StartPatiently(t testing.TB, q *toolqueue.Queues, queue string, who toolqueue.Who, within, patience time.Duration) *Call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Call{t: t, patience: patience, Cancel: cancel, Waiting: make(chan toolqueue.Waiting, 1), done: make(chan struct{})}
	begun := make(chan struct{}, 2)
	who.Waits = func(w toolqueue.Waiting) {
		c.Waiting <- w
		begun <- struct{}{}
	}
	go func() {
		defer close(c.done)
		if within == 0 {
			c.Permit, c.Err = q.Acquire(ctx, queue, who)
		} else {
			c.Permit, c.Err = q.AcquireWithin(ctx, queue, who, within)
		}
		begun <- struct{}{}
	}()
	<-begun
	t.Cleanup(func() {
		cancel()
		<-c.done
		c.Permit.Release()
	})
	return c
}

// Waits reports whether Acquire has not returned.
func (c *Call) Waits() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// End waits until Acquire returns.
func (c *Call) End() error {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(c.patience):
		c.t.Fatal("Acquire does not return")
	}
	return c.Err
}

// Has waits until the call has its slot.
func (c *Call) Has() toolqueue.Permit {
	c.t.Helper()
	if err := c.End(); err != nil {
		c.t.Fatalf("Acquire: %v", err)
	}
	return c.Permit
}

// Take is a call that has its slot at once, or waits for it.
func Take(t testing.TB, q *toolqueue.Queues, queue string, who toolqueue.Who) toolqueue.Permit {
	t.Helper()
	p, err := q.Acquire(context.Background(), queue, who)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return p
}

// Tool is a call of a tool by nobody in particular.
func Tool(name string) toolqueue.Who { return toolqueue.Who{Tool: name} }

// In is a call within a session.
func In(session, name string) toolqueue.Who { return toolqueue.Who{Session: session, Tool: name} }

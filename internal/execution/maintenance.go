package execution

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// StoreRetry is the pause after something that the store could not do.
const StoreRetry = 200 * time.Millisecond

// Maintenance does on one goroutine what events ask for, and what is due by time.
// The rounds are the backstop behind the events: nothing waits for them where an
// event was seen.
type Maintenance struct {
	Log *slog.Logger
	// Turn is called where the goroutine goes on after it has waited; nil: nothing is.
	Turn func()
	// Round does what is due and returns when the next one is.
	Round func(context.Context) time.Duration

	signal Signal
	now    atomic.Bool // a round is due before its time
	chores []*Chore
}

// Chore is done each time it is asked for; if it was asked for several times by
// then, once is enough. If it fails it is done again a little later.
type Chore struct {
	m         *Maintenance
	failed    string
	do        func(context.Context) error
	requested atomic.Bool
}

// Chore adds a chore; those that are asked for together are done in the order in
// which they were added. failed is logged with its error. It is called before Run.
func (m *Maintenance) Chore(failed string, do func(context.Context) error) *Chore {
	if m.signal == nil {
		m.signal = NewSignal()
	}
	c := &Chore{m: m, failed: failed, do: do}
	m.chores = append(m.chores, c)
	return c
}

// Ask has the chore done soon.
func (c *Chore) Request() {
	c.requested.Store(true)
	c.m.signal.Send()
}

// Early has the next round begin now.
func (m *Maintenance) RunNow() {
	m.now.Store(true)
	m.signal.Send()
}

// Run goes on until ctx ends. The first round begins after first.
func (m *Maintenance) Run(ctx context.Context, first time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-m.signal:
		case <-timer.C:
			due = true
		}
		m.turn()
		if ctx.Err() != nil {
			return
		}
		Taken(m.signal)
		for _, c := range m.chores {
			if c.requested.Swap(false) && m.LogError(ctx, c.failed+", trying again", c.do(ctx)) {
				c.Request()
				Sleep(ctx, StoreRetry)
				m.turn()
			}
		}
		if due = m.now.Swap(false) || Taken(timer.C) || due; due {
			timer.Reset(m.Round(ctx))
		}
	}
}

func (m *Maintenance) turn() {
	if m.Turn != nil {
		m.Turn()
	}
}

// Complain logs an error, unless ctx has ended, and reports whether it did.
func (m *Maintenance) LogError(ctx context.Context, what string, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	m.Log.Error(what, "error", err)
	return true
}

// Every remembers when something was done last.
type Every struct{ last time.Time }

// Due reports whether it is to be done again, for the first time at once.
func (e *Every) Due(now time.Time, every time.Duration) bool {
	if !e.last.IsZero() && now.Sub(e.last) < every {
		return false
	}
	e.last = now
	return true
}

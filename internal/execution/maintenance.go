package execution

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// StoreRetry is the delay before a failed store operation is retried.
const StoreRetry = 200 * time.Millisecond

// Maintenance runs, on one goroutine, chores on request and rounds by time. The rounds are
// a backstop: nothing waits for them if an event was seen.
type Maintenance struct {
	Log *slog.Logger
	// Turn is called when the goroutine resumes after waiting; may be nil.
	Turn func()
	// Round does what is due and returns the time until the next round.
	Round func(context.Context) time.Duration

	signal Signal
	now    atomic.Bool // a round was requested early
	chores []*Chore
}

// Chore runs when requested; requests coalesce. After an error it is retried.
type Chore struct {
	m         *Maintenance
	failed    string
	do        func(context.Context) error
	requested atomic.Bool
}

// Chore adds a chore; requested chores run in the order in which they were added. failed is
// logged with an error. Call it before Run.
func (m *Maintenance) Chore(failed string, do func(context.Context) error) *Chore {
	if m.signal == nil {
		m.signal = NewSignal()
	}
	c := &Chore{m: m, failed: failed, do: do}
	m.chores = append(m.chores, c)
	return c
}

// Request has the chore run soon.
func (c *Chore) Request() {
	c.requested.Store(true)
	c.m.signal.Send()
}

// RunNow starts the next round now.
func (m *Maintenance) RunNow() {
	m.now.Store(true)
	m.signal.Send()
}

// Run runs until ctx ends. The first round starts after first.
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

// LogError logs an error, unless ctx has ended, and reports whether it did.
func (m *Maintenance) LogError(ctx context.Context, what string, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	m.Log.Error(what, "error", err)
	return true
}

// Every remembers when something was last done.
type Every struct{ last time.Time }

// Due reports whether it is due again; the first call returns true.
func (e *Every) Due(now time.Time, every time.Duration) bool {
	if !e.last.IsZero() && now.Sub(e.last) < every {
		return false
	}
	e.last = now
	return true
}

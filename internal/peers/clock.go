package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// lookEvery is how often the server is asked for its time, lookAgain how
	// soon where that failed. All know of a clock that was set long before any
	// of them takes another for dead (Safe).
	lookEvery = 4 * time.Second
	lookAgain = time.Second
	// lookLimit bounds one look.
	lookLimit = 3 * time.Second
	// drift is by how much two clocks may go apart: 200 ppm is more than
	// quartz does.
	drift = 5000
	// step is from where on a server's clock is taken to have been set back:
	// by less than that time stands still instead.
	step = time.Second
)

// Clock is the time that all directors over a store go by: that of the
// store's server. It runs on by this process's own clock between two
// looks, never goes back by more than a step of that server's own clock, and
// is off by at most half of what a look took.
type Clock struct {
	store store.Shared
	own   func() time.Time // this process's clock
	look  atomic.Pointer[look]
	last  atomic.Int64 // what Now said last, in Unix nanoseconds
}

// look is what the server's clock said.
type look struct {
	at     time.Time // by this process's clock
	server time.Time
	off    time.Duration // by which it may be wrong
}

// then is the server's time by a look at an instant by our own clock.
func (l *look) then(own time.Time) time.Time { return l.server.Add(own.Sub(l.at)) }

// wrong is by how much that may be wrong.
func (l *look) wrong(own time.Time) time.Duration { return l.off + own.Sub(l.at)/drift }

// NewClock asks the server for its time, and goes on doing so until ctx ends.
// own is the clock by which time runs on in between, as Options.Monotonic; nil
// is time.Now.
func NewClock(ctx context.Context, s store.Shared, own func() time.Time) (*Clock, error) {
	if own == nil {
		own = time.Now
	}
	c := &Clock{store: s, own: own}
	l, err := c.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("the time of the store's server: %w", err)
	}
	c.look.Store(l)
	go c.run(ctx)
	return c, nil
}

func (c *Clock) run(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := lookEvery
		if l, err := c.ask(ctx); err == nil {
			c.take(l)
		} else {
			next = lookAgain // time runs on by our own clock
		}
		timer.Reset(next)
	}
}

// ask looks once. The server said its time at some moment between question and
// answer.
func (c *Clock) ask(ctx context.Context) (*look, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	begun := c.own()
	server, err := c.store.Time(ctx)
	if err != nil {
		return nil, err
	}
	half := c.own().Sub(begun) / 2
	return &look{at: begun.Add(half), server: server, off: half}, nil
}

// take goes by a look if it tells more than the one before: its answer came
// sooner, or it shows that the server's clock was set.
func (c *Clock) take(l *look) {
	before, own := c.look.Load(), c.own()
	apart := l.then(own).Sub(before.then(own)).Abs()
	if l.wrong(own) > before.wrong(own) && apart <= l.wrong(own)+before.wrong(own) {
		return
	}
	c.look.Store(l)
}

// Now is the server's time.
func (c *Clock) Now() time.Time {
	now := c.look.Load().then(c.own()).UnixNano()
	for {
		last := c.last.Load()
		if now < last && last-now < int64(step) {
			return time.Unix(0, last).UTC()
		}
		if c.last.CompareAndSwap(last, now) {
			return time.Unix(0, now).UTC()
		}
	}
}

package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// readInterval is how often the server's time is read, readRetry how soon after a
	// failure. All directors notice that its clock was set long before any takes another
	// for dead (Safe).
	readInterval = 4 * time.Second
	readRetry    = time.Second
	readTimeout  = 3 * time.Second
	// drift is the assumed drift between two clocks, as a divisor: 200 ppm is more than
	// quartz clocks drift.
	drift = 5000
	// step is the smallest setback of the server's clock that Now follows; for less, Now stands still
	// instead.
	step = time.Second
)

// Clock is the time shared by all directors over a store: that of the store's server.
// Between two readings it advances by this process's own clock. It never goes back, except
// after the server's clock was set back by a step or more, and is off by at most half the
// time that a reading took, plus drift.
type Clock struct {
	store   store.Shared
	own     func() time.Time // this process's clock
	reading atomic.Pointer[timeReading]
	last    atomic.Int64 // last result of Now, in Unix nanoseconds
}

// timeReading is one reading of the server's clock.
type timeReading struct {
	at        time.Time // by this process's clock
	server    time.Time
	uncertain time.Duration // maximum error
}

// serverTime is the server's time at an instant of our own clock.
func (l *timeReading) serverTime(own time.Time) time.Time { return l.server.Add(own.Sub(l.at)) }

// uncertainty is the maximum error of serverTime.
func (l *timeReading) uncertainty(own time.Time) time.Duration {
	return l.uncertain + own.Sub(l.at)/drift
}

// NewClock reads the server's time, now and repeatedly until ctx ends. own is the clock between readings,
// like Options.Monotonic; nil is time.Now.
func NewClock(ctx context.Context, s store.Shared, own func() time.Time) (*Clock, error) {
	if own == nil {
		own = time.Now
	}
	c := &Clock{store: s, own: own}
	l, err := c.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("the time of the store's server: %w", err)
	}
	c.reading.Store(l)
	go c.run(ctx)
	return c, nil
}

func (c *Clock) run(ctx context.Context) {
	timer := time.NewTimer(readInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := readInterval
		if l, err := c.read(ctx); err == nil {
			c.update(l)
		} else {
			next = readRetry // continue by our own clock
		}
		timer.Reset(next)
	}
}

// read reads the server's time, which is that of some moment between request and response.
func (c *Clock) read(ctx context.Context) (*timeReading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	begun := c.own()
	server, err := c.store.Time(ctx)
	if err != nil {
		return nil, err
	}
	half := c.own().Sub(begun) / 2
	return &timeReading{at: begun.Add(half), server: server, uncertain: half}, nil
}

// update uses a reading if it is more precise than the previous one, or shows that the
// server's clock was set.
func (c *Clock) update(l *timeReading) {
	before, own := c.reading.Load(), c.own()
	apart := l.serverTime(own).Sub(before.serverTime(own)).Abs()
	if l.uncertainty(own) > before.uncertainty(own) && apart <= l.uncertainty(own)+before.uncertainty(own) {
		return
	}
	c.reading.Store(l)
}

// Now is the server's time.
func (c *Clock) Now() time.Time {
	now := c.reading.Load().serverTime(c.own()).UnixNano()
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

// Package lifecycle stops what a process has started, in reverse order.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Part is something that runs between Start and Stop. Stop waits until nothing of it
// runs.
type Part interface {
	Start(ctx context.Context) error
	Stop()
}

// Group is what has been started. The zero Group is empty. It is for one goroutine at
// a time.
type Group struct{ stops []func() error }

// Start starts parts in order, up to the first that fails. Those that have started
// are stopped by Stop.
func (g *Group) Start(ctx context.Context, parts ...Part) error {
	for _, p := range parts {
		if err := p.Start(ctx); err != nil {
			return err
		}
		g.Defer(p.Stop)
	}
	return nil
}

// Go runs f until ctx ends or Stop is called; Stop waits for it.
func (g *Group) Go(ctx context.Context, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	g.Defer(func() { cancel(); running.Wait() })
}

// Defer has Stop call a function.
func (g *Group) Defer(stop func()) {
	g.stops = append(g.stops, func() error { stop(); return nil })
}

// Close has Stop call a function that can fail; name says whose.
func (g *Group) Close(name string, stop func() error) {
	g.stops = append(g.stops, func() error {
		if err := stop(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// Stop stops everything, the last started first, and joins the errors. A second call
// does nothing.
func (g *Group) Stop() error {
	var errs []error
	for len(g.stops) > 0 {
		last := len(g.stops) - 1
		stop := g.stops[last]
		g.stops = g.stops[:last]
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// Package lifecycle stops the parts that a process has started, in reverse order.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Part runs between Start and Stop. When Stop returns nothing of it runs any more.
type Part interface {
	Start(ctx context.Context) error
	Stop()
}

// Group is a list of started parts. The zero Group is empty. It may be used by one goroutine at a time.
type Group struct{ stops []func() error }

// Start starts parts in order, up to the first that fails. Stop stops those that have started.
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

// Defer registers a function that Stop calls.
func (g *Group) Defer(stop func()) {
	g.stops = append(g.stops, func() error { stop(); return nil })
}

// Close registers a function that can fail; name identifies it in the error.
func (g *Group) Close(name string, stop func() error) {
	g.stops = append(g.stops, func() error {
		if err := stop(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// Stop stops everything in reverse order, and joins the errors. A second call is a no-op.
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

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	// cancelBound is how long Close waits for calls that it has cancelled: a
	// provider returns soon after.
	cancelBound = 3 * time.Second
	// closeBound is how long Close waits for the providers, which have
	// processes to end.
	closeBound = 20 * time.Second
)

// The causes for which the gateway itself ends a call.
var (
	errTimeout = errors.New("the tool's time is over")
	errLost    = errors.New("the slot of the shared tool queue is lost")
	errClosing = signalbox.Errorf(signalbox.CodeUnavailable, "The gateway is shutting down: call the tool again when it is back.")
)

// underway is a call between its coming and its answer.
type underway struct {
	entry *entry
	call  *Call
	span  *span
	begin time.Time

	ctx     context.Context // ends with the caller, or when the gateway closes
	cancel  context.CancelCauseFunc
	running bool // guarded by Gateway.mu; false: it waits in line
	waited  time.Duration
}

// enter takes note of a call, unless the gateway is closing.
func (g *Gateway) enter(ctx context.Context, u *underway) error {
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		u.cancel(nil)
		return errClosing
	}
	g.under[u] = struct{}{}
	return nil
}

// begin says that a call waits no more. One that gets its slot while the
// gateway closes does not start.
func (g *Gateway) begin(u *underway) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return errClosing
	}
	u.running = true
	return nil
}

// holds ends a call whose slot of a shared queue is lost: another call may have
// it. stop says that the call is over.
func (u *underway) holds(permit toolqueue.Permit) (stop func()) {
	lost := permit.Lost()
	if lost == nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-lost:
			u.cancel(errLost)
		case <-over:
		}
	}()
	return func() { close(over) }
}

func (g *Gateway) leave(u *underway) {
	u.cancel(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.under, u)
	if g.closing && len(g.under) == 0 {
		close(g.idle)
	}
}

// Close takes no more calls, sends away those that wait, lets those that run
// go on for the grace, cancels what is left, and then closes all providers side
// by side. All that is bounded; the error names what did not end in time.
func (g *Gateway) Close() error {
	g.closeOnce.Do(func() { g.closeErr = g.close() })
	return g.closeErr
}

func (g *Gateway) close() error {
	g.mu.Lock()
	g.closing = true
	if len(g.under) == 0 {
		close(g.idle)
	}
	for u := range g.under {
		if !u.running {
			u.cancel(errClosing)
		}
	}
	stop := g.stop
	g.mu.Unlock()
	var errs []error
	if !g.idleWithin(g.grace) {
		g.mu.Lock()
		for u := range g.under {
			u.cancel(errClosing)
		}
		g.mu.Unlock()
		if !g.idleWithin(cancelBound) {
			errs = append(errs, fmt.Errorf("tool calls did not end within %v of being cancelled", cancelBound))
		}
	}
	close(g.closed)
	g.background.Wait()
	errs = append(errs, g.closeProviders()...)
	stop()
	return errors.Join(errs...)
}

// idleWithin waits until no call is under way.
func (g *Gateway) idleWithin(d time.Duration) bool {
	if d < 0 {
		d = 0
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-g.idle:
		return true
	case <-t.C:
		return false
	}
}

func (g *Gateway) closeProviders() []error {
	type closed struct {
		name string
		err  error
	}
	open, results := map[string]bool{}, make(chan closed, len(g.providers))
	for _, p := range g.providers {
		open[p.Name()] = true
		go func() { results <- closed{p.Name(), p.Close()} }()
	}
	var errs []error
	limit := time.NewTimer(closeBound)
	defer limit.Stop()
	for range g.providers {
		select {
		case c := <-results:
			delete(open, c.name)
			if c.err != nil {
				errs = append(errs, fmt.Errorf("server %s: %w", c.name, c.err))
			}
		case <-limit.C:
			for name := range open {
				errs = append(errs, fmt.Errorf("server %s did not end within %v", name, closeBound))
			}
			return errs
		}
	}
	return errs
}

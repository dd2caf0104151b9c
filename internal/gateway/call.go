package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Ended describes a finished call.
type Ended struct {
	Server    string    // "" if no server has such a tool
	Tool      string    // "" if unknown; Name is then what the caller wrote
	Queue     string    // the tool queue; "": none
	Execution string    // the execution that made the call, or the call's task; "": unknown
	Outcome   string    // an Outcome constant or an error code
	At        time.Time // start of the call
	Took      time.Duration
	Waited    time.Duration // time spent waiting for a slot; 0: it did not wait
}

// Outcomes of a call that are not error codes.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"          // the tool itself failed: isError
	OutcomeProtocol  = "protocol_error" // the upstream answered with a JSON-RPC error
	OutcomeCancelled = "cancelled"      // cancelled by the caller
)

// Call runs a call through its tool's queue. A failure of the tool itself is a Result with
// IsError. An error is a *ProtocolError of the upstream, the context's error, or a
// *signalbox.Error: not_found, validation_error, tool_down, tool_lost, tool_timeout,
// tool_failed, tool_queue_full, tool_queue_timeout, store_failed (of a shared queue),
// too_large, unavailable. Call runs an Async tool like any other: frontends that turn calls
// into tasks use Tasks.
func (g *Gateway) Call(ctx context.Context, c Call) (Result, error) {
	begin := time.Now()
	e := g.table.Load().entries[c.Tool]
	if e == nil {
		err := g.unknown(c.Tool)
		g.reportEnded(Ended{Execution: c.Caller.Execution, Outcome: outcomeOf(Result{}, err), At: begin, Took: time.Since(begin)})
		return Result{}, err
	}
	ctx, span := g.startSpan(ctx, e, &c)
	u := &inFlightCall{entry: e, call: &c, span: span, begin: begin}
	r, err := g.process(ctx, u)
	took, outcome := time.Since(begin), outcomeOf(r, err)
	span.end(r, err, outcome)
	g.logFinished(u, outcome, took-u.waited, err)
	g.reportEnded(Ended{
		Server: e.tool.Server, Tool: e.tool.Name, Queue: e.tool.Queue, Execution: c.Caller.Execution,
		Outcome: outcome, At: begin, Took: took, Waited: u.waited,
	})
	if err != nil {
		return Result{}, err
	}
	return r, nil
}

func (g *Gateway) reportEnded(e Ended) {
	if g.ended != nil {
		g.ended(e)
	}
}

// Check returns the error with which Call would refuse the call at once: an unknown tool
// (not_found), invalid arguments (validation_error).
func (g *Gateway) Check(c Call) error {
	e := g.table.Load().entries[c.Tool]
	if e == nil {
		return g.unknown(c.Tool)
	}
	return check(e.provider, &c)
}

// check runs before a call waits for anything.
func check(p Provider, c *Call) error {
	if err := checkArguments(c); err != nil {
		return err
	}
	if p, ok := p.(Checker); ok {
		return p.Check(*c)
	}
	return nil
}

// process takes a slot and runs the call, and repeats both each time the upstream refuses it.
// Deferred in this order: release the slot, stop progress, unregister the call.
func (g *Gateway) process(ctx context.Context, u *inFlightCall) (Result, error) {
	if err := check(u.entry.provider, u.call); err != nil {
		return Result{}, err
	}
	if err := g.register(ctx, u); err != nil {
		return Result{}, err
	}
	defer g.unregister(u)
	progress := newProgressReporter(u.call.Progress)
	defer progress.close()
	if progress != nil {
		u.call.Progress = progress.forward
	}
	for {
		r, err := g.attempt(ctx, u, progress)
		if err != errAgain {
			return r, err
		}
		if err := g.markRunning(u, false); err != nil {
			return Result{}, err
		}
	}
}

// attempt waits once and runs once. errAgain asks for another attempt.
func (g *Gateway) attempt(ctx context.Context, u *inFlightCall, progress *progressReporter) (Result, error) {
	permit, err := g.acquire(u, progress)
	if err != nil {
		return Result{}, g.notAcquired(ctx, u, err)
	}
	living := false
	defer func() {
		if !living {
			permit.Release()
		}
	}()
	defer u.watchPermit(permit)()
	if err := g.markRunning(u, true); err != nil {
		return Result{}, err
	}
	if u.runs++; u.runs == 1 && u.call.OnStart != nil {
		if err := u.call.OnStart(u.call); err != nil {
			return Result{}, err
		}
	}
	g.logStarted(u)
	running, cancel := u.withTimeout()
	defer cancel()
	r, err := g.run(running, u)
	if refused, ok := errors.AsType[*Refused](err); ok && running.Err() == nil {
		return Result{}, g.refused(u, refused)
	}
	if living = r.Run != nil && r.Run.Alive != nil; living {
		g.holdSlot(u, r.Run.Alive, permit)
	}
	return g.outcome(ctx, running, u, r, err)
}

// withTimeout bounds the run. The command provider enforces the bound itself, because it
// would mistake an expired context for a cancel.
func (u *inFlightCall) withTimeout() (context.Context, context.CancelFunc) {
	if u.call.Limit <= 0 {
		u.call.Limit = u.entry.tool.Timeout
	}
	if u.call.Limit <= 0 || u.entry.tool.Kind == KindCommand {
		return context.WithCancel(u.ctx)
	}
	return context.WithTimeoutCause(u.ctx, u.call.Limit, errTimeout)
}

// aliveInterval is how often surviving processes that cannot be killed are
// checked.
const aliveInterval = time.Second

// holdSlot keeps the slot of a run while processes of it that cannot be killed are alive: the
// next call must not run beside them.
func (g *Gateway) holdSlot(u *inFlightCall, alive func() []int, permit toolqueue.Permit) {
	g.log.Error("processes of a tool cannot be killed: its slot stays taken until they are dead",
		"tool", u.entry.tool.Name, "queue", u.entry.tool.Queue, "pids", alive())
	stop := g.closed
	g.background.Go(func() {
		defer permit.Release()
		tick := time.NewTicker(aliveInterval)
		defer tick.Stop()
		for len(alive()) > 0 {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
		g.log.Info("a tool's processes that could not be killed are dead: its slot is free", "tool", u.entry.tool.Name, "queue", u.entry.tool.Queue)
	})
}

// acquire takes a slot of the tool's queue. Internal tools need none.
func (g *Gateway) acquire(u *inFlightCall, progress *progressReporter) (toolqueue.Permit, error) {
	e, caller := u.entry, u.call.Caller
	if e.tool.Queue == "" {
		return toolqueue.Permit{}, u.ctx.Err()
	}
	var since time.Time
	who := toolqueue.Who{Session: caller.Session, Agent: caller.Agent, Tool: e.tool.Name, Execution: cmp.Or(u.call.Task, caller.Execution), Since: u.begin}
	if key := g.keys[e.tool.Queue]; key != nil {
		who.Key = key(u.call)
		u.key = who.Key
	}
	who.Waits = func(w toolqueue.Waiting) {
		since = time.Now()
		g.notifyCall(u)
		u.span.waits(u.ctx, e.tool.Queue, since)
		if u.runs == 0 && u.call.OnWait != nil {
			u.call.OnWait(w)
		}
		progress.follow(w, e.tool.Queue)
	}
	permit, err := g.takeSlot(u, who)
	g.notifyCall(u)
	progress.waitOver()
	if !since.IsZero() {
		u.waited += time.Since(since)
		u.span.waitOver(err)
	}
	return permit, err
}

// takeSlot waits for a slot, at most as long as waitLeft allows.
func (g *Gateway) takeSlot(u *inFlightCall, who toolqueue.Who) (toolqueue.Permit, error) {
	if left, bounded := g.waitLeft(u); bounded {
		return g.queues.AcquireWithin(u.ctx, u.entry.tool.Queue, who, left)
	}
	return g.queues.Acquire(u.ctx, u.entry.tool.Queue, who)
}

// run calls the provider. A panic becomes an error of this call.
func (g *Gateway) run(ctx context.Context, u *inFlightCall) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.logPanic(u, p)
			r, err = Result{}, signalbox.Errorf(signalbox.CodeToolFailed, "The tool %q failed inside Signalbox: this is a fault of Signalbox, its log has more.", u.entry.tool.Name)
		}
	}()
	return u.entry.provider.Call(ctx, *u.call)
}

// checkArguments accepts an object or nothing.
func checkArguments(c *Call) error {
	args := bytes.TrimSpace(c.Arguments)
	switch {
	case len(args) == 0 || bytes.Equal(args, []byte("null")):
		c.Arguments = nil
		return nil
	case !isObject(args):
		return signalbox.Invalid("arguments", "The arguments of a tool must be a JSON object such as {\"name\": \"value\"}, not %s.", jsonKind(args))
	case !utf8.Valid(args): // some upstreams fail on invalid UTF-8
		return signalbox.Invalid("arguments", "The arguments are not valid UTF-8.")
	}
	return nil
}

func jsonKind(raw json.RawMessage) string {
	switch c := raw[0]; {
	case !json.Valid(raw):
		return "text that is not JSON"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == 't' || c == 'f':
		return "a boolean"
	}
	return "a number"
}

// Calling returns a function that reports whether an execution has a tool call waiting or
// running.
func Calling(queues *toolqueue.Queues) func(execution string) bool {
	return func(execution string) bool {
		return slices.ContainsFunc(queues.All(math.MaxInt), func(s toolqueue.Status) bool {
			return slices.ContainsFunc(s.Holders, func(h toolqueue.Holder) bool { return h.Execution == execution && !h.Idle }) ||
				slices.ContainsFunc(s.Waiters, func(w toolqueue.Waiter) bool { return w.Execution == execution })
		})
	}
}

const (
	// cancelBound is how long Close waits for calls that it cancelled.
	cancelBound = 3 * time.Second
	// closeBound is how long Close waits for the providers, which must end their
	// processes.
	closeBound = 20 * time.Second
)

// Causes with which the gateway ends a call.
var (
	errTimeout = errors.New("the tool's time is over")
	errLost    = errors.New("the slot of the shared tool queue is lost")
	errClosing = signalbox.Errorf(signalbox.CodeUnavailable, "The gateway is shutting down: call the tool again when it is back.")
)

// inFlightCall is a call that waits or runs.
type inFlightCall struct {
	entry *entry
	call  *Call
	span  *span
	begin time.Time

	ctx     context.Context // ends with the caller, or when the gateway closes
	cancel  context.CancelCauseFunc
	running bool // guarded by Gateway.mu; false: it waits
	waited  time.Duration
	runs    int
	key     string // the key whose limits apply in the queue
}

// register adds a call, unless the gateway is closing.
func (g *Gateway) register(ctx context.Context, u *inFlightCall) error {
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		u.cancel(nil)
		return errClosing
	}
	g.inFlight[u] = struct{}{}
	return nil
}

// markRunning marks a call as running, or as waiting again. While the gateway closes, a call
// can neither start nor wait again.
func (g *Gateway) markRunning(u *inFlightCall, running bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return errClosing
	}
	u.running = running
	return nil
}

// watchPermit cancels the call if its slot of a shared queue is lost. stop ends the watch.
func (u *inFlightCall) watchPermit(permit toolqueue.Permit) (stop func()) {
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

func (g *Gateway) unregister(u *inFlightCall) {
	u.cancel(nil)
	g.notifyCall(u)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inFlight, u)
	if g.closing && len(g.inFlight) == 0 {
		close(g.idle)
	}
}

// Close refuses new calls and waiting calls, lets running calls continue for the grace
// period, cancels the rest, and then closes all providers in parallel. Every step is
// bounded; the error names what did not end in time.
func (g *Gateway) Close() error {
	g.closeOnce.Do(func() { g.closeErr = g.close() })
	return g.closeErr
}

func (g *Gateway) close() error {
	g.mu.Lock()
	g.closing = true
	if len(g.inFlight) == 0 {
		close(g.idle)
	}
	for u := range g.inFlight {
		if !u.running {
			u.cancel(errClosing)
		}
	}
	stop := g.stop
	g.mu.Unlock()
	var errs []error
	if !g.waitIdle(g.grace) {
		g.mu.Lock()
		for u := range g.inFlight {
			u.cancel(errClosing)
		}
		g.mu.Unlock()
		if !g.waitIdle(cancelBound) {
			errs = append(errs, fmt.Errorf("tool calls did not end within %v of being cancelled", cancelBound))
		}
	}
	close(g.closed)
	g.background.Wait()
	errs = append(errs, g.closeProviders()...)
	stop()
	return errors.Join(errs...)
}

// waitIdle waits until no call is in flight.
func (g *Gateway) waitIdle(d time.Duration) bool {
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

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

// Ended tells of a call that is over.
type Ended struct {
	Server  string // "": no server has such a tool
	Tool    string // "" as well then: it is a caller's word
	Outcome string // an Outcome constant or an error code
	Took    time.Duration
	Waited  time.Duration // in line; 0 if it did not have to wait
}

// The outcomes of a call that are no error codes.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"          // the tool itself failed: isError
	OutcomeProtocol  = "protocol_error" // the upstream answered with a JSON-RPC error
	OutcomeCancelled = "cancelled"      // the caller went away
)

// Call takes a call through its tool's queue and runs it. A failure of the
// tool itself is a Result with IsError; an error is a *ProtocolError of the
// upstream or a *signalbox.Error: not_found, validation_error, tool_down,
// tool_lost, tool_timeout, tool_failed, tool_queue_full, tool_queue_timeout, store_failed
// (of a shared queue), too_large, unavailable; or it is the context's. An Async tool is run as any other: those
// ways in that make tasks of its calls call Tasks.
func (g *Gateway) Call(ctx context.Context, c Call) (Result, error) {
	begin := time.Now()
	e := g.table.Load().entries[c.Tool]
	if e == nil {
		err := g.unknown(c.Tool)
		g.tell(Ended{Outcome: outcomeOf(Result{}, err), Took: time.Since(begin)})
		return Result{}, err
	}
	ctx, span := g.startSpan(ctx, e, &c)
	u := &underway{entry: e, call: &c, span: span, begin: begin}
	r, err := g.guide(ctx, u)
	took, outcome := time.Since(begin), outcomeOf(r, err)
	span.end(r, err, outcome)
	g.logFinished(u, outcome, took-u.waited, err)
	g.tell(Ended{Server: e.tool.Server, Tool: e.tool.Name, Outcome: outcome, Took: took, Waited: u.waited})
	if err != nil {
		return Result{}, err
	}
	return r, nil
}

func (g *Gateway) tell(e Ended) {
	if g.ended != nil {
		g.ended(e)
	}
}

// Check returns what Call would refuse at once: a tool that is not there
// (not_found), arguments that do not fit it (validation_error).
func (g *Gateway) Check(c Call) error {
	e := g.table.Load().entries[c.Tool]
	if e == nil {
		return g.unknown(c.Tool)
	}
	return check(e.provider, &c)
}

// check is made before a call waits for anything.
func check(p Provider, c *Call) error {
	if err := checkArguments(c); err != nil {
		return err
	}
	if p, ok := p.(Checker); ok {
		return p.Check(*c)
	}
	return nil
}

// guide takes a call through its tool's queue. What is deferred comes undone
// in this order: the slot is given up, the caller hears no more, the call is
// no longer under way.
func (g *Gateway) guide(ctx context.Context, u *underway) (Result, error) {
	if err := check(u.entry.provider, u.call); err != nil {
		return Result{}, err
	}
	if err := g.enter(ctx, u); err != nil {
		return Result{}, err
	}
	defer g.leave(u)
	news := newNews(u.call.Progress)
	defer news.end()
	if news != nil {
		u.call.Progress = news.upstream
	}
	permit, err := g.acquire(u, news)
	if err != nil {
		return Result{}, g.notAcquired(ctx, u, err)
	}
	living := false
	defer func() {
		if !living {
			permit.Release()
		}
	}()
	defer u.holds(permit)()
	if err := g.begin(u); err != nil {
		return Result{}, err
	}
	if u.call.Begun != nil {
		if err := u.call.Begun(u.call); err != nil {
			return Result{}, err
		}
	}
	g.logStarted(u)
	running, cancel := u.timed()
	defer cancel()
	r, err := g.run(running, u)
	if living = r.Run != nil && r.Run.Alive != nil; living {
		g.holdOn(u, r.Run.Alive, permit)
	}
	return g.judge(ctx, running, u, r, err)
}

// timed bounds the run. A command's provider does that itself: a context that
// ended would be a cancel to it, and no timeout.
func (u *underway) timed() (context.Context, context.CancelFunc) {
	if u.call.Limit <= 0 {
		u.call.Limit = u.entry.tool.Timeout
	}
	if u.call.Limit <= 0 || u.entry.tool.Kind == KindCommand {
		return context.WithCancel(u.ctx)
	}
	return context.WithTimeoutCause(u.ctx, u.call.Limit, errTimeout)
}

// lookEvery is how often it is looked whether what cannot be killed has died.
const lookEvery = time.Second

// holdOn keeps the slot of a run of which something lives that cannot be
// killed, until nothing does: the next call must not run beside it.
func (g *Gateway) holdOn(u *underway, alive func() []int, permit toolqueue.Permit) {
	g.log.Error("processes of a tool cannot be killed: its slot stays taken until they are dead",
		"tool", u.entry.tool.Name, "queue", u.entry.tool.Queue, "pids", alive())
	stop := g.closed
	g.background.Go(func() {
		defer permit.Release()
		tick := time.NewTicker(lookEvery)
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

// acquire takes a slot of the tool's queue. Internal tools take none.
func (g *Gateway) acquire(u *underway, news *news) (toolqueue.Permit, error) {
	e, caller := u.entry, u.call.Caller
	if e.tool.Queue == "" {
		return toolqueue.Permit{}, u.ctx.Err()
	}
	var since time.Time
	who := toolqueue.Who{Session: caller.Session, Agent: caller.Agent, Tool: e.tool.Name, Execution: cmp.Or(u.call.Task, caller.Execution), Since: u.begin}
	who.Waits = func(w toolqueue.Waiting) {
		since = time.Now()
		g.callMoved(u)
		u.span.waits(u.ctx, e.tool.Queue, since)
		if u.call.Waits != nil {
			u.call.Waits(w)
		}
		news.follow(w)
	}
	permit, err := g.takeSlot(u, who)
	g.callMoved(u)
	news.waitOver()
	if !since.IsZero() {
		u.waited = time.Since(since)
		u.span.waitOver(err)
	}
	return permit, err
}

// takeSlot waits for a slot for as long as the call may: without a bound of its
// own where it is patient or its tool has none.
func (g *Gateway) takeSlot(u *underway, who toolqueue.Who) (toolqueue.Permit, error) {
	if within := u.entry.within; within > 0 && !u.call.Patient {
		return g.queues.AcquireWithin(u.ctx, u.entry.tool.Queue, who, within)
	}
	return g.queues.Acquire(u.ctx, u.entry.tool.Queue, who)
}

// run calls the provider. One that panics has failed, and nothing else has.
func (g *Gateway) run(ctx context.Context, u *underway) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.logPanic(u, p)
			r, err = Result{}, signalbox.Errorf(signalbox.CodeToolFailed, "The tool %q failed inside Signalbox: this is a fault of Signalbox, its log has more.", u.entry.tool.Name)
		}
	}()
	return u.entry.provider.Call(ctx, *u.call)
}

// checkArguments accepts an object, or nothing.
func checkArguments(c *Call) error {
	args := bytes.TrimSpace(c.Arguments)
	switch {
	case len(args) == 0 || bytes.Equal(args, []byte("null")):
		c.Arguments = nil
		return nil
	case !isObject(args):
		return signalbox.Invalid("arguments", "The arguments of a tool must be a JSON object such as {\"name\": \"value\"}, not %s.", jsonKind(args))
	case !utf8.Valid(args): // upstreams that read text end by it
		return signalbox.Invalid("arguments", "The arguments are not valid UTF-8.")
	}
	return nil
}

func jsonKind(raw json.RawMessage) string {
	switch c := raw[0]; {
	case !json.Valid(raw):
		return "text that is no JSON"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == 't' || c == 'f':
		return "a boolean"
	}
	return "a number"
}

// Calling tells of each execution whether a tool call of it waits or is under way.
func Calling(queues *toolqueue.Queues) func(execution string) bool {
	return func(execution string) bool {
		return slices.ContainsFunc(queues.All(math.MaxInt), func(s toolqueue.Status) bool {
			return slices.ContainsFunc(s.Holders, func(h toolqueue.Holder) bool { return h.Execution == execution && !h.Idle }) ||
				slices.ContainsFunc(s.Waiters, func(w toolqueue.Waiter) bool { return w.Execution == execution })
		})
	}
}

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
	g.callMoved(u)
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

package agentd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// An agent that pulls has no listener: it asks a director for its tasks, and
// reports how they fare. What it executes, and that a queue_id and fence are one
// execution, is as with POST /task.

const (
	claimWait = 30 * time.Second
	// hasty is how soon an empty answer to a claim comes that was not waited for.
	hasty = 500 * time.Millisecond
	// handIn bounds how long an agent that stops tries to say how its runs ended.
	// What it could not say it says when it is started again.
	handIn = 3 * time.Second
	// farewell bounds how long it tries to say that it stops.
	farewell = 2 * time.Second
)

// puller asks directors for tasks.
type puller struct {
	d         *Daemon
	directors *directors
	instance  string
	wait      time.Duration
	reporting context.Context // of the reports; it outlives the asking
	group     sync.WaitGroup

	mu       sync.Mutex
	hands    map[*run]bool        // runs whose end is still to be reported
	answered map[api.PullAsk]bool // other reports under way: of what was refused, or is not known
	told     map[string]bool      // errors that were logged already, since the last success
}

// Pull asks the directors for tasks until ctx ends. Then none is taken any more,
// running ones are stopped with proof and recorded as interrupted, and a
// director is told. Of several directors it goes on with the next where one does
// not answer. It returns at once where a director says that it will never do.
func (d *Daemon) Pull(ctx context.Context, at []*client.Client) error {
	instance, err := d.disk.instance()
	if err != nil {
		return errors.Join(fmt.Errorf("data folder: %w", err), d.Close())
	}
	reporting, end := context.WithCancel(context.Background())
	defer end()
	p := &puller{
		d: d, directors: &directors{all: at}, instance: instance, wait: claimWait, reporting: reporting,
		hands: map[*run]bool{}, answered: map[api.PullAsk]bool{}, told: map[string]bool{},
	}
	for _, r := range d.untold() {
		p.follow(r)
	}
	p.ask(ctx)
	p.stop(end)
	return d.Close()
}

// stop says that the agent stops, and ends what runs.
func (p *puller) stop(end func()) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	beat := api.Heartbeat{State: "stopping", Instance: p.instance, Runs: p.claim().Runs}
	err := p.directors.once(func(c *client.Client) error {
		_, err := c.Heartbeat(ctx, p.d.cfg.Name, beat)
		return err
	})
	if err != nil {
		p.d.cfg.Logger.Info("the director was not told that this agent stops", "error", err)
	}
	p.d.stopAll(context.Background(), 0)
	over := time.AfterFunc(handIn, end)
	defer over.Stop()
	p.group.Wait()
}

// ask registers and claims, again and again.
func (p *puller) ask(ctx context.Context) {
	known, tries := false, 0
	for ctx.Err() == nil {
		if !known {
			if err := p.register(ctx); err != nil {
				p.failed(ctx, &tries, "not registered, trying again", err)
				continue
			}
			known = true
		}
		begun := time.Now()
		answer, err := p.claimOnce(ctx)
		switch {
		case err == nil:
			tries = 0
			p.reached()
			if !p.take(answer) && time.Since(begun) < hasty {
				pause(ctx, hasty/2+rand.N(hasty))
			}
		case client.Code(err) == "not_found" || client.Code(err) == "conflict":
			known = false
			pause(ctx, rand.N(hasty))
		default:
			p.failed(ctx, &tries, "no tasks were asked for, trying again", err)
		}
	}
}

func (p *puller) register(ctx context.Context) error {
	s := p.d.Status()
	err := p.directors.do(func(c *client.Client) error {
		_, err := c.RegisterAgent(ctx, api.RegisterAgent{
			Name: s.Name, Kind: s.AgentKind, Slots: s.Slots, Fencing: true, Version: s.Version, WorkDir: s.WorkDir, Pull: true, Instance: p.instance,
		})
		return err
	})
	if err == nil {
		p.reached()
		p.d.cfg.Logger.Info("registered", "director", p.directors.current().URL(), "name", s.Name, "pulls", true)
	}
	return err
}

func (p *puller) claimOnce(ctx context.Context) (answer api.PullAnswer, err error) {
	err = p.directors.do(func(c *client.Client) error {
		answer, err = c.Claim(ctx, p.d.cfg.Name, p.claim(), p.wait)
		return err
	})
	return answer, err
}

// failed waits before the next try, longer each time, and says once why.
func (p *puller) failed(ctx context.Context, tries *int, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	said := p.told[err.Error()]
	p.told[err.Error()] = true
	p.mu.Unlock()
	if !said {
		p.d.cfg.Logger.Warn(what, "director", p.directors.current().URL(), "error", err, "cure", Cure(err, p.d.cfg.Name))
	}
	*tries++
	pause(ctx, backoff(*tries))
}

// Cure says what a person can do about a director that refuses an agent of that
// name.
func Cure(err error, name string) string {
	switch client.Code(err) {
	case "unauthorized", "forbidden":
		return fmt.Sprintf("give this agent a token of its own in SIGNALBOX_TOKEN; who administers the director makes it with: signalbox tokens create %s --agent %s", name, name)
	case "conflict":
		return "give this agent another --name, or stop the one that has it"
	}
	return "check --director, and that a director runs there"
}

// reached forgets what was said about directors that were not.
func (p *puller) reached() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.told)
}

// backoff spreads the agents of a director that comes back: all of them lost it
// at the same moment.
func backoff(try int) time.Duration {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	d := most
	if try < 7 {
		d = min(first<<(try-1), most)
	}
	return d - rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// take does what a director says. It reports whether that was anything.
func (p *puller) take(a api.PullAnswer) bool {
	for _, s := range a.Stop {
		p.end(s)
	}
	for _, q := range a.Ask {
		p.tell(q)
	}
	if a.Task != nil {
		a.Task.RunToken, a.Task.EnvBy = a.RunToken, a.EnvBy
		p.execute(*a.Task, a.Traceparent)
	}
	return a.Task != nil || len(a.Stop) > 0 || len(a.Ask) > 0
}

// execute begins a task, or says why not.
func (p *puller) execute(t api.AgentTask, traceparent string) {
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	r, ref := p.d.reserve(t, trace.SpanContextFromContext(ctx))
	if ref != nil {
		p.refuse(api.PullAsk{QueueID: t.QueueID, Fence: t.Fence}, ref)
		return
	}
	p.follow(r)
}

// end stops a run that a director wants stopped.
func (p *puller) end(s api.PullStop) {
	p.d.mu.Lock()
	r := p.d.byQueue[s.QueueID]
	p.d.mu.Unlock()
	if r == nil || r.record().Fence != s.Fence {
		return
	}
	if s.Void {
		r.requestStop(stop{stateFailed, "stale_fence", "the director took the task away while it ran"})
		return
	}
	r.requestStop(stop{stateCancelled, "cancelled", "the task was cancelled while it ran"})
}

// tell answers what a director asks about an execution.
func (p *puller) tell(q api.PullAsk) {
	p.d.mu.Lock()
	r := p.d.byQueue[q.QueueID]
	p.d.mu.Unlock()
	if r != nil && r.record().Fence == q.Fence {
		p.follow(r) // from the beginning: the director may have lost what it was told
		return
	}
	p.answer(q, api.PullReport{Instance: p.instance, Fence: q.Fence, Unknown: true})
}

// directors are those that an agent may ask, one of them at a time: they share
// a store, and any of them does.
type directors struct {
	all []*client.Client

	mu  sync.Mutex
	now int
}

func (d *directors) current() *client.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[d.now]
}

// do asks the current director. Where it does not answer, or not as one, the
// next call asks the next one.
func (d *directors) do(f func(*client.Client) error) error {
	c := d.current()
	err := f(c)
	if err != nil && elsewhere(err) {
		d.mu.Lock()
		if d.all[d.now] == c {
			d.now = (d.now + 1) % len(d.all)
		}
		d.mu.Unlock()
	}
	return err
}

// once asks each director in turn until one has answered.
func (d *directors) once(f func(*client.Client) error) (err error) {
	for range d.all {
		if err = d.do(f); err == nil || !elsewhere(err) {
			return err
		}
	}
	return err
}

// elsewhere reports whether another director may answer otherwise.
func elsewhere(err error) bool {
	var e *client.Error
	return client.IsUnreachable(err) || (errors.As(err, &e) && (e.Status >= 500 || e.Body.Error == client.CodeUnexpectedAnswer))
}

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

// A pulling agent has no listener: it asks a director for tasks and reports
// their progress. Execution is the same as with POST /task: one queue_id and
// fence is one execution.

const (
	claimWait = 30 * time.Second
	// immediateAnswer is the time below which an empty answer to a claim counts
	// as sent without a wait.
	immediateAnswer = 500 * time.Millisecond
	// finalReportTimeout bounds the final reports of a stopping agent. The rest is reported
	// after the next start.
	finalReportTimeout = 3 * time.Second
	// goodbyeTimeout bounds the notification that the agent stops.
	goodbyeTimeout = 2 * time.Second
)

// puller claims tasks from directors.
type puller struct {
	d         *Daemon
	directors *directors
	instance  string
	wait      time.Duration
	reporting context.Context // outlives the context of claims
	group     sync.WaitGroup

	mu           sync.Mutex
	following    map[*run]bool        // runs whose end is not acknowledged yet
	answered     map[api.PullAsk]bool // other reports in flight: refused or unknown executions
	loggedErrors map[string]bool      // since the last success
}

// Pull claims tasks from the directors until ctx ends. Then it stops running tasks with proof,
// records them as interrupted, and notifies a director. If a director does not answer, Pull
// uses the next one. It returns at once if a director refuses permanently.
func (d *Daemon) Pull(ctx context.Context, at []*client.Client) error {
	instance, err := d.disk.instance()
	if err != nil {
		return errors.Join(fmt.Errorf("data folder: %w", err), d.Close())
	}
	reporting, end := context.WithCancel(context.Background())
	defer end()
	p := &puller{
		d: d, directors: &directors{all: at}, instance: instance, wait: claimWait, reporting: reporting,
		following: map[*run]bool{}, answered: map[api.PullAsk]bool{}, loggedErrors: map[string]bool{},
	}
	for _, r := range d.unreportedRuns() {
		p.follow(r)
	}
	p.claimLoop(ctx)
	p.stop(end)
	return d.Close()
}

// stop notifies the director and ends all runs.
func (p *puller) stop(end func()) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	beat := api.Heartbeat{State: "stopping", Instance: p.instance, Runs: p.claim().Runs}
	err := p.directors.once(func(c *client.Client) error {
		_, err := c.Heartbeat(ctx, p.d.cfg.Name, beat)
		return err
	})
	if err != nil {
		p.d.cfg.Logger.Info("could not tell the director that this agent stops", "error", err)
	}
	p.d.stopAll(context.Background(), 0)
	over := time.AfterFunc(finalReportTimeout, end)
	defer over.Stop()
	p.group.Wait()
}

// claimLoop registers and then claims repeatedly.
func (p *puller) claimLoop(ctx context.Context) {
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
			if !p.handleAnswer(answer) && time.Since(begun) < immediateAnswer {
				pause(ctx, immediateAnswer/2+rand.N(immediateAnswer))
			}
		case client.Code(err) == "not_found" || client.Code(err) == "conflict":
			known = false
			pause(ctx, rand.N(immediateAnswer))
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

// failed waits before the next attempt, with backoff, and logs each reason once.
func (p *puller) failed(ctx context.Context, tries *int, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	said := p.loggedErrors[err.Error()]
	p.loggedErrors[err.Error()] = true
	p.mu.Unlock()
	if !said {
		p.d.cfg.Logger.Warn(what, "director", p.directors.current().URL(), "error", err, "cure", Cure(err, p.d.cfg.Name))
	}
	*tries++
	pause(ctx, backoff(*tries))
}

// Cure says what to do if a director refuses an agent of that name.
func Cure(err error, name string) string {
	switch client.Code(err) {
	case "unauthorized", "forbidden":
		return fmt.Sprintf("give this agent a token of its own in SIGNALBOX_TOKEN; an admin of the director creates it with: signalbox tokens create %s --agent %s", name, name)
	case "conflict":
		return "give this agent another --name, or stop the one that has it"
	}
	return "check --director, and that a director runs there"
}

// reached resets the logged errors.
func (p *puller) reached() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.loggedErrors)
}

// backoff has jitter, because all agents of a director lose it at the same
// time.
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

// handleAnswer carries out an answer. It reports whether the answer contained
// anything.
func (p *puller) handleAnswer(a api.PullAnswer) bool {
	for _, s := range a.Stop {
		p.end(s)
	}
	for _, q := range a.Ask {
		p.reportOn(q)
	}
	if a.Task != nil {
		a.Task.RunToken, a.Task.EnvBy = a.RunToken, a.EnvBy
		p.execute(*a.Task, a.Traceparent)
	}
	return a.Task != nil || len(a.Stop) > 0 || len(a.Ask) > 0
}

// execute starts a task or reports the refusal.
func (p *puller) execute(t api.AgentTask, traceparent string) {
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	r, ref := p.d.reserve(t, trace.SpanContextFromContext(ctx))
	if ref != nil {
		p.refuse(api.PullAsk{QueueID: t.QueueID, Fence: t.Fence}, ref)
		return
	}
	p.follow(r)
}

// end stops a run on behalf of the director.
func (p *puller) end(s api.PullStop) {
	p.d.mu.Lock()
	r := p.d.byQueue[s.QueueID]
	p.d.mu.Unlock()
	if r == nil || r.record().Fence != s.Fence {
		return
	}
	if s.Void {
		r.requestStop(stop{state: stateFailed, errType: "stale_fence", message: "the director took the task away while it ran"})
		return
	}
	r.requestStop(stop{state: stateCancelled, errType: "cancelled", message: "the task was cancelled while it ran"})
}

// reportOn answers a director's question about an execution.
func (p *puller) reportOn(q api.PullAsk) {
	p.d.mu.Lock()
	r := p.d.byQueue[q.QueueID]
	p.d.mu.Unlock()
	if r != nil && r.record().Fence == q.Fence {
		p.follow(r) // from the beginning: the director may have lost the log
		return
	}
	p.sendUntilTaken(q, api.PullReport{Instance: p.instance, Fence: q.Fence, Unknown: true})
}

// directors are the directors over one store; one of them is used at a time.
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

// do calls the current director. If that fails, the next call uses the next director.
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

// once calls each director in turn until one answers.
func (d *directors) once(f func(*client.Client) error) (err error) {
	for range d.all {
		if err = d.do(f); err == nil || !elsewhere(err) {
			return err
		}
	}
	return err
}

// elsewhere reports whether another director may give a different answer.
func elsewhere(err error) bool {
	var e *client.Error
	return client.IsUnreachable(err) || (errors.As(err, &e) && (e.Status >= 500 || e.Body.Error == client.CodeUnexpectedAnswer))
}

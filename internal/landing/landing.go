// Package landing brings the work of completed tasks to their branches: it submits the tasks that land it,
// returns what does not fit to the conversation, and records the state of each landing. That state is in the
// row of the task, so any director can continue.
package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// DefaultRounds is how often work that does not land is returned to its conversation.
const DefaultRounds = 2

// interval is how often all landings are checked without a signal.
const interval = time.Second

// Driver drives the landings of a store. Several directors may do so concurrently. Its methods are safe for
// concurrent use.
type Driver struct {
	store  store.Store
	engine *engine.Engine
	rounds int
	log    *slog.Logger
	wake   chan struct{}
}

// New returns a driver. rounds is how often work that does not land is returned to its conversation, 0 to
// signalbox.MaxLandingRounds. Call it before the engine is used.
func New(s store.Store, e *engine.Engine, rounds int, log *slog.Logger) *Driver {
	d := &Driver{store: s, engine: e, rounds: rounds, log: log, wake: make(chan struct{}, 1)}
	e.Observe(func(a *engine.Applied) {
		if a.Kind == signalbox.EventLanding || a.Task.State.Terminal() {
			select {
			case d.wake <- struct{}{}:
			default:
			}
		}
	})
	return d
}

// Run drives the landings until ctx ends.
func (d *Driver) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := d.Step(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("landings not advanced, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-tick.C:
		}
	}
}

// Step does what is due for each landing.
func (d *Driver) Step(ctx context.Context) error {
	open, err := d.store.Landings(ctx)
	for i := range open {
		if e := d.step(ctx, &open[i]); e != nil {
			err = errors.Join(err, fmt.Errorf("task %s: %w", open[i].ID, e))
		}
	}
	return err
}

func (d *Driver) step(ctx context.Context, t *signalbox.Task) error {
	switch l := t.Landing; {
	case l.State == signalbox.LandingQueued && !l.NotBefore.After(d.engine.Now()):
		return d.submit(ctx, t)
	case l.State == signalbox.LandingActive:
		return d.follow(ctx, t)
	case l.State == signalbox.LandingReturned && l.Turn == "":
		return d.giveBack(ctx, t)
	case l.State == signalbox.LandingReturned:
		return d.followTurn(ctx, t)
	}
	return nil
}

// change applies an event to the landing of a task.
func (d *Driver) change(ctx context.Context, id string, ev signalbox.LandingEvent) (signalbox.Task, error) {
	for {
		t, err := d.store.Task(ctx, id)
		if err != nil {
			return t, err
		}
		if t, err = d.apply(ctx, t, ev); !errors.Is(err, store.ErrStale) {
			return t, err
		}
	}
}

// apply applies an event to the landing of a task as read; store.ErrStale if it has changed since.
func (d *Driver) apply(ctx context.Context, t signalbox.Task, ev signalbox.LandingEvent) (signalbox.Task, error) {
	ev.Now = d.engine.Now()
	c, ok, err := t.ChangeLanding(ev)
	if err != nil || !ok {
		return t, err
	}
	after, err := d.store.Apply(ctx, c, ev.Now)
	if err == nil {
		// Without the row: nothing that observers count has changed.
		d.engine.Publish(engine.Applied{Kind: signalbox.EventLanding, Task: signalbox.Task{ID: t.ID, Owner: t.Owner}})
	}
	return after, err
}

// drive is change for an event that only fits the landing as read: another director may have been faster.
func (d *Driver) drive(ctx context.Context, id string, ev signalbox.LandingEvent) error {
	_, err := d.change(ctx, id, ev)
	switch signalbox.CodeOf(err) {
	case signalbox.CodeConflict, signalbox.CodeNotFound:
		return nil
	}
	return err
}

// submit submits the task that lands the work of t, at most once however often it is called.
func (d *Driver) submit(ctx context.Context, t *signalbox.Task) error {
	agent, _ := d.engine.LiveAgent(t.Agent)
	switch {
	case !agent.Up: // only its status tells whether it supports landing tasks
		return nil
	case !agent.Landing:
		return d.drive(ctx, t.ID, signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: d.Trouble(t)})
	}
	by, r, err := d.owner(ctx, t)
	if err != nil {
		return err
	}
	l := t.Landing
	n := engine.NewTask{
		Mode: signalbox.ModeLand, Agent: t.Agent, By: by, Scheduled: true, Source: t.Source, RetryOf: t.ID, Priority: t.Priority,
		Prompt: "Land " + t.ID + " " + onto(l), Checking: r.Checking, OnLost: signalbox.LostRequeue,
		Land:           &signalbox.Land{LandWish: l.LandWish, Task: t.ID, SessionID: t.SessionID, Title: title(t)},
		IdempotencyKey: landKey(t),
	}
	if branch := branchOf(t, agent); branch != "" {
		n.Holds = &[]signalbox.Need{{Resource: branch, N: 1}}
	}
	got, err := d.engine.Submit(ctx, n)
	if refused(err) {
		return d.drive(ctx, t.ID, signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: err.Error()})
	}
	if err != nil {
		return err
	}
	return d.note(ctx, t.ID, signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: got.Task.ID})
}

// landKey is the idempotency key of the next task that lands the work of t.
func landKey(t *signalbox.Task) string { return fmt.Sprintf("land:%s:%d", t.ID, t.Landing.Submits) }

// note is drive for the event of a submitted task. If the landing was dropped meanwhile, the task is
// cancelled.
func (d *Driver) note(ctx context.Context, id string, ev signalbox.LandingEvent) error {
	if err := d.drive(ctx, id, ev); err != nil {
		return err
	}
	t, err := d.store.Task(ctx, id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || err == nil && t.Landing.State == signalbox.LandingDropped && t.Landing.LandTask != ev.Task && t.Landing.Turn != ev.Task {
		return d.cancel(ctx, ev.Task, "the director")
	}
	return err
}

// Trouble says why the work of a task would not land at its agent in its current state; "" if no reason is
// known.
func (d *Driver) Trouble(t *signalbox.Task) string {
	only, _ := signalbox.OnlyAgent(t.Queue)
	name := cmp.Or(t.Agent, only)
	agent, _ := d.engine.LiveAgent(name)
	switch {
	case t.Landing == nil || !agent.Up:
		return ""
	case !agent.Landing:
		return fmt.Sprintf("agent %s cannot land work: it is not a Signalbox daemon, or too old; land the work by hand, or update the agent", name)
	case agent.FolderOf(t.Workplace) != "":
		return fmt.Sprintf("agent %s works in its folder, from which nothing lands: submit with workspace worktree", name)
	}
	return ""
}

// branchOf names the exclusive resource of a landing: a branch of the agent's repository; "" for a pull
// request.
func branchOf(t *signalbox.Task, agent engine.LiveAgent) string {
	if t.Landing.Onto == signalbox.LandPR {
		return ""
	}
	return signalbox.Exclusive("land", cmp.Or(agent.Folder, agent.WorkDir, t.Agent)+":"+t.Landing.Onto)
}

// Places returns the places of tasks with an open landing among those for the same branch: 1 is next, or
// lands now. A landing that waits for its conversation or a person has no place.
func (d *Driver) Places(open []signalbox.Task) map[string]int {
	places, before := map[string]int{}, map[string]int{}
	going := slices.DeleteFunc(slices.Clone(open), func(t signalbox.Task) bool {
		return t.Landing.State != signalbox.LandingActive && t.Landing.State != signalbox.LandingQueued
	})
	slices.SortFunc(going, func(a, b signalbox.Task) int {
		// By name, "landing" sorts before "queued".
		return cmp.Or(cmp.Compare(a.Landing.State, b.Landing.State), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Landing.LandTask, b.Landing.LandTask), a.Landing.At.Compare(b.Landing.At), cmp.Compare(a.ID, b.ID))
	})
	for i := range going {
		agent, _ := d.engine.LiveAgent(going[i].Agent)
		if branch := branchOf(&going[i], agent); branch != "" {
			before[branch]++
			places[going[i].ID] = before[branch]
		}
	}
	return places
}

// refused reports whether another submit would be refused, too.
func refused(err error) bool {
	switch signalbox.CodeOf(err) {
	case signalbox.CodeValidation, signalbox.CodeNotFound, signalbox.CodeForbidden, signalbox.CodeUnsupported, signalbox.CodeIdempotency:
		return true
	}
	return false
}

// owner is the owner of a landing's tasks: that of the task, without rights that the task did not use.
func (d *Driver) owner(ctx context.Context, t *signalbox.Task) (signalbox.Principal, signalbox.Request, error) {
	r, err := d.store.Request(ctx, t.ID)
	by := signalbox.Principal{Email: t.OwnerEmail, Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
	if kind, id, ok := strings.Cut(t.Owner, ":"); ok {
		by.Kind, by.ID = signalbox.PrincipalKind(kind), id
	}
	if r.EnvBy != signalbox.EnvByCaller {
		by.Scopes = append(by.Scopes, signalbox.ScopeAdmin) // the owner whose checks run
	}
	return by, r, err
}

func onto(l *signalbox.Landing) string {
	if l.Onto == signalbox.LandPR {
		return "as a pull request"
	}
	return "on " + l.Onto
}

func title(t *signalbox.Task) string {
	line, _, _ := strings.Cut(t.Preview, "\n")
	return strings.TrimSpace(line)
}

// The error types of landings, as reported by agents.
const (
	typeConflict = "conflict"
	typeChecks   = "checks"
	typeRefused  = "land_refused"
)

// follow records how the task that lands has ended.
func (d *Driver) follow(ctx context.Context, t *signalbox.Task) error {
	ev := signalbox.LandingEvent{Kind: signalbox.LandingFailed, Task: t.Landing.LandTask, Text: "the task that was to land it is gone"}
	lander, err := d.store.Task(ctx, t.Landing.LandTask)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound:
		return d.drive(ctx, t.ID, ev)
	case err != nil || !lander.State.Terminal():
		return err
	}
	r, err := d.store.Result(ctx, lander.ID)
	if err != nil {
		return err
	}
	ev.Text = lander.Message
	switch {
	case lander.State == signalbox.Completed && r.Landed != nil:
		ev.Kind, ev.Done = signalbox.LandingDone, *r.Landed
	case lander.State == signalbox.Completed:
		ev.Kind, ev.Text = signalbox.LandingStopped, fmt.Sprintf("agent %s does not say where the work has landed: it is not one of this version's daemons", lander.Agent)
	case lander.State == signalbox.Cancelled || lander.CancelRequested: // or it failed before the cancel took effect
		ev.Kind = signalbox.LandingDrop
	case r.ErrorType == typeConflict || r.ErrorType == typeChecks:
		if ev.Kind, ev.Rounds = signalbox.LandingBack, d.rounds; t.SessionID == "" {
			ev.Rounds = 0 // there is no conversation that could fix it
		}
	case r.ErrorType == typeRefused || lander.Reason == signalbox.ReasonRejected:
		ev.Kind = signalbox.LandingStopped
	}
	return d.drive(ctx, t.ID, ev)
}

// giveBack submits the turn that fixes what did not land. Its budget is the rest of the task's.
func (d *Driver) giveBack(ctx context.Context, t *signalbox.Task) error {
	if t.Budget.Over(t.Spent) {
		return d.drive(ctx, t.ID, signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: fmt.Sprintf("%s; its budget is used up (%s), so that its conversation does not go on", t.Landing.Text, t.Budget.Of(t.Spent))})
	}
	by, r, err := d.owner(ctx, t)
	if err != nil {
		return err
	}
	found, err := d.store.Result(ctx, t.Landing.LandTask)
	if err != nil {
		return err
	}
	got, err := d.engine.Submit(ctx, engine.NewTask{
		Prompt: prompt(t.Landing, found.Output), SessionID: t.SessionID, Session: signalbox.SessionRequire, Model: r.Model, Tier: r.Tier,
		TimeoutSeconds: r.TimeoutSeconds, Project: r.Project, Thinking: r.Thinking, Checking: r.Checking, Budget: t.Budget.Left(t.Spent), Priority: t.Priority,
		OnLost: t.OnLost, Source: t.Source, By: by, Scheduled: true, IdempotencyKey: "mend:" + t.Landing.LandTask,
	})
	if refused(err) {
		return d.drive(ctx, t.ID, signalbox.LandingEvent{Kind: signalbox.LandingStopped, Text: t.Landing.Text + "; its conversation cannot go on: " + err.Error()})
	}
	if err != nil {
		return err
	}
	return d.note(ctx, t.ID, signalbox.LandingEvent{Kind: signalbox.LandingFixSubmitted, Task: got.Task.ID})
}

func prompt(l *signalbox.Landing, detail string) string {
	return fmt.Sprintf("Your work could not be put %s: %s\n\n%s\n\nMend this in your working folder: where it conflicts, merge the branch %s into your work and solve the conflicts; where checks fail, correct the work. "+
		"Commit what you change, and leave no merge or rebase unfinished. It is tried again when you have ended.", onto(l), l.Text, strings.TrimSpace(detail), cmp.Or(strings.TrimPrefix(l.Onto, signalbox.LandPR), "that it is for"))
}

// followTurn records how the turn that fixes has ended.
func (d *Driver) followTurn(ctx context.Context, t *signalbox.Task) error {
	turn, err := d.store.Task(ctx, t.Landing.Turn)
	ev := signalbox.LandingEvent{Kind: signalbox.LandingStopped, Task: t.Landing.Turn}
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound:
		ev.Text = t.Landing.Text + "; the turn that was to mend it is gone"
	case err != nil || !turn.State.Terminal():
		return err
	case turn.State == signalbox.Completed:
		ev.Kind = signalbox.LandingFixed
	default:
		ev.Text = fmt.Sprintf("%s; the turn that was to mend it is %s: %s", t.Landing.Text, turn.State, turn.Message)
	}
	return d.drive(ctx, t.ID, ev)
}

// Ask queues the work of a completed task for its branch. A zero wish repeats the previous one, if any; otherwise an empty
// wish.Onto is the branch that its worktree was made from. It changes nothing if the same landing is in progress.
//
// Errors: CodeNotFound; CodeValidation; CodeConflict if there is nothing to land, or it has landed already or
// is on its way to another branch.
func (d *Driver) Ask(ctx context.Context, id string, wish signalbox.LandWish, by string) (signalbox.Task, error) {
	t, err := d.store.Task(ctx, id)
	if err != nil {
		return t, err
	}
	r, err := d.store.Result(ctx, id)
	if err != nil {
		return t, err
	}
	switch c := r.Changes; {
	case t.Mode == signalbox.ModeLand || t.Mode == signalbox.ModeTool:
		return t, signalbox.Errorf(signalbox.CodeConflict, "task %s has no work of its own to land", id)
	case t.State != signalbox.Completed: // ChangeLanding returns the error
	case c == nil || c.Workspace == "folder":
		return t, signalbox.Errorf(signalbox.CodeConflict, "task %s did not work in a worktree: what it changed in its agent's folder is there already (give the agent --workspace worktree)", id)
	case c.FilesChanged == 0 && c.Commits == 0 && t.Landing == nil: // else an earlier attempt may have changed something
		return t, signalbox.Errorf(signalbox.CodeConflict, "task %s changed nothing: there is nothing to land", id)
	default:
		if before := t.Landing; before != nil && wish == (signalbox.LandWish{}) {
			wish = before.LandWish
		}
		wish.Onto = cmp.Or(wish.Onto, c.BaseBranch)
	}
	if t.State == signalbox.Completed && wish.Onto == "" {
		return t, signalbox.Invalid("onto", "onto is missing: name the branch, because the worktree was made from none")
	}
	if err := wish.Validate("onto"); err != nil && t.State == signalbox.Completed {
		return t, err
	}
	return d.change(ctx, id, signalbox.LandingEvent{Kind: signalbox.LandingAsked, Wish: wish, By: by})
}

// Drop gives up a landing. One that is in progress is stopped; if that is too late, the work has landed all
// the same.
//
// Errors: CodeNotFound; CodeConflict if there is none, or it has landed.
func (d *Driver) Drop(ctx context.Context, id, by string) (signalbox.Task, error) {
	for {
		t, err := d.store.Task(ctx, id)
		if err != nil {
			return t, err
		}
		l := t.Landing
		switch {
		case l == nil:
			return t, signalbox.Errorf(signalbox.CodeConflict, "task %s has no landing", id)
		case l.State == signalbox.LandingActive:
			if err := d.cancel(ctx, l.LandTask, by); err != nil {
				return t, err
			}
			if err := d.step(ctx, &t); err != nil {
				return t, err
			}
			return d.store.Task(ctx, id)
		case l.State == signalbox.LandingQueued: // a director that died since may have submitted it
			by, _, err := d.owner(ctx, &t)
			if err != nil {
				return t, err
			}
			lander, err := d.store.ByKey(ctx, engine.ScopedKey(by, landKey(&t)))
			if err == nil {
				if err = d.drive(ctx, id, signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: lander.ID}); err == nil {
					continue
				}
			}
			if signalbox.CodeOf(err) != signalbox.CodeNotFound {
				return t, err
			}
		case l.State == signalbox.LandingReturned && l.Turn == "": // the turn may have been submitted
			if err := d.step(ctx, &t); err != nil {
				return t, err
			}
			continue
		case l.State == signalbox.LandingReturned: // first, so that no turn is left behind
			if err := d.cancel(ctx, l.Turn, by); err != nil {
				return t, err
			}
		}
		if t, err = d.apply(ctx, t, signalbox.LandingEvent{Kind: signalbox.LandingDrop, By: by, Text: "dropped by " + by}); !errors.Is(err, store.ErrStale) {
			return t, err
		}
	}
}

// cancel cancels a task, unless it has ended or is gone.
func (d *Driver) cancel(ctx context.Context, id, by string) error {
	_, err := d.engine.Cancel(ctx, id, by)
	switch signalbox.CodeOf(err) {
	case signalbox.CodeAlreadyEnded, signalbox.CodeNotFound:
		return nil
	}
	return err
}

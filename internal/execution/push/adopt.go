package push

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// adopt takes up what was in flight at agents whose terms begin, when the last
// director ended or gave them up. Each agent is asked about its tasks before
// anything is decided; until then their slots stay taken.
func (d *Dispatcher) adopt(ctx context.Context, taken map[string]*term) error {
	if err := d.restoreWithheld(ctx); err != nil {
		return err
	}
	tasks, err := d.Engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		// One whose agent nobody knows belongs to whoever is alone; where there
		// are several directors, reconcile finds it.
		known, unfollowed := d.unfollowed(&t)
		if !unfollowed || (taken[t.Agent] == nil && (known || !d.single())) {
			continue
		}
		if err := d.adoptTask(ctx, t); err != nil {
			return err
		}
	}
	return d.adoptOrphans(ctx, taken)
}

// unfollowed reports whether nobody here follows a task in flight that should be:
// not one of the executor, of an agent that pulls or, but for those whose terms
// begin, of another director's agent. known says that its agent has a lane.
func (d *Dispatcher) unfollowed(t *signalbox.Task) (known, unfollowed bool) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[t.Agent]
	if l == nil {
		return false, !signalbox.IsExecutor(t.Agent) && !d.pulls[t.Agent]
	}
	r := l.Runs[t.ID]
	return true, l.term != nil && (r == nil || r.Fence != t.Fence)
}

// keepWithheld goes on withholding the slots that nobody keeps: at the start, and
// where a director that stood still withheld one when another had taken its agent
// already. The row of a slot's task tells what the agent calls it, unless the task
// has been given to someone else since.
func (d *Dispatcher) restoreWithheld(ctx context.Context) error {
	slots, err := d.Engine.Read().Slots(ctx)
	for _, s := range slots {
		if !s.Withheld || !d.withhold(withheld{Slot: s}, false) {
			continue
		}
		w := withheld{Slot: s}
		if t, err := d.Engine.Read().Task(ctx, s.TaskID); err == nil && t.Fence == s.Fence {
			w.id = t.TaskID
		}
		d.withhold(w, true)
	}
	return err
}

// keep withholds a slot, where put says so, and reports whether it is to be: it is
// of an agent that this director dispatches to, and not withheld here yet.
func (d *Dispatcher) withhold(w withheld, put bool) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[w.Agent]
	if l == nil || l.term == nil || l.withholdsFence(w.Fence) {
		return false
	}
	if put {
		l.withheld = append(l.withheld, w)
		d.Update(l)
		l.probing.Send()
	}
	return true
}

// keeps reports whether the slot of that fence is withheld already.
func (l *lane) withholdsFence(fence int64) bool {
	return slices.ContainsFunc(l.withheld, func(w withheld) bool { return w.Fence == fence })
}

func (d *Dispatcher) adoptTask(ctx context.Context, t signalbox.Task) error {
	d.Mu.Lock()
	l := d.Lanes[t.Agent]
	var in *term
	if l != nil {
		in = l.term
	}
	d.Mu.Unlock()
	if l != nil && in == nil {
		return nil // it went to another director in the meantime
	}
	if l == nil { // its agent was forgotten with the task in hand: nobody can be asked
		_, err := d.Engine.Lose(ctx, t, signalbox.ReasonLost, "agent "+t.Agent+" is no longer known", false, nil)
		return execution.UnlessDecided(err)
	}
	c, err := d.Engine.Load(ctx, t.ID)
	if c.Task.ID == "" {
		return err
	}
	d.Log.Info("", "queue", "adopt", "queue_id", t.ID, "agent", l.Name, "state", string(t.State))
	r := d.newRun(l, in, c)
	r.adopted = true
	r.startTrace()
	r.startClocks()
	d.start(r, (*run).resume)
	return nil
}

// resume goes on with a task that was given to the agent before this run.
func (r *run) resume(ctx context.Context) {
	switch r.row().State {
	case signalbox.Dispatching:
		r.ask(ctx, nil)
		return
	case signalbox.Cancelling:
		r.d.sendCancel(r)
	}
	r.follow(ctx)
}

// suspect is a task in flight that nobody followed when it was first seen so.
type suspect struct {
	rev   int64
	since time.Time // monotonic
}

// reconcile takes up tasks in flight that nobody follows. There should be
// none; it is the backstop for what nobody thought of. A task is taken up
// when it was the same for long enough that another director, which may just
// be sending it, would have had its answer.
func (d *Dispatcher) reconcile(ctx context.Context, before map[string]suspect) map[string]suspect {
	_ = d.restoreWithheld(ctx) // else the next look finds them
	suspects := map[string]suspect{}
	tasks, err := d.Engine.Read().InFlight(ctx)
	if err != nil {
		return before
	}
	now := d.opts.Monotonic()
	for _, t := range tasks {
		if _, unfollowed := d.unfollowed(&t); !unfollowed {
			continue
		}
		s, known := before[t.ID]
		if !known || s.rev != t.Rev {
			s = suspect{t.Rev, now}
		}
		if now.Sub(s.since) < reconcileEvery || (t.State == signalbox.Dispatching && now.Sub(s.since) < 2*d.opts.DispatchTimeout) {
			suspects[t.ID] = s
			continue
		}
		d.Log.Error("task in flight was followed by nobody, taking it up", "queue_id", t.ID, "agent", t.Agent)
		if err := d.adoptTask(ctx, t); err != nil {
			d.Log.Error("task not taken up", "queue_id", t.ID, "error", err)
		}
	}
	return suspects
}

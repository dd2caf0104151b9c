package push

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// adopt takes over what was in flight at agents whose terms start, after the previous director ended or gave
// them up. Each agent is asked about its tasks before anything is decided; until then their slots stay taken.
func (d *Dispatcher) adopt(ctx context.Context, taken map[string]*term) error {
	if err := d.restoreWithheld(ctx); err != nil {
		return err
	}
	tasks, err := d.Engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		// A task of an unknown agent is adopted here only by a single director; with
		// several, reconcile finds it.
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

// unfollowed reports whether a task in flight should be followed here and is not: tasks of
// executors, pull agents and other directors' agents are not followed here. known says that
// its agent has a lane.
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

// restoreWithheld withholds slots whose rows say so and that are not withheld here yet: at
// the start, and if a paused director withheld one when another had taken its agent
// already. The agent's id of the task comes from the task's row, unless the task has been
// claimed again.
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

// withhold withholds a slot, if put is set, and reports whether it should be: it is of an
// agent of this director, and not withheld here yet.
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
		return nil // it went to another director
	}
	if l == nil { // its agent was removed while it had the task, so it cannot be asked
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

// resume follows a task that was offered to the agent before this run.
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

// suspect is an unfollowed task in flight, as first seen.
type suspect struct {
	rev   int64
	since time.Time // monotonic
}

// reconcile adopts tasks in flight that nobody follows. There should be none; it is a
// backstop for bugs. A task is adopted after it was unchanged long enough that another
// director, which may just be sending it, would have had its answer.
func (d *Dispatcher) reconcile(ctx context.Context, before map[string]suspect) map[string]suspect {
	_ = d.restoreWithheld(ctx) // on an error the next round finds them
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
		d.Log.Error("task in flight was not followed, adopting it", "queue_id", t.ID, "agent", t.Agent)
		if err := d.adoptTask(ctx, t); err != nil {
			d.Log.Error("task not adopted", "queue_id", t.ID, "error", err)
		}
	}
	return suspects
}

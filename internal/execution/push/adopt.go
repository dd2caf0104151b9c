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
	slots, err := d.Engine.Read().Slots(ctx)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if s.Withheld && taken[s.Agent] != nil {
			d.adoptWithheld(ctx, s, taken[s.Agent])
		}
	}
	tasks, err := d.Engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		// One whose agent nobody knows belongs to whoever is alone; where there
		// are several directors, reconcile finds it.
		abandoned := d.alone() && !d.known(t.Agent)
		if d.othersFollow(t.Agent) || (taken[t.Agent] == nil && !abandoned) || d.runOf(t) != nil {
			continue
		}
		if err := d.adoptTask(ctx, t); err != nil {
			return err
		}
	}
	return d.adoptOrphans(ctx, taken)
}

// known reports whether an agent has a lane.
func (d *Dispatcher) known(agent string) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return d.Lanes[agent] != nil
}

// adoptWithheld goes on withholding a slot. Its task's row tells what the
// agent calls it, unless the task has been given to someone else since.
func (d *Dispatcher) adoptWithheld(ctx context.Context, s signalbox.Slot, in *term) {
	w := withheld{Slot: s}
	if t, err := d.Engine.Read().Task(ctx, s.TaskID); err == nil && t.Fence == s.Fence {
		w.id = t.TaskID
	}
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if l := d.Lanes[s.Agent]; l != nil && l.term == in && !l.keeps(w.Fence) {
		l.withheld = append(l.withheld, w)
		d.Mark(l)
		l.probing.Send()
	}
}

// keeps reports whether the slot of that fence is withheld already.
func (l *lane) keeps(fence int64) bool {
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
		return execution.Undecided(err)
	}
	c, err := d.Engine.Load(ctx, t.ID)
	if c.Task.ID == "" {
		return err
	}
	d.Log.Info("", "queue", "adopt", "queue_id", t.ID, "agent", l.Name, "state", string(t.State))
	r := d.newRun(l, in, c)
	r.adopted = true
	r.traced()
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
		r.d.tellCancel(r)
	}
	r.follow(ctx)
}

// elsewhere reports whether another director dispatches to an agent, or this
// one is about to.
func (d *Dispatcher) elsewhere(agent string) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[agent]
	return l != nil && !l.ours()
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
	d.keepWithheld(ctx)
	suspects := map[string]suspect{}
	tasks, err := d.Engine.Read().InFlight(ctx)
	if err != nil {
		return before
	}
	now := d.opts.Monotonic()
	for _, t := range tasks {
		if d.othersFollow(t.Agent) || d.elsewhere(t.Agent) || d.runOf(t) != nil {
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

// keepWithheld takes up the withheld slots that nobody keeps: a director that
// stood still may have withheld one when another had taken its agent already.
func (d *Dispatcher) keepWithheld(ctx context.Context) {
	slots, err := d.Engine.Read().Slots(ctx)
	if err != nil {
		return // the next look finds them
	}
	for _, s := range slots {
		if !s.Withheld {
			continue
		}
		var in *term
		d.Mu.Lock()
		if l := d.Lanes[s.Agent]; l != nil && l.ours() && !l.keeps(s.Fence) {
			in = l.term
		}
		d.Mu.Unlock()
		if in != nil {
			d.adoptWithheld(ctx, s, in)
		}
	}
}

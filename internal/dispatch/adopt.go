package dispatch

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// adopt takes up the tasks that were in flight when the last director ended.
// Each agent is asked about its tasks before anything is decided; until then
// their slots stay taken.
func (d *Dispatcher) adopt(ctx context.Context) error {
	slots, err := d.engine.Read().Slots(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	for _, s := range slots {
		if l := d.lanes[s.Agent]; l != nil && s.Withheld {
			l.withheld = append(l.withheld, s)
		}
	}
	d.mu.Unlock()
	tasks, err := d.engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if err := d.adoptTask(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dispatcher) adoptTask(ctx context.Context, t signalbox.Task) error {
	d.mu.Lock()
	l := d.lanes[t.Agent]
	d.mu.Unlock()
	if l == nil { // its agent was forgotten with the task in hand: nobody can be asked
		_, err := d.engine.Lose(ctx, t, signalbox.ReasonLost, "agent "+t.Agent+" is no longer known", false, nil)
		return err
	}
	c, err := d.engine.Load(ctx, t.ID)
	if c.Task.ID == "" {
		return err
	}
	d.log.Info("", "queue", "adopt", "queue_id", t.ID, "agent", l.name, "state", string(t.State))
	d.begin(l, c, (*run).resume)
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

// reconcile takes up tasks in flight that nobody follows. There should be
// none; it is the backstop for what nobody thought of. A task is taken up
// when two rounds find it the same, since a claim is followed a moment after
// it is stored.
func (d *Dispatcher) reconcile(ctx context.Context, before map[string]int64) (suspects map[string]int64) {
	suspects = map[string]int64{}
	tasks, err := d.engine.Read().InFlight(ctx)
	if err != nil {
		return suspects
	}
	for _, t := range tasks {
		if d.runOf(t) != nil {
			continue
		}
		if before[t.ID] != t.Rev {
			suspects[t.ID] = t.Rev
			continue
		}
		d.log.Error("task in flight was followed by nobody, taking it up", "queue_id", t.ID, "agent", t.Agent)
		if err := d.adoptTask(ctx, t); err != nil {
			d.log.Error("task not taken up", "queue_id", t.ID, "error", err)
		}
	}
	return suspects
}

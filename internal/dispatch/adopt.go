package dispatch

import (
	"context"
	"time"

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
	for _, s := range slots {
		if s.Withheld && !ours(s.Agent) {
			d.adoptWithheld(ctx, s)
		}
	}
	tasks, err := d.engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if ours(t.Agent) {
			continue
		}
		if err := d.adoptTask(ctx, t); err != nil {
			return err
		}
	}
	return d.adoptStrays(ctx)
}

// adoptWithheld goes on withholding a slot. Its task's row tells what the
// agent calls it, unless the task has been given to someone else since.
func (d *Dispatcher) adoptWithheld(ctx context.Context, s signalbox.Slot) {
	w := withheld{Slot: s}
	if t, err := d.engine.Read().Task(ctx, s.TaskID); err == nil && t.Fence == s.Fence {
		w.id = t.TaskID
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.lanes[s.Agent]; l != nil {
		l.withheld = append(l.withheld, w)
	}
}

func (d *Dispatcher) adoptTask(ctx context.Context, t signalbox.Task) error {
	d.mu.Lock()
	l := d.lanes[t.Agent]
	d.mu.Unlock()
	if l == nil { // its agent was forgotten with the task in hand: nobody can be asked
		_, err := d.engine.Lose(ctx, t, signalbox.ReasonLost, "agent "+t.Agent+" is no longer known", false, nil)
		switch signalbox.CodeOf(err) {
		case signalbox.CodeStaleFence, signalbox.CodeAlreadyEnded, signalbox.CodeNotFound:
			return nil
		}
		return err
	}
	c, err := d.engine.Load(ctx, t.ID)
	if c.Task.ID == "" {
		return err
	}
	d.log.Info("", "queue", "adopt", "queue_id", t.ID, "agent", l.name, "state", string(t.State))
	r := d.newRun(l, c)
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
	suspects := map[string]suspect{}
	tasks, err := d.engine.Read().InFlight(ctx)
	if err != nil {
		return before
	}
	now := d.opts.Monotonic()
	for _, t := range tasks {
		if ours(t.Agent) || d.runOf(t) != nil {
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
		d.log.Error("task in flight was followed by nobody, taking it up", "queue_id", t.ID, "agent", t.Agent)
		if err := d.adoptTask(ctx, t); err != nil {
			d.log.Error("task not taken up", "queue_id", t.ID, "error", err)
		}
	}
	return suspects
}

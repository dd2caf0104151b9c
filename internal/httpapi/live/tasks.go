package live

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func taskKey(id string) string { return "task:" + id }

// liveTask is the form of a task in flight in the view. live is its agent.
func (r *refresh) liveTask(t *signalbox.Task, live engine.LiveAgent) api.LiveTask {
	row := view.LiveTask(t)
	if t.CancelRequested || t.State == signalbox.Cancelling {
		row.CancelledAt = view.Time(r.inbox.cancelledAt(t.ID, len(r.inFlight)))
	}
	if call, ok := r.calls[t.ID]; ok {
		row.Call = &call
	}
	if t.State == signalbox.Working {
		row.Note = live.Notes[t.ID]
	}
	if at := printedAt(t, &live); !t.StartedAt.IsZero() && at.After(t.StartedAt) {
		row.LastProgress = view.Time(at.UTC().Truncate(time.Second))
	}
	return row
}

// printedAt is when a task last printed something; zero: not yet, or unknown.
func printedAt(t *signalbox.Task, live *engine.LiveAgent) time.Time {
	switch {
	case signalbox.IsExecutor(t.Agent):
		return time.Time{}
	case live.Progress != nil:
		return live.Progress[t.ID]
	}
	return live.LastProgress
}

// line returns the first tasks of a queue, with their owners.
func (r *refresh) line(queue string) (line []api.LiveTask, owners []string) {
	line = []api.LiveTask{} // not null in JSON
	for i := range r.snapshot.Heads[queue] {
		t := &r.snapshot.Heads[queue][i]
		row := view.LiveTask(t)
		row.Position = i + 1
		row.ETA, row.WaitingFor = r.eta(t, i+1), r.waitingFor(t)
		line, owners = append(line, row), append(owners, t.Owner)
	}
	return line, owners
}

// sameETAs reports whether the first tasks of a queue still have the shown ETAs.
func (r *refresh) sameETAs(queue string, head []signalbox.Task) bool {
	for i := range head {
		shown := r.shownTask(&head[i])
		if shown == nil {
			return false
		}
		eta := r.eta(&head[i], i+1)
		if (eta == nil) != (shown.ETA == nil) || eta != nil && *eta != *shown.ETA {
			return false
		}
	}
	return true
}

// shownTask is the form of a task in the view; nil if it is neither in flight nor among the
// first of its queue.
func (b *builder) shownTask(t *signalbox.Task) *api.LiveTask {
	if e := b.entities[taskKey(t.ID)]; e != nil {
		return e.task
	}
	var line []api.LiveTask
	if e := b.entities["queue:"+t.Queue]; e != nil {
		line = e.queue.Line
	} else if name, own := signalbox.QueueAgent(t.Queue); own && b.entities["agent:"+name] != nil {
		line = b.entities["agent:"+name].agent.Line
	}
	for i := range line {
		if line[i].QueueID == t.ID {
			return &line[i]
		}
	}
	return nil
}

// eta is the rounded estimate of a waiting task's start; nil if there is none.
func (r *refresh) eta(t *signalbox.Task, position int) *api.ETA {
	eta := r.cfg.Engine.ETA(r.ctx, t, store.Position{N: position})
	if eta == nil {
		return nil
	}
	return roundETA(eta)
}

// roundETA rounds a range outwards, so that it stays the same for a while.
func roundETA(eta *engine.ETA) *api.ETA {
	step := 5 * time.Second
	if eta.High > 10*time.Minute {
		step = time.Minute
	}
	rounded := engine.ETA{Low: eta.Low.Truncate(step), High: (eta.High + step - 1).Truncate(step), Runs: eta.Runs}
	return view.ETA(&rounded)
}

// addUntracked adds changes in the journal to the delta that concern no entity: schedules,
// and tasks that have ended or wait behind the first of their queue.
func (r *refresh) addUntracked(changes *journalChanges) error {
	if len(changes.schedules) > 0 {
		r.schedules.dirty = true
	}
	if changes.incomplete || !changes.collectTasks {
		return nil
	}
	ids := slices.DeleteFunc(changes.taskIDs, func(id string) bool { return r.inFlight[id] != nil })
	if len(ids) > 0 {
		if err := r.addUntrackedTasks(ids); err != nil {
			return err
		}
	}
	existing, gone := r.schedules.changed(r.ctx, r.cfg.Schedules, changes.schedules)
	r.delta.entities = append(r.delta.entities, existing...)
	r.delta.gone = append(r.delta.gone, gone...)
	return nil
}

func (r *refresh) addUntrackedTasks(ids []string) error {
	tasks, err := r.cfg.Engine.Read().Tasks(r.ctx, ids)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		found[t.ID] = true
		if t.State.InFlight() { // claimed after the snapshot: the next refresh has it
			continue
		}
		row := view.LiveTask(t)
		row.WaitingFor = r.waitingFor(t)
		r.delta.entities = append(r.delta.entities, render(&entity{key: taskKey(t.ID), task: &row, owner: t.Owner}))
	}
	for _, id := range ids {
		if !found[id] {
			r.delta.gone = append(r.delta.gone, &entity{key: taskKey(id), task: &api.LiveTask{QueueID: id}})
		}
	}
	return nil
}

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

// taskRow is a task in flight, at an agent as it is now.
func (l *refresh) taskRow(t *signalbox.Task, live engine.LiveAgent) api.LiveTask {
	row := view.LiveTask(t)
	if t.CancelRequested || t.State == signalbox.Cancelling {
		row.CancelledAt = view.Time(l.inbox.cancelledAt(t.ID, len(l.inFlight)))
	}
	if call, makes := l.calls[t.ID]; makes {
		row.Call = &call
	}
	if t.State == signalbox.Working {
		row.Note = live.Notes[t.ID]
	}
	if printed := progress(t, &live); !t.StartedAt.IsZero() && printed.After(t.StartedAt) {
		row.LastProgress = view.Time(printed.UTC().Truncate(time.Second))
	}
	return row
}

// progress is when a task printed anything last; zero: not yet, or not known.
func progress(t *signalbox.Task, live *engine.LiveAgent) time.Time {
	switch {
	case signalbox.IsExecutor(t.Agent):
		return time.Time{}
	case live.Progress != nil:
		return live.Progress[t.ID]
	}
	return live.LastProgress
}

// line describes the head of a queue.
func (l *refresh) line(queue string) (line []api.LiveTask, owners []string) {
	line = []api.LiveTask{}
	for i := range l.snapshot.Heads[queue] {
		t := &l.snapshot.Heads[queue][i]
		row := view.LiveTask(t)
		row.Position = i + 1
		row.ETA = l.eta(t, i+1)
		line, owners = append(line, row), append(owners, t.Owner)
	}
	return line, owners
}

// sameEstimates reports whether the tasks at the head of a queue are expected to
// start when they were, as far as that is shown.
func (l *refresh) sameEstimates(queue string, head []signalbox.Task) bool {
	for i := range head {
		shown := l.rowOf(&head[i])
		if shown == nil {
			return false
		}
		eta := l.eta(&head[i], i+1)
		if (eta == nil) != (shown.ETA == nil) || eta != nil && *eta != *shown.ETA {
			return false
		}
	}
	return true
}

// rowOf is what is shown of a task: one in flight, or among the first of its line.
func (b *builder) rowOf(t *signalbox.Task) *api.LiveTask {
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

// eta is an estimate that does not change with every breath.
func (l *refresh) eta(t *signalbox.Task, position int) *api.ETA {
	eta := l.cfg.Engine.ETA(l.ctx, t, store.Position{N: position})
	if eta == nil {
		return nil
	}
	return coarse(eta)
}

// coarse rounds a range outwards.
func coarse(eta *engine.ETA) *api.ETA {
	step := 5 * time.Second
	if eta.High > 10*time.Minute {
		step = time.Minute
	}
	rounded := engine.ETA{Low: eta.Low.Truncate(step), High: (eta.High + step - 1).Truncate(step), Runs: eta.Runs}
	return view.ETA(&rounded)
}

// moved adds to the change what changed and is not shown of itself: tasks
// that ended or wait far behind, and schedules.
func (l *refresh) moved(changes *journalChanges) error {
	if len(changes.schedules) > 0 {
		l.plans.changed = true
	}
	if changes.incomplete || !changes.collectTasks {
		return nil
	}
	ids := slices.DeleteFunc(changes.taskIDs, func(id string) bool { return l.inFlight[id] != nil })
	if len(ids) > 0 {
		if err := l.movedTasks(ids); err != nil {
			return err
		}
	}
	there, gone := l.plans.moved(l.ctx, l.cfg.Schedules, changes.schedules)
	l.change.entities = append(l.change.entities, there...)
	l.change.gone = append(l.change.gone, gone...)
	return nil
}

func (l *refresh) movedTasks(ids []string) error {
	tasks, err := l.cfg.Engine.Read().Tasks(l.ctx, ids)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		there[t.ID] = true
		if t.State.InFlight() { // since the look: the next one has it
			continue
		}
		row := view.LiveTask(t)
		l.change.entities = append(l.change.entities, rendered(&entity{key: taskKey(t.ID), task: &row, owner: t.Owner}))
	}
	for _, id := range ids {
		if !there[id] {
			l.change.gone = append(l.change.gone, &entity{key: taskKey(id), task: &api.LiveTask{QueueID: id}})
		}
	}
	return nil
}

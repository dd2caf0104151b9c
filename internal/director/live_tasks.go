package director

import (
	"context"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// liveTask is a task as a row of a list.
func liveTask(t *signalbox.Task) api.LiveTask {
	v := api.LiveTask{
		QueueID: t.ID, State: string(t.State), Reason: string(t.Reason), Message: t.Message, Queue: t.Queue,
		Mode: modeView(t.Mode), Tool: t.Tool, PromptPreview: t.Preview, Source: string(t.Source), SourceJob: t.SourceJob, RetryOf: t.RetryOf,
		By: askedBy(t), Attempts: t.Attempts, CreatedAt: t.CreatedAt, EndedAt: timePtr(t.EndedAt),
	}
	if t.State != signalbox.Pending { // what the row keeps of its last claim would look as if an agent had it
		v.Agent, v.Slot, v.Fence, v.StartedAt = t.Agent, t.Slot, t.Fence, timePtr(t.StartedAt)
		if signalbox.Isolated(t.Slot) {
			v.Slot -= signalbox.FirstIsolatedSlot
		}
	}
	return v
}

// askedBy is who asked for a task, for people.
func askedBy(t *signalbox.Task) string {
	if t.OwnerEmail != "" {
		return t.OwnerEmail
	}
	kind, id, _ := strings.Cut(t.Owner, ":")
	return strings.TrimSpace(kind + " " + id)
}

func taskKey(id string) string { return "task:" + id }

// markTask adds all that a row of a list shows. Its revision stands for what
// the store keeps.
func markTask(m *marking, rev int64, v *api.LiveTask) {
	m.text(v.QueueID, v.Note).num(rev, int64(v.Position)).time(v.CancelledAt).time(v.LastProgress)
	if v.ETA != nil {
		m.num(int64(v.ETA.LowSeconds), int64(v.ETA.HighSeconds), int64(v.ETA.Runs))
	}
	if c := v.Call; c != nil {
		waits := int64(0)
		if c.Waiting {
			waits = 1
		}
		m.text(c.Tool, c.Capacity).num(waits, c.Since.UnixNano(), int64(c.InUse), int64(c.Concurrent))
	}
}

// findTasks describes what is in flight.
func (v *view) findTasks() {
	e := v.eyes
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.cancelled) > 2*len(v.shot.InFlight)+100 { // what another director has ended
		clear(e.cancelled)
	}
	for i := range v.shot.InFlight {
		t := &v.shot.InFlight[i]
		row := liveTask(t)
		if t.CancelRequested || t.State == signalbox.Cancelling {
			at, known := e.cancelled[t.ID]
			if !known {
				at = v.now
				e.cancelled[t.ID] = at
			}
			row.CancelledAt = &at
		}
		row.Call = v.callOf(t)
		if t.State == signalbox.Working {
			row.Note = v.live[t.Agent].Notes[t.ID]
		}
		if printed := v.progress(t); !t.StartedAt.IsZero() && printed.After(t.StartedAt) {
			row.LastProgress = timePtr(printed.UTC().Truncate(time.Second))
		}
		v.flying[t.ID] = &row
	}
}

// progress is when a task printed anything last; zero: not yet, or not known.
func (v *view) progress(t *signalbox.Task) time.Time {
	live := v.live[t.Agent]
	switch {
	case isExecutor(t.Agent):
		return time.Time{}
	case live.Progress != nil:
		return live.Progress[t.ID]
	}
	return live.LastProgress
}

// findCalls finds the tasks whose calls hold the slots of tool queues, or wait
// for one.
func (v *view) findCalls() {
	v.calls = map[string]*api.LiveCall{}
	for i := range v.queues {
		q := &v.queues[i]
		for _, h := range q.Holders {
			if h.Execution != "" && !h.Idle {
				v.calls[h.Execution] = &api.LiveCall{Tool: h.Tool, Capacity: q.Name, Since: h.Since.UTC(), InUse: q.InUse, Concurrent: q.Concurrent}
			}
		}
	}
	for i := range v.queues { // of several calls, that which waits says more
		q := &v.queues[i]
		for _, w := range q.Waiters {
			if c := v.calls[w.Execution]; w.Execution != "" && (c == nil || !c.Waiting) {
				v.calls[w.Execution] = &api.LiveCall{Tool: w.Tool, Capacity: q.Name, Waiting: true, Since: w.Since.UTC(), InUse: q.InUse, Concurrent: q.Concurrent}
			}
		}
	}
}

func (v *view) callOf(t *signalbox.Task) *api.LiveCall { return v.calls[t.ID] }

// addTasks adds what is in flight.
func (v *view) addTasks(s *scene) {
	for i := range v.shot.InFlight {
		t := &v.shot.InFlight[i]
		s.add(v.flyingPart(t))
	}
}

func (v *view) flyingPart(t *signalbox.Task) *part {
	row := v.flying[t.ID]
	m := newMarking()
	markTask(m, t.Rev, row)
	return &part{key: taskKey(t.ID), task: row, owner: t.Owner, mark: m.sum()}
}

// line describes the head of a queue, and adds it to a mark.
func (v *view) line(queue string, m *marking) (line []api.LiveTask, owners []string) {
	line = []api.LiveTask{}
	for i := range v.shot.Heads[queue] {
		t := &v.shot.Heads[queue][i]
		row := liveTask(t)
		row.Position = i + 1
		row.ETA = v.eta(t, i+1)
		markTask(m, t.Rev, &row)
		line, owners = append(line, row), append(owners, t.Owner)
	}
	return line, owners
}

// eta is an estimate that does not change with every breath.
func (v *view) eta(t *signalbox.Task, position int) *api.ETA {
	eta := v.eyes.d.engine.ETA(v.ctx, t, store.Position{N: position})
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
	return etaView(&rounded)
}

// moved returns what changed between two looks and stands in no scene: tasks
// that ended or wait far behind, and schedules. known is false where too much
// has happened to tell.
func (e *eyes) moved(ctx context.Context, before, now *scene, watched bool) (parts []*part, known bool, err error) {
	if before == nil {
		err := e.tally.seed(ctx, e.d.engine.Read(), now.at, now.entry)
		e.tally.into(&now.totals, now.at)
		return nil, true, err
	}
	news := &tidings{wanted: watched, ids: map[string]bool{}, schedules: map[string]bool{}}
	if err := e.read(ctx, before.entry, now.entry, news); err != nil {
		return nil, false, err
	}
	e.tally.into(&now.totals, now.at)
	if len(news.schedules) > 0 {
		e.plans.changed = true
	}
	if news.tooMuch || !watched {
		return nil, false, nil
	}
	for _, id := range news.order {
		p, err := e.movedTask(ctx, now, id)
		if err != nil {
			return nil, false, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	return append(parts, e.plans.moved(ctx, e.d.cfg.Schedules, news.schedules)...), true, nil
}

// movedTask is a task that changed, unless the scene has it.
func (e *eyes) movedTask(ctx context.Context, now *scene, id string) (*part, error) {
	if now.parts[taskKey(id)] != nil {
		return nil, nil
	}
	t, err := e.d.engine.Read().Task(ctx, id)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound:
		return &part{key: taskKey(id), mark: goneMark, task: &api.LiveTask{QueueID: id}}, nil
	case err != nil:
		return nil, err
	case t.State.InFlight(): // since the look: the next one has it
		return nil, nil
	}
	row := liveTask(&t)
	return &part{key: taskKey(id), task: &row, owner: t.Owner, mark: uint64(t.Rev)}, nil
}

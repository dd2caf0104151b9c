package memory

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// findEndings is among how many of the newest tasks Find searches for endings.
const findEndings = 10_000

// Task returns a row.
func (b *Backend) Task(_ context.Context, id string) (*signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return taskOf(b.ids[id]), nil
}

// Tasks returns rows.
func (b *Backend) Tasks(_ context.Context, ids []string) ([]*signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	rows := make([]*signalbox.Task, len(ids))
	for i, id := range ids {
		rows[i] = taskOf(b.ids[id])
	}
	return rows, nil
}

// Whole returns everything stored of a task.
func (b *Backend) Whole(_ context.Context, id string) (w verbs.Whole, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	r := b.ids[id]
	if r == nil {
		return w, nil
	}
	w = verbs.Whole{Task: r.task, Request: r.request.Clone(), Result: r.result.Clone()}
	if d := b.doc(verbs.DocKey{Kind: verbs.KindStale, ID: strconv.FormatInt(r.task.Seq, 10)}); d != nil {
		w.Stales = d.Body
	}
	return w, nil
}

// Find returns the ids that start or end with part, newest first.
func (b *Backend) Find(_ context.Context, part string, limit int) (ids []string, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for n, p := range slices.Backward(b.submitted) {
		if len(ids) >= limit {
			break
		}
		recent := len(b.submitted)-n <= findEndings
		id := p.row.task.ID
		if strings.HasPrefix(id, part) || (recent && strings.HasSuffix(id, part)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Waiting lists pending tasks in claim order.
func (b *Backend) Waiting(_ context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	line := b.pending
	if queue != "" {
		line = b.waiting.get(queue)
	}
	if after != (store.Cursor{}) {
		line = line.after(after.OrderKey, after.Place)
	}
	return tasks(line, limit), nil
}

// InFlight lists the tasks that hold a slot.
func (b *Backend) InFlight(context.Context) ([]signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return tasks(b.inFlight, math.MaxInt), nil
}

// Overdue lists pending tasks that have waited too long.
func (b *Backend) Overdue(_ context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return tasks(b.bounded.upTo(now.UnixMilli()), limit), nil
}

// SessionTasks lists pending and in-flight tasks of a session.
func (b *Backend) SessionTasks(_ context.Context, session string, limit int) ([]signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return tasks(b.turns.get(session), limit), nil
}

// Durations returns the run times of the newest completed tasks of an agent.
func (b *Backend) Durations(_ context.Context, agent string, limit int) (took []time.Duration, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, p := range slices.Backward(b.runs.get(agent)) {
		if len(took) >= limit {
			break
		}
		took = append(took, max(0, p.row.task.EndedAt.Sub(p.row.task.StartedAt)))
	}
	return took, nil
}

// Children lists the tasks of a parent.
func (b *Backend) Children(_ context.Context, parent string, limit int) ([]signalbox.Task, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return tasks(b.children.get(parent), limit), nil
}

// Slots lists the slots in use.
func (b *Backend) Slots(context.Context) ([]signalbox.Slot, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.allSlots(), nil
}

func (b *Backend) allSlots() (slots []signalbox.Slot) {
	for _, agent := range slices.Sorted(maps.Keys(b.slots)) {
		slots = append(slots, b.slots[agent]...)
	}
	return slots
}

// Counts returns how many tasks wait and run.
func (b *Backend) Counts(context.Context) (store.Counts, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.counts(), nil
}

func (b *Backend) counts() store.Counts {
	c := store.Counts{Queues: make(map[string]int, len(b.waiting.by)), Limits: maps.Clone(b.limits), Pending: len(b.pending), InFlight: map[signalbox.State]int{}}
	for queue, line := range b.waiting.by {
		c.Queues[queue] = len(*line)
	}
	for i := range b.inFlight {
		c.InFlight[b.inFlight[i].row.task.State]++
	}
	if len(b.created) > 0 {
		c.Oldest = b.created[0].row.task.CreatedAt
	}
	return c
}

// Lengths returns how many tasks wait in each of these queues.
func (b *Backend) Lengths(_ context.Context, queues []string) ([]int, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := make([]int, len(queues))
	for i, queue := range queues {
		n[i] = len(b.waiting.get(queue))
	}
	return n, nil
}

// Before counts the tasks before a pending task in its queue.
func (b *Backend) Before(_ context.Context, id string, _ int) (n int, exact bool, task *signalbox.Task, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t := taskOf(b.ids[id])
	if t != nil && t.State.Waiting() {
		n = b.waiting.get(t.Queue).rank(t.OrderKey(), t.Place)
	}
	return n, true, t, nil
}

// Ended lists ended tasks before a cursor, newest end first.
func (b *Backend) Ended(_ context.Context, before store.EndedCursor, limit int) (ended []signalbox.Task, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, p := range slices.Backward(b.ended[:b.ended.rank(before.EndedMS, before.Seq)]) {
		if len(ended) >= limit {
			break
		}
		ended = append(ended, *p.row.task)
	}
	return ended, nil
}

// Snapshot returns a consistent snapshot of waiting and running tasks.
func (b *Backend) Snapshot(_ context.Context, heads int) (s store.Snapshot, pauses []verbs.Doc, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s = store.Snapshot{
		Entry: b.counters.Entry, Counts: b.counts(), InFlight: tasks(b.inFlight, math.MaxInt), Slots: b.allSlots(), Heads: map[string][]signalbox.Task{},
	}
	if heads > 0 {
		for queue, line := range b.waiting.by {
			s.Heads[queue] = tasks(*line, heads)
		}
	}
	return s, b.page(&verbs.Page{Kind: verbs.KindPause}), nil
}

// Entries returns journal entries with a Seq above after, oldest first.
func (b *Backend) Entries(_ context.Context, after int64, limit int) ([]verbs.Entry, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(first(b.entries[b.entriesUpTo(after):], limit)), nil
}

// EntryRange returns the oldest and newest Seq in the journal.
func (b *Backend) EntryRange(context.Context) (oldest, newest int64, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.entries) == 0 {
		return 0, 0, nil
	}
	return b.entries[0].Seq, b.counters.Entry, nil
}

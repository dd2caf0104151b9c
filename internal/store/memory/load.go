package memory

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Load answers a want.
func (b *Backend) Load(_ context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	l := &verbs.Loaded{Counters: b.counters, Number: b.numbers[w.Writer], InUse: b.inUse}
	for _, id := range w.Tasks {
		l.Tasks = append(l.Tasks, taskOf(b.ids[id]))
	}
	for _, key := range w.Keys {
		l.Keys = append(l.Keys, taskOf(b.keys[key]))
	}
	for _, seq := range w.Requests {
		var q *signalbox.Request
		if r := b.seqs[seq]; r != nil {
			q = r.request.Clone()
		}
		l.Requests = append(l.Requests, q)
	}
	for _, want := range w.Lines {
		line := b.ready.get(want.Queue)
		if want.After != (store.Cursor{}) {
			line = line.after(want.After.OrderKey, want.After.Place)
		}
		l.Lines = append(l.Lines, pointers(line, want.N))
	}
	for _, queue := range w.Queues {
		l.Queues = append(l.Queues, verbs.QueueCount{Waiting: len(b.waiting.get(queue)), Ready: len(b.ready.get(queue))})
	}
	for _, limit := range w.Limits {
		l.Limits = append(l.Limits, b.limits[limit])
	}
	for _, session := range w.Turns {
		l.Turns = append(l.Turns, pointers(b.turns.get(session), math.MaxInt))
	}
	for _, want := range w.Heads {
		l.Heads = append(l.Heads, b.head(want))
	}
	for _, session := range w.Named {
		l.Named = append(l.Named, b.named[session] > 0)
	}
	for _, agent := range w.Slots {
		l.Slots = append(l.Slots, slices.Clone(b.slots[agent]))
	}
	b.loadRest(w, l)
	return l, nil
}

func (b *Backend) loadRest(w *verbs.Want, l *verbs.Loaded) {
	if w.Due != nil {
		l.Due, l.NextDue = b.due(w.Due)
	}
	if e := w.Ended; e != nil {
		l.Ended = pointers(b.ended.upTo(e.Before-1).after(e.After.EndedMS, e.After.Seq), e.N)
	}
	if w.Cut != nil {
		for i := range b.entries {
			if !b.entries[i].At.Before(*w.Cut) {
				break
			}
			l.Cut = b.entries[i].Seq
		}
	}
	for _, key := range w.Docs {
		l.Docs = append(l.Docs, b.doc(key))
	}
	for i := range w.Pages {
		l.Pages = append(l.Pages, b.page(&w.Pages[i]))
	}
}

// head finds the busy tasks of a session by a scan: a store in memory loads whole sessions, so
// only tests use it.
func (b *Backend) head(w verbs.HeadWant) verbs.Head {
	h := verbs.Head{UpTo: verbs.EndOfLine}
	for n, s := range b.turns.get(w.Session) {
		t := s.row.task
		if n < w.N || t.Ready || t.State.InFlight() {
			h.Tasks = append(h.Tasks, t)
		}
		if n == w.N {
			h.UpTo = store.CursorOf(h.Tasks[w.N-1])
		}
	}
	return h
}

func (b *Backend) due(w *verbs.DueWant) (due []*signalbox.Task, next time.Time) {
	passed := b.timed.upTo(w.Until.UnixMilli())
	if later := b.timed[len(passed):]; len(later) > 0 {
		next = later[0].row.task.NotBefore
	}
	return pointers(passed.after(w.After.UnixMilli(), w.AfterPlace), w.N), next
}

func taskOf(r *row) *signalbox.Task {
	if r == nil {
		return nil
	}
	return r.task
}

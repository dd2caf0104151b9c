package verbs_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// small is what was asked for of tasks, of every third not: that is large.
func (d *data) small(tasks []*signalbox.Task) []*signalbox.Request {
	list := make([]*signalbox.Request, len(tasks))
	for i, t := range tasks {
		if q, known := d.requests[t.Seq]; known && t.Seq%3 != 0 {
			q = copyRequest(q)
			list[i] = &q
		}
	}
	return list
}

// load answers a want, as a backend must.
func (d *data) load(w *verbs.Want) *verbs.Loaded {
	l := &verbs.Loaded{Counters: d.Counters, Number: d.writers[w.Writer], InUse: d.inUse}
	for _, id := range w.Tasks {
		l.Tasks = append(l.Tasks, d.bySeq(d.ids[id]))
	}
	for _, key := range w.Keys {
		l.Keys = append(l.Keys, d.bySeq(d.keys[key]))
	}
	for _, seq := range w.Requests {
		var q *signalbox.Request
		if stored, known := d.requests[seq]; known {
			stored = copyRequest(stored)
			q = &stored
		}
		l.Requests = append(l.Requests, q)
	}
	for _, want := range w.Lines {
		tasks := first(d.line(want), want.N)
		l.Lines, l.LineRequests = append(l.Lines, tasks), append(l.LineRequests, d.small(tasks))
	}
	for _, queue := range w.Queues {
		l.Queues = append(l.Queues, d.queues[queue])
	}
	for _, limit := range w.Limits {
		l.Limits = append(l.Limits, d.limits[limit])
	}
	for _, session := range w.Turns {
		l.Turns = append(l.Turns, d.turn(session))
	}
	for _, session := range w.Named {
		l.Named = append(l.Named, d.one(func(t *signalbox.Task) bool { return t.SessionID == session }) != nil)
	}
	for _, agent := range w.Slots {
		l.Slots = append(l.Slots, d.slotsOf(func(s *signalbox.Slot) bool { return s.Agent == agent }))
	}
	d.loadRest(w, l)
	for n, log := range slices.Backward(d.logs) {
		if from, _ := verbs.LogSpan(log); w.Since != 0 && from == w.Since {
			l.Logs = d.logs[n:]
		}
	}
	return l
}

func (d *data) loadRest(w *verbs.Want, l *verbs.Loaded) {
	if w.Due != nil {
		l.Due, l.NextDue = d.due(w.Due)
	}
	if w.Ended != nil {
		l.Ended = first(d.sorted(byEnd, func(t *signalbox.Task) bool {
			return t.State.Terminal() && t.EndedAt.UnixMilli() < w.Ended.Before && endedBehind(t, w.Ended.After)
		}), w.Ended.N)
	}
	if w.Cut != nil {
		for i := range d.entries {
			if !d.entries[i].At.Before(*w.Cut) {
				break
			}
			l.Cut = d.entries[i].Seq
		}
	}
	for _, key := range w.Docs {
		var doc *verbs.Doc
		if stored, known := d.docs[key]; known {
			stored.Body = slices.Clone(stored.Body)
			doc = &stored
		}
		l.Docs = append(l.Docs, doc)
	}
	for _, p := range w.Pages {
		l.Pages = append(l.Pages, d.page(p))
	}
}

func (d *data) line(w verbs.LineWant) []*signalbox.Task {
	return d.sorted(byOrder, func(t *signalbox.Task) bool {
		return t.State == signalbox.Pending && t.Ready && t.Queue == w.Queue && (w.After == (store.Cursor{}) || w.After.Before(store.CursorOf(t)))
	})
}

func (d *data) turn(session string) []*signalbox.Task {
	return d.sorted(byOrder, func(t *signalbox.Task) bool { return t.SessionID == session && !t.State.Terminal() })
}

func (d *data) due(w *verbs.DueWant) (list []*signalbox.Task, next time.Time) {
	after := w.After.UnixMilli()
	waits := d.sorted(byNotBefore, func(t *signalbox.Task) bool {
		return t.State == signalbox.Pending && !t.Ready && !t.NotBefore.IsZero()
	})
	for _, t := range waits {
		at := t.NotBefore.UnixMilli()
		switch {
		case at > w.Until.UnixMilli():
			return first(list, w.N), t.NotBefore
		case at > after || (at == after && t.Place > w.AfterPlace):
			list = append(list, t)
		}
	}
	return first(list, w.N), time.Time{}
}

func (d *data) slotsOf(takes func(*signalbox.Slot) bool) (list []signalbox.Slot) {
	for _, s := range d.slots {
		if takes(&s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b signalbox.Slot) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Slot, b.Slot))
	})
	return list
}

func (d *data) page(p verbs.Page) (list []verbs.Doc) {
	order := func(a, b verbs.Doc) int {
		n := strings.Compare(a.ID, b.ID)
		if p.BySort {
			n = cmp.Or(cmp.Compare(a.Sort, b.Sort), n)
		}
		if p.Falling {
			return -n
		}
		return n
	}
	for _, doc := range d.docs {
		if doc.Kind == p.Kind && (p.After == nil || order(*p.After, doc) < 0) {
			doc.Body = slices.Clone(doc.Body)
			list = append(list, doc)
		}
	}
	slices.SortFunc(list, order)
	if p.Limit > 0 {
		list = first(list, p.Limit)
	}
	return list
}

func (d *data) bySeq(seq int64) *signalbox.Task {
	if t, known := d.tasks[seq]; known {
		return &t
	}
	return nil
}

func (d *data) one(takes func(*signalbox.Task) bool) *signalbox.Task {
	for _, t := range d.tasks {
		if takes(&t) {
			return &t
		}
	}
	return nil
}

func (d *data) sorted(order func(a, b *signalbox.Task) int, takes func(*signalbox.Task) bool) (list []*signalbox.Task) {
	for _, t := range d.tasks {
		if takes(&t) {
			list = append(list, &t)
		}
	}
	slices.SortFunc(list, order)
	return list
}

func first[T any](list []T, n int) []T { return list[:max(0, min(n, len(list)))] }

func byOrder(a, b *signalbox.Task) int {
	return cmp.Or(cmp.Compare(a.OrderKey(), b.OrderKey()), cmp.Compare(a.Place, b.Place))
}

func byEnd(a, b *signalbox.Task) int {
	return cmp.Or(cmp.Compare(a.EndedAt.UnixMilli(), b.EndedAt.UnixMilli()), cmp.Compare(a.Seq, b.Seq))
}

func byNotBefore(a, b *signalbox.Task) int {
	return cmp.Or(cmp.Compare(a.NotBefore.UnixMilli(), b.NotBefore.UnixMilli()), cmp.Compare(a.Place, b.Place))
}

func endedBehind(t *signalbox.Task, after store.EndedSpot) bool {
	at := store.EndedSpotOf(t)
	return at.EndedMS > after.EndedMS || at.EndedMS == after.EndedMS && at.Seq > after.Seq
}

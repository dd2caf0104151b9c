package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Commit writes a delta.
func (b *Backend) Commit(_ context.Context, d *verbs.Delta) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.From.Moment != b.counters.Moment {
		return verbs.ErrMoved
	}
	for i := range d.Tasks {
		if c := &d.Tasks[i]; c.Before == nil && b.taken(c.After) {
			return verbs.ErrTaken
		}
	}
	for i := range d.Tasks {
		b.change(&d.Tasks[i])
	}
	for i := range d.Requests {
		r, q := b.seqs[d.Requests[i].Seq], d.Requests[i].Request.Clone()
		if r.request != nil {
			q.SealedEnv = r.request.SealedEnv
		}
		r.request = q
	}
	for i := range d.Results {
		b.seqs[d.Results[i].Seq].result = d.Results[i].Result.Clone()
	}
	for i := range d.Slots {
		b.slot(&d.Slots[i])
	}
	for i := range d.Docs {
		b.kind(d.Docs[i].Kind).put(d.Docs[i])
	}
	for i := range d.Entries {
		b.entries = append(b.entries, verbs.Entry{Entry: d.Entries[i], Writer: d.Writer})
	}
	if d.Cut > 0 {
		b.entries = slices.Delete(b.entries, 0, b.entriesUpTo(d.Cut))
	}
	b.counters, b.inUse = d.To, d.InUse
	b.numbers[d.Writer] = d.Number
	return nil
}

func (b *Backend) taken(t *signalbox.Task) bool {
	return b.ids[t.ID] != nil || (t.IdempotencyKey != "" && b.keys[t.IdempotencyKey] != nil)
}

func (b *Backend) change(c *verbs.TaskChange) {
	switch {
	case c.Before == nil:
		b.insert(c.After)
		return
	case c.After == nil:
		b.removeTask(c.Before)
		return
	}
	r := b.seqs[c.Before.Seq]
	b.removeFromLists(r.task)
	r.task = c.After
	b.addToLists(r)
	if c.Before.HasEnv && c.After.State.Terminal() && r.request != nil {
		r.request.SealedEnv = nil
	}
}

func (b *Backend) insert(t *signalbox.Task) {
	r := &row{task: t}
	b.ids[t.ID], b.seqs[t.Seq] = r, r
	if t.IdempotencyKey != "" {
		b.keys[t.IdempotencyKey] = r
	}
	if t.ParentID != "" {
		b.children.add(t.ParentID, t.Seq, 0, r)
	}
	b.submitted.add(t.Seq, 0, r)
	b.addToLists(r)
}

func (b *Backend) removeTask(t *signalbox.Task) {
	b.removeFromLists(t)
	b.submitted.remove(t.Seq, 0)
	if t.ParentID != "" {
		b.children.remove(t.ParentID, t.Seq, 0)
	}
	if t.IdempotencyKey != "" {
		delete(b.keys, t.IdempotencyKey)
	}
	delete(b.ids, t.ID)
	delete(b.seqs, t.Seq)
}

func (b *Backend) slot(c *verbs.SlotChange) {
	rows := b.slots[c.Agent]
	n, found := slices.BinarySearchFunc(rows, c.Slot, func(s signalbox.Slot, slot int) int { return cmp.Compare(s.Slot, slot) })
	switch {
	case c.After == nil && found:
		rows = slices.Delete(rows, n, n+1)
	case c.After == nil:
		return
	case found:
		rows[n] = *c.After
	default:
		rows = slices.Insert(rows, n, *c.After)
	}
	b.slots[c.Agent] = rows
}

// entriesUpTo returns how many journal entries have a Seq up to that one.
func (b *Backend) entriesUpTo(seq int64) int {
	n, _ := slices.BinarySearchFunc(b.entries, seq+1, func(e verbs.Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
	return n
}

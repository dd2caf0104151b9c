package sqlite

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// fill computes the live totals from the file, and returns the store's ID.
func (b *Backend) fill(ctx context.Context) (id string, err error) {
	c, n := b.writer, &b.totals
	q := c.on(stMetaGet)
	found := q.next()
	var own []byte
	var check int64
	if found {
		id, own, check = q.textAt(0), q.bytesAt(1), q.intAt(2)
		n.Moment, n.Seq, n.Place, n.Fence, n.Entry = q.intAt(3), q.intAt(4), q.intAt(5), q.intAt(6), q.intAt(7)
		n.EnqueuedMS, n.WokenMS, n.prunedUpTo, n.Generation = q.intAt(8), q.intAt(9), q.intAt(10), 1
	}
	if err := q.end(); err != nil {
		return "", err
	}
	if !found || id == "" || len(own) != KeyBytes {
		return "", corrupt(b.opts.Path, "its counters are missing")
	}
	if err := b.takeKey(own, check); err != nil {
		return "", err
	}
	if err := b.fillSlots(); err != nil {
		return "", err
	}
	if err := b.fillJournal(); err != nil {
		return "", err
	}
	for {
		if n.totals, err = c.totals(); err != nil {
			return "", err
		}
		if len(c.damage) == 0 || ctx.Err() != nil {
			return id, ctx.Err()
		}
		if _, err := b.quarantine(); err != nil {
			return "", err
		}
	}
}

func (b *Backend) fillSlots() error {
	q := b.writer.on(stSlotsAll)
	slots, err := slotRows(&q)
	for i := range slots {
		if !signalbox.IsExecutor(slots[i].Agent) {
			b.totals.inUse[store.SlotSort(signalbox.Isolated(slots[i].Slot))]++
		}
	}
	return err
}

func (b *Backend) fillJournal() error {
	n := &b.totals
	q := b.writer.on(stJournalAfter)
	if q.int(n.prunedUpTo).most(1).next() {
		n.firstEntry, n.lastEntry = max(n.prunedUpTo+1, q.intAt(1)), n.Entry
	}
	return q.end()
}

// totals counts the tasks. Each is read completely, so waiting and running ones are known to be
// intact.
func (c *conn) totals() (totals, error) {
	n := newTotals()
	q := c.on(stPending)
	if err := c.each(&q, func(t *signalbox.Task) { n.count(t, 1) }); err != nil {
		return n, err
	}
	held, err := c.inFlight()
	if err != nil {
		return n, err
	}
	for i := range held {
		n.count(&held[i], 1)
	}
	q = c.on(stEnded)
	return n, c.each(q.int(1<<62).int(1<<62).most(loadRuns), func(t *signalbox.Task) { n.countRun(nil, t) })
}

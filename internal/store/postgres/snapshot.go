package postgres

import (
	"context"
	"math"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Counts returns how many tasks wait and run.
func (g *Backend) Counts(ctx context.Context) (c store.Counts, err error) {
	err = g.read(ctx, func(x *exchange) { askCounts(x, &c) })
	return c, err
}

// Lengths returns how many tasks wait in each of these queues.
func (g *Backend) Lengths(ctx context.Context, queues []string) (n []int, err error) {
	err = g.read(ctx, func(x *exchange) {
		n = make([]int, len(queues))
		x.ask(stQueueCounts, func(r row) error { n[r.at()] = int(r.int(1)); return nil }, texts(queues))
	})
	return n, err
}

func askCounts(x *exchange, c *store.Counts) {
	*c = store.Counts{Queues: map[string]int{}, Limits: map[string]int{}, InFlight: map[signalbox.State]int{}}
	x.ask(stCounts, func(r row) error {
		n := int(r.int(2))
		if r.int(0) == countLimit {
			c.Limits[r.text(1)] = n
			return nil
		}
		c.Queues[r.text(1)] = n
		c.Pending += n
		return nil
	})
	x.ask(stStates, func(r row) error { c.InFlight[inFlightStates[r.int(0)]] = int(r.int(1)); return nil })
	x.ask(stOldest, func(r row) error { c.Oldest = r.time(0); return nil })
}

// inFlightStates are the states of stStates.
var inFlightStates = map[int64]signalbox.State{2: signalbox.Dispatching, 3: signalbox.Working, 4: signalbox.Cancelling}

// Snapshot returns what waits and runs at one moment.
func (g *Backend) Snapshot(ctx context.Context, heads int) (s store.Snapshot, pauses []verbs.Doc, err error) {
	err = g.read(ctx, func(x *exchange) {
		s, pauses = store.Snapshot{Heads: map[string][]signalbox.Task{}}, nil
		x.ask(stMeta, func(r row) error { s.Entry = r.int(5); return nil }, text(""))
		askCounts(x, &s.Counts)
		x.ask(stInFlight, list(&s.InFlight))
		askSlots(x, &s.Slots)
		askPage(x, &verbs.Page{Kind: verbs.KindPause}, &pauses)
		if heads > 0 {
			x.ask(stHeadsAll, func(r row) error {
				t, err := taskOf(r[1])
				s.Heads[r.text(0)] = append(s.Heads[r.text(0)], *t)
				return err
			}, number(math.MinInt64), number(math.MinInt64), number(int64(heads)))
		}
	})
	return s, pauses, err
}

var errJournal = signalbox.Errorf(signalbox.CodeStoreCorrupt, "a row of the journal cannot be read: it is damaged, or was changed by another program")

// Entries returns journal entries with a Seq above after, oldest first.
func (g *Backend) Entries(ctx context.Context, after int64, limit int) (list []verbs.Entry, err error) {
	err = g.read(ctx, func(x *exchange) {
		list = nil
		x.ask(stJournal, func(r row) error {
			if len(list) >= limit {
				return nil
			}
			entries, err := pack.ReadEntries(r[2], r.int(0))
			if err != nil {
				return errJournal
			}
			writer, cut := r.text(1), r.int(3)
			for _, e := range entries {
				if e.Seq > max(after, cut) && len(list) < limit {
					list = append(list, verbs.Entry{Entry: e, Writer: writer})
				}
			}
			return nil
		}, number(after), number(int64(limit)))
	})
	return list, err
}

// EntryRange returns the oldest and newest Seq that Entries can return.
func (g *Backend) EntryRange(ctx context.Context) (oldest, newest int64, err error) {
	err = g.read(ctx, func(x *exchange) {
		x.ask(stJournalRange, func(r row) error {
			oldest, newest = max(r.int(0), r.int(2)+1), r.int(1)
			if newest == 0 || oldest > newest {
				oldest, newest = 0, 0
			}
			return nil
		})
	})
	return oldest, newest, err
}

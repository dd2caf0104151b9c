package sqlite

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Bounds of one Prune beyond its tasks. What is left goes the next time.
const (
	pruneSessions = 1000
	pruneEntries  = 10_000 // rows of the journal
)

// Prune forgets ended tasks, oldest first, and with them sessions that nobody has
// used since and that no task belongs to any more, and the beginning of the
// journal.
func (s *Store) Prune(ctx context.Context, p store.Pruning) (done store.Pruned, err error) {
	err = s.do(ctx, 0, func(w *writer) (err error) {
		if done, err = w.pruneTasks(&p); err != nil || p.Ended.IsZero() {
			return err
		}
		if err = w.pruneSessions(p.Ended); err != nil {
			return err
		}
		return w.pruneJournal(p.Ended)
	})
	if err != nil {
		return store.Pruned{}, err
	}
	return done, nil
}

func (w *writer) pruneTasks(p *store.Pruning) (store.Pruned, error) {
	if p.Limit <= 0 {
		return store.Pruned{}, nil
	}
	var ended []*signalbox.Task
	q := w.on(stEndedFirst)
	q.int(p.After.EndedMS).int(p.After.Seq).int(p.Before()).int(int64(p.Limit))
	for q.next() {
		t, err := scanTask(&q)
		if err != nil {
			return store.Pruned{}, errors.Join(err, q.end())
		}
		ended = append(ended, t)
	}
	if err := q.end(); err != nil {
		return store.Pruned{}, err
	}
	going, done := p.Choose(ended)
	for _, t := range going {
		for _, id := range []stmtID{stTaskDelete, stRequestDelete, stResultDelete, stStaleDelete} {
			q := w.write(id)
			if err := q.int(t.Seq).run(); err != nil {
				return store.Pruned{}, err
			}
		}
		w.row(t, nil)
	}
	return done, nil
}

// Kept returns how many bytes ended tasks take, by owner.
func (s *Store) Kept(ctx context.Context) (kept map[string]int64, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		kept, err = c.keptRows()
		return err
	})
	return kept, err
}

func (c *conn) keptRows() (map[string]int64, error) {
	kept := map[string]int64{}
	q := c.on(stKeptAll)
	for q.next() {
		kept[q.textAt(0)] = q.intAt(1)
	}
	return kept, q.end()
}

// writeKept stores what the batch changed of it.
func (w *writer) writeKept() error {
	for owner := range w.keptChanged {
		bytes := w.kept[owner]
		id := stKeptPut
		if bytes == 0 {
			id = stKeptDelete
		}
		q := w.write(id)
		if q.exact(owner); bytes != 0 {
			q.int(bytes)
		}
		if err := q.run(); err != nil {
			return err
		}
	}
	return nil
}

// pruneSessions goes on where it stopped the last time, so that sessions
// which must stay cannot keep it from the others.
func (w *writer) pruneSessions(unused time.Time) error {
	type used struct {
		at int64
		id string
	}
	var old []used
	q := w.on(stSessionsUnused)
	q.int(w.prunedAt).exact(w.prunedID).int(unused.UnixMilli()).int(pruneSessions)
	for q.next() {
		old = append(old, used{q.intAt(0), q.textAt(1)})
	}
	if err := q.end(); err != nil {
		return err
	}
	for _, s := range old {
		if err := w.pruneSession(s.id); err != nil {
			return err
		}
	}
	w.prunedAt, w.prunedID = math.MinInt64, ""
	if len(old) == pruneSessions {
		w.prunedAt, w.prunedID = old[len(old)-1].at, old[len(old)-1].id
	}
	return nil
}

func (w *writer) pruneSession(id string) error {
	q := w.on(stSessionNamed)
	q.exact(id)
	named := q.next()
	if err := q.end(); err != nil || named {
		return err
	}
	q = w.write(stSessionDelete)
	return q.exact(id).run()
}

// pruneJournal cuts the beginning only: what is left must have no gaps, even
// where the clock went back in between.
func (w *writer) pruneJournal(older time.Time) error {
	cut := int64(0) // the last number of a row that goes as a whole
	q := w.on(stJournalOldest)
	q.int(0).int(pruneEntries)
	for q.next() {
		if q.intAt(2) >= older.UnixMilli() {
			last, first, body := q.intAt(0), q.intAt(1), q.bytesAt(3)
			if err := q.end(); err != nil {
				return err
			}
			return w.cutJournal(cut, last, first, body, older)
		}
		cut = q.intAt(0)
	}
	if err := q.end(); err != nil || cut == 0 {
		return err
	}
	if err := w.dropJournal(cut); err != nil {
		return err
	}
	if w.firstEntry = cut + 1; w.firstEntry > w.lastEntry {
		w.firstEntry, w.lastEntry = 0, 0
	}
	return nil
}

// cutJournal drops the rows up to cut and the beginning of the row after it.
func (w *writer) cutJournal(cut, last, first int64, body []byte, older time.Time) error {
	entries, err := pack.ReadEntries(body, first)
	if err != nil {
		return signalbox.Errorf(signalbox.CodeStoreCorrupt, "the journal is damaged at entry %d: run signalbox doctor", first)
	}
	n := 0
	for n < len(entries) && entries[n].At.Before(older) {
		n++
	}
	if cut > 0 {
		if err := w.dropJournal(cut); err != nil {
			return err
		}
	}
	w.firstEntry = first + int64(n)
	if n == 0 {
		return nil
	}
	var kept []byte
	for i := n; i < len(entries); i++ {
		kept = w.packer.Entry(kept, &entries[i])
	}
	q := w.write(stJournalCut)
	return q.int(last).int(w.firstEntry).bytes(kept).run()
}

func (w *writer) dropJournal(upTo int64) error {
	q := w.write(stJournalDelete)
	return q.int(upTo).run()
}

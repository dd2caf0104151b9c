package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Bounds of one Prune beyond its tasks. What is left goes the next time.
const (
	pruneSessions = 1000
	pruneEntries  = 10_000 // rows of the journal
)

// Prune forgets tasks that ended before ended, oldest first, and with them
// sessions that nobody has used since and that no task belongs to any more,
// and the beginning of the journal.
func (s *Store) Prune(ctx context.Context, ended time.Time, limit int) (n int, err error) {
	err = s.do(ctx, 0, func(w *writer) (err error) {
		if n, err = w.pruneTasks(ended, limit); err != nil {
			return err
		}
		if err = w.pruneSessions(ended); err != nil {
			return err
		}
		return w.pruneJournal(ended)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (w *writer) pruneTasks(ended time.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	var old []*signalbox.Task
	q := w.on(stEndedBefore)
	q.int(ended.UnixMilli()).int(int64(limit))
	for q.next() {
		old = append(old, &signalbox.Task{
			Seq: q.intAt(0), ID: q.textAt(1), State: stateOf(q.intAt(2)), Agent: q.textAt(3), EndedAt: q.timeAt(4),
		})
	}
	if err := q.end(); err != nil {
		return 0, err
	}
	for _, t := range old {
		for _, id := range []stmtID{stTaskDelete, stRequestDelete, stResultDelete, stStaleDelete} {
			q := w.write(id)
			if err := q.int(t.Seq).run(); err != nil {
				return 0, err
			}
		}
		w.row(t, nil)
	}
	return len(old), nil
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

package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// writer owns the connection that writes and the ledger. It is one goroutine.
type writer struct {
	*conn
	ledger
	store *Store

	batch   group.Batch[verb]
	company int // how many callers were around the last commit

	begun      bool // a transaction is open
	savepoints bool // each verb that writes gets a savepoint
	wrote      bool // the verb at hand has written something

	// The entries of this batch, packed, and their latest time.
	entries []byte
	packer  pack.Packer // room to pack one
	newest  int64
}

// attempt runs one verb. A verb that errs has no effect; the error returned
// is one that the whole batch cannot survive.
func (w *writer) attempt(j *group.Job[verb]) error {
	at, entries, newest := w.mark(), len(w.entries), w.newest
	w.wrote = false
	j.Err = j.Verb(w)
	if j.Err == nil {
		return w.release()
	}
	if !isRefusal(j.Err) {
		if !isLocal(j.Err) {
			return j.Err
		}
		j.Err = failed(j.Err)
	}
	if w.wrote && !w.savepoints {
		return errSavepoint
	}
	w.back(at)
	w.entries, w.newest = w.entries[:entries], newest
	if !w.wrote {
		return nil
	}
	q := w.on(stRollbackTo)
	if err := q.run(); err != nil {
		return err
	}
	return w.release()
}

// release ends the savepoint of the verb at hand, if it has one.
func (w *writer) release() error {
	if !w.wrote || !w.savepoints {
		return nil
	}
	q := w.on(stRelease)
	return q.run()
}

// rollback takes the batch back, here and in the file.
func (w *writer) rollback(to mark) error {
	w.back(to)
	w.begun, w.entries, w.newest = false, w.entries[:0], 0
	if w.db.AutocommitEnabled() {
		return nil // SQLite has done it already
	}
	q := w.on(stRollback)
	return q.run()
}

// write begins a statement that changes something, and before it, where that
// has not happened yet, the transaction and the savepoint of the verb. A verb
// that only reads costs neither.
func (w *writer) write(id stmtID) query {
	if err := w.begin(); err != nil {
		return query{err: err}
	}
	if !w.wrote && w.savepoints {
		q := w.on(stSavepoint)
		if err := q.run(); err != nil {
			return query{err: err}
		}
	}
	w.wrote = true
	return w.on(id)
}

func (w *writer) begin() error {
	if w.begun {
		return nil
	}
	q := w.on(stBegin)
	if err := q.run(); err != nil {
		return err
	}
	w.begun = true
	return nil
}

// note writes a journal entry.
func (w *writer) note(e *signalbox.Entry) {
	w.entry++
	w.entries = w.packer.Entry(w.entries, e)
	if at := e.At.UnixMilli(); w.newest == 0 || at > w.newest {
		w.newest = at
	}
}

// commit writes what the batch has in common, and makes it durable. A batch
// in which nobody wrote costs nothing.
func (w *writer) commit() error {
	if !w.begun && len(w.entries) == 0 && w.counters == w.stored {
		return nil
	}
	w.commits++
	if len(w.entries) > 0 {
		if err := w.writeEntries(); err != nil {
			return err
		}
	}
	if err := w.writeKept(); err != nil {
		return err
	}
	if err := w.writeCounters(); err != nil {
		return err
	}
	if w.store.opts.CommitDelay > 0 {
		time.Sleep(w.store.opts.CommitDelay)
	}
	q := w.on(stCommit)
	return q.run()
}

func (w *writer) writeEntries() error {
	if err := w.begin(); err != nil {
		return err
	}
	first := w.stored.entry + 1
	q := w.on(stJournalInsert)
	if err := q.int(w.entry).int(first).int(w.newest).bytes(w.entries).run(); err != nil {
		return err
	}
	if w.firstEntry == 0 {
		w.firstEntry = first
	}
	w.lastEntry = w.entry
	return nil
}

func (w *writer) writeCounters() error {
	if err := w.begin(); err != nil {
		return err
	}
	q := w.on(stMetaPut)
	return q.int(w.seq).int(w.place).int(w.fence).int(w.entry).int(w.enqueued.UnixMilli()).int(w.commits).int(w.ticketPlace).int(w.ticketFence).run()
}

// show brings the board up to date with what is durable now.
func (w *writer) show() {
	if !w.begun {
		return
	}
	b := &w.store.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range w.rows {
		b.row(r.before, r.after)
	}
	if w.fleetChanged {
		b.agents, b.pauses = w.sortedAgents(), w.sortedPauses()
		w.fleetChanged = false
	}
	b.firstEntry, b.lastEntry, b.commits = w.firstEntry, w.lastEntry, w.commits
	b.answer()
}

// giveUp takes the batch back and tells everyone. Nobody is acknowledged.
func (w *writer) giveUp(start mark, err error, onCommit bool) {
	s := w.store
	if bad := w.rollback(start); bad != nil && s.broken == nil {
		s.breakDown(bad)
	}
	if s.broken == nil && isFatal(err, onCommit) {
		s.breakDown(err)
	}
	answer := failed(err)
	if s.broken != nil {
		answer = unsure(err)
	} else {
		s.log.Error("a commit failed, nothing of it was stored", "verbs", len(w.batch.Jobs), "error", err)
	}
	w.batch.Fail(answer)
}

// breakDown ends the process, or where Options.Fatal lets it live, the store.
func (s *Store) breakDown(err error) {
	s.broken = err
	s.opts.Fatal(fatalMessage(s.opts.Path, err))
}

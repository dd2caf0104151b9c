package sqlite

import (
	"errors"
	"runtime"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// writer owns the connection that writes and the ledger. It is one goroutine.
type writer struct {
	*conn
	ledger
	store *Store

	begun      bool // a transaction is open
	savepoints bool // each verb that writes gets a savepoint
	wrote      bool // the verb at hand has written something

	// The entries of this batch, packed, and their latest time.
	entries []byte
	newest  int64
}

// loop runs batches until the inbox is closed and empty.
func (w *writer) loop() {
	defer close(w.store.stopped)
	var batch []*job
	company := 0
	for !w.store.inbox.finished() {
		<-w.store.inbox.sign
		w.gather(company)
		batch = w.store.inbox.take(batch[:0])
		if len(batch) > 0 {
			w.batch(batch)
		}
		company = len(batch) + w.store.inbox.len()
		clear(batch)
	}
}

// Bounds on the time that the writer waits for company.
const (
	gatherQuiet = 30 * time.Microsecond  // since the last one came
	gatherMost  = 300 * time.Microsecond // in all
)

// gather lets the inbox fill. Callers who were just answered need a moment to
// come back with their next verb; a writer that does not wait for them splits
// them into two groups, of which each waits for the commit of the other, and
// makes twice as many commits, each half empty. So it yields until as many
// are there as there were around the last commit, or nobody comes any more.
// Someone who is alone does not wait.
func (w *writer) gather(company int) {
	waiting := w.store.inbox.len()
	if waiting >= company {
		return
	}
	start := time.Now()
	for grown := start; waiting < min(company, batchJobs); {
		runtime.Gosched()
		n, now := w.store.inbox.len(), time.Now()
		switch {
		case n > waiting:
			waiting, grown = n, now
		case now.Sub(grown) > gatherQuiet:
			return
		}
		if now.Sub(start) > gatherMost {
			return
		}
	}
}

// batch runs the jobs in one transaction and answers them.
//
// A savepoint for each verb costs a sixth of the throughput and is needed
// only where a verb fails after it has written something, which hardly ever
// happens: refusals come first. So a batch goes without them, and where one
// is missed it is rolled back and done again with them.
func (w *writer) batch(batch []*job) {
	start := w.mark()
	onCommit, err := w.runAll(batch, false)
	if err == errSavepoint {
		if err = w.rollback(start); err == nil {
			onCommit, err = w.runAll(batch, true)
		}
	}
	if err != nil {
		w.giveUp(batch, start, err, onCommit)
	} else {
		w.show()
		w.settled()
	}
	w.begun, w.entries, w.newest = false, w.entries[:0], 0
	for _, j := range batch {
		j.done <- struct{}{}
	}
}

// errSavepoint says that a verb must be undone which has no savepoint.
var errSavepoint = errors.New("the batch must be done again with savepoints")

// runAll runs the jobs and commits. onCommit says where an error came from.
func (w *writer) runAll(batch []*job, savepoints bool) (onCommit bool, err error) {
	if w.store.broken != nil {
		return false, w.store.broken
	}
	w.savepoints = savepoints
	for _, j := range batch {
		if err := w.attempt(j); err != nil {
			return false, err
		}
	}
	return true, w.commit()
}

// attempt runs one verb. A verb that errs has no effect; the error returned
// is one that the whole batch cannot survive.
func (w *writer) attempt(j *job) error {
	at, entries, newest := w.mark(), len(w.entries), w.newest
	w.wrote = false
	j.err = j.run(w)
	if j.err == nil {
		return w.release()
	}
	if !isRefusal(j.err) {
		if !isLocal(j.err) {
			return j.err
		}
		j.err = failed(j.err)
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
	w.entries = appendEntry(w.entries, e)
	if at := e.At.UnixMilli(); w.newest == 0 || at > w.newest {
		w.newest = at
	}
}

// commit writes what the batch has in common, and makes it durable. A batch
// in which nobody wrote costs nothing.
func (w *writer) commit() error {
	if len(w.entries) > 0 {
		if err := w.writeEntries(); err != nil {
			return err
		}
	}
	if w.counters != w.stored {
		if err := w.writeCounters(); err != nil {
			return err
		}
	}
	if !w.begun {
		return nil
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
	return q.int(w.seq).int(w.place).int(w.fence).int(w.entry).int(w.enqueued.UnixMilli()).run()
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
	b.firstEntry, b.lastEntry = w.firstEntry, w.lastEntry
}

// giveUp takes the batch back and tells everyone. Nobody is acknowledged.
func (w *writer) giveUp(batch []*job, start mark, err error, onCommit bool) {
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
		s.log.Error("a commit failed, nothing of it was stored", "verbs", len(batch), "error", err)
	}
	for _, j := range batch {
		j.err = answer
	}
}

// breakDown ends the process, or where Options.Fatal lets it live, the store.
func (s *Store) breakDown(err error) {
	s.broken = err
	s.opts.Fatal(fatalMessage(s.opts.Path, err))
}

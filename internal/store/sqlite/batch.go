package sqlite

import (
	"errors"
	"runtime"
	"time"
)

// batch is the verbs of one transaction.
type batch struct {
	jobs []*job
	size int           // bytes, about
	idle time.Duration // spent waiting for more
}

// A batch ends at these bounds, so that the first one in it need not wait for
// too much, and the memory of a transaction stays small.
const (
	batchJobs  = 1024
	batchBytes = 8 << 20
)

func (b *batch) full() bool { return len(b.jobs) >= batchJobs || b.size >= batchBytes }

func (b *batch) add(j *job) {
	b.jobs = append(b.jobs, j)
	b.size += j.size
}

func (b *batch) clear() {
	clear(b.jobs)
	b.jobs, b.size, b.idle = b.jobs[:0], 0, 0
}

// loop runs batches until the inbox is closed and empty.
func (w *writer) loop() {
	defer close(w.store.stopped)
	for !w.store.inbox.finished() {
		<-w.store.inbox.sign
		if !w.store.inbox.take(&w.batch) {
			continue
		}
		w.runBatch()
		w.company = len(w.batch.jobs) + w.store.inbox.len()
		w.batch.clear()
	}
}

// runBatch runs the verbs in one transaction and answers them.
//
// A savepoint for each verb costs a sixth of the throughput and is needed
// only where a verb fails after it has written something, which hardly ever
// happens: refusals come first. So a batch goes without them, and where one
// is missed it is rolled back and done again with them.
func (w *writer) runBatch() {
	start := w.mark()
	onCommit, err := w.runAll(false)
	if err == errSavepoint { //nolint:errorlint // our own sign, never wrapped
		if err = w.rollback(start); err == nil {
			onCommit, err = w.runAll(true)
		}
	}
	if err != nil {
		w.giveUp(start, err, onCommit)
	} else {
		w.show()
		w.settled()
	}
	w.begun, w.entries, w.newest = false, w.entries[:0], 0
	for _, j := range w.batch.jobs {
		j.done <- struct{}{}
	}
}

// errSavepoint says that a verb must be undone which has no savepoint.
var errSavepoint = errors.New("the batch must be done again with savepoints")

// runAll runs the verbs, and those that join them meanwhile, and commits.
// onCommit says where an error came from.
func (w *writer) runAll(savepoints bool) (onCommit bool, err error) {
	if w.store.broken != nil {
		return false, w.store.broken
	}
	w.savepoints = savepoints
	for n := 0; n < len(w.batch.jobs) || w.joined(); n++ {
		if err := w.attempt(w.batch.jobs[n]); err != nil {
			return false, err
		}
	}
	return true, w.commit()
}

// Bounds on the time that a batch waits for company.
const (
	quiet    = 30 * time.Microsecond  // since the last one came
	patience = 300 * time.Microsecond // in all
)

// joined reports whether more verbs came to the batch, all of whose verbs have
// run.
//
// Callers who were just answered need a moment to come back with their next
// verb. A writer that commits without them splits them into two groups, of
// which each waits for the commit of the other, and makes twice as many
// commits, each half empty. So the first who come back are served while the
// others are on their way, and the commit waits until as many have come as
// were around the last one, or nobody comes any more. Someone who is alone
// does not wait.
func (w *writer) joined() bool {
	b := &w.batch
	if len(b.jobs) >= w.company || b.full() {
		return false
	}
	start := time.Now()
	for {
		came, waited := w.store.inbox.take(b), time.Since(start)
		if came || waited > quiet || b.idle+waited > patience {
			b.idle += waited
			return came
		}
		runtime.Gosched()
	}
}

package sqlite

import (
	"errors"
)

// loop runs batches until the inbox is closed and empty.
func (w *writer) loop() {
	defer close(w.store.stopped)
	for !w.store.inbox.Finished() {
		<-w.store.inbox.Sign()
		if !w.store.inbox.Take(&w.batch) {
			continue
		}
		w.runBatch()
		n := len(w.batch.Jobs)
		w.batch.Answer()
		w.company = n + w.store.inbox.Len()
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
	for n := 0; n < len(w.batch.Jobs) || w.store.inbox.Joined(&w.batch, w.company); n++ {
		if err := w.attempt(w.batch.Jobs[n]); err != nil {
			return false, err
		}
	}
	return true, w.commit()
}

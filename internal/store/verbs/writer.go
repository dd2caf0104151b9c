package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// writer runs the batches. It is one goroutine.
type writer struct {
	store *Store
	set   workingSet
	batch group.Batch[verb]
	done  []bool // of the batch's jobs: which have their answer

	company int // how many callers were around the last commit
	number  int64
	// confirmed is the number of the newest batch that is known to be stored,
	// seen the newest counters: what the backend may not go back behind.
	confirmed int64
	seen      Counters
	sent      Counters // those of the batch that was sent last
	deltas    [2]Delta // of the newest two batches, by turns
	sea       sea
	safe      bool // batches are not sent to sea, but seen home

	holding bool // the backend is locked
	fresh   bool // the set was compared with the backend since the last verb came
	// crowd counts down the batches that take the lock first, since another
	// process wrote between two of ours; moved says that it did so the last time.
	crowd int
	moved bool
	// careful says that the batch at hand takes the lock first, overtook that it
	// was overtaken before.
	careful, overtook bool
	keyed             int // counts down the batches that look keys up, since one was known
}

// The counts that crowd and keyed begin at.
const (
	crowdBatches = 16
	keyedBatches = 16
)

// readAhead is how many ready tasks are loaded beyond those that are claimed,
// where the set will be of use for the next batch.
const readAhead = 256

// readWhole bounds the lines that are read as a whole where a batch has many
// verbs, busyVerbs: what others do to one can be followed then, and it need not
// be read again.
const (
	readWhole = 2048
	busyVerbs = 16
)

func newWriter(s *Store) *writer {
	w := &writer{store: s, sea: sea{landed: make(chan error, 1)}}
	w.set.keep = s.opts.keep
	w.set.forget()
	return w
}

// loop runs batches until the inbox is closed and empty.
func (w *writer) loop() {
	defer close(w.store.stopped)
	for !w.store.inbox.Finished() || w.sea.out {
		select {
		case err := <-w.sea.landed:
			_ = w.home(err) // no other batch stands on it
			w.tell()
			continue
		case <-w.store.inbox.Sign():
		}
		if w.store.inbox.Take(&w.batch) {
			w.runBatch()
			w.answer()
		}
	}
}

// answer tells the callers of the batch what became of it.
func (w *writer) answer() {
	if n := len(w.batch.Jobs); n > 0 {
		w.company = n + w.store.inbox.Len()
		w.batch.Answer()
	}
}

// runBatch runs the verbs until they are stored, at sea, or cannot be stored.
func (w *writer) runBatch() {
	if err := w.attempt(); err != nil {
		w.retry(err)
	}
}

// retry runs the verbs of the batch again, which was not stored because of an
// error, until they are stored or cannot be.
func (w *writer) retry(err error) {
	deadline := time.Now().Add(w.store.opts.Patience)
	for wait := retryFirst; err != nil; {
		switch {
		case errors.Is(err, ErrUnknown):
			if err = w.resolve(); err == nil {
				return
			}
		case errors.Is(err, errLost):
			w.set.forget()
			w.unlock()
			err = w.beginAnew()
		}
		w.set.forget()
		if err != errUnderLock { //nolint:errorlint // our own sign, never wrapped
			w.unlock()
		}
		if err != nil && (!again(err) || time.Now().After(deadline)) {
			w.fail(err)
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeUnavailable {
			wait = w.pause(wait)
		}
		err = w.attempt()
	}
}

func (w *writer) fail(err error) {
	w.set.lookIDs, w.overtook = false, false
	w.store.log.Error("a batch was not stored", "verbs", len(w.batch.Jobs), "error", err)
	w.batch.Fail(refusal(err))
}

// Bounds on the time between two attempts to reach a server.
const (
	retryFirst = 5 * time.Millisecond
	retryLast  = 250 * time.Millisecond
)

func (w *writer) pause(wait time.Duration) time.Duration {
	time.Sleep(wait)
	return min(2*wait, retryLast)
}

// errUnderLock says that a batch must begin anew with what the backend has now,
// which stays locked.
var errUnderLock = errors.New("another batch came first, and none can now")

// again reports whether a batch can come to be stored at another attempt.
func again(err error) bool {
	return overtaken(err) || signalbox.CodeOf(err) == signalbox.CodeUnavailable
}

func overtaken(err error) bool {
	return errors.Is(err, ErrMoved) || errors.Is(err, ErrTaken) || errors.Is(err, errLost) ||
		errors.Is(err, errUnderLock) || errors.Is(err, errSunk)
}

// refusal is the answer to those whose batch was not stored.
func refusal(err error) error {
	var own *signalbox.Error
	switch {
	case overtaken(err):
		return &signalbox.Error{Code: signalbox.CodeStoreFailed, Err: err,
			Message: "nothing was stored: the store changes faster than this process can follow; try again"}
	case errors.As(err, &own):
		return err
	}
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "nothing was stored: the store refused the write", Err: err}
}

// unlockLimit bounds the giving back of a lock: a server that does not answer
// takes it back by itself.
const unlockLimit = 2 * time.Second

func (w *writer) unlock() {
	if !w.holding {
		return
	}
	w.holding = false
	ctx, cancel := context.WithTimeout(w.store.ctx, min(unlockLimit, w.store.opts.Patience))
	defer cancel()
	w.store.backend.Unlock(ctx)
}

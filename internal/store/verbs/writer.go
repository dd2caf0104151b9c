package verbs

import (
	"context"
	"errors"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// writer runs the batches, on one goroutine.
type writer struct {
	store *Store
	set   workingSet
	batch group.Batch[verb]
	done  []bool // which jobs of the batch have their answer
	// compared: the set was compared with the backend since the last verb joined.
	compared bool

	mode      mode // exclusive or sharing
	exclusive exclusiveMode
	sharing   sharedMode

	callers    int // number of callers around the last commit
	keyLookups int // number of batches to come that look up keys, after a key was found
	number     int64
	deltas     [2]Delta // of the newest two batches, alternating
	drafts     Delta    // what is drafted
	ledger     ledger
}

// mode is how a batch is read and stored.
type mode interface {
	// plan prepares the mode for a batch, before the first attempt.
	plan()
	// begin prepares the set for an attempt.
	begin() error
	// load loads what the set wants.
	load() error
	// await is called when all verbs of the batch have run. It reports whether more joined
	// while it waited.
	await() (more bool, err error)
	// settle ends a batch without changes.
	settle() error
	// commit stores the changes of the batch.
	commit() error
	// finished counts a batch that ended.
	finished()
}

// keyLookupBatches is how many batches look up keys after one was found.
const keyLookupBatches = 16

func newWriter(s *Store) *writer {
	w := &writer{store: s}
	w.exclusive = exclusiveMode{writer: w, pipeline: pipeline{committed: make(chan error, 1)}}
	w.sharing = sharedMode{writer: w}
	w.mode = &w.exclusive
	w.set.caps, w.set.local = s.opts.keep, s.shared == nil
	w.set.forget()
	return w
}

// loop runs batches until the inbox is closed and empty.
func (w *writer) loop() {
	defer close(w.store.stopped)
	for !w.store.inbox.Finished() || w.exclusive.pipeline.stage == inFlight {
		select {
		case err := <-w.exclusive.pipeline.committed:
			_ = w.exclusive.finish(err) // no other batch is based on it
			w.exclusive.ack()
			continue
		case <-w.store.inbox.Sign():
		}
		if w.store.inbox.Take(&w.batch) {
			w.runBatch()
			w.answer()
		}
	}
}

// answer answers the callers of the batch.
func (w *writer) answer() {
	if n := len(w.batch.Jobs); n > 0 {
		w.callers = n + w.store.inbox.Len()
		w.batch.Answer()
	}
}

// runBatch runs the verbs until they are stored, in flight, or have failed.
func (w *writer) runBatch() {
	w.mode.plan()
	w.set.lookup = lookNothing
	if w.keyLookups > 0 {
		w.set.lookup = lookKeys
	}
	if err := w.attempt(); err != nil {
		w.retry(err)
	}
}

// attempt runs the verbs over the set and commits what they changed.
func (w *writer) attempt() error {
	w.set.begin()
	w.done = w.done[:0]
	w.extend()
	if err := w.mode.begin(); err != nil {
		return err
	}
	for {
		if w.runAll() || w.set.want.any {
			if err := w.mode.load(); err != nil {
				return err
			}
			continue
		}
		more, err := w.mode.await()
		switch {
		case err != nil:
			return err
		case more:
		case w.set.wrote:
			return w.mode.commit()
		default:
			return w.mode.settle()
		}
	}
}

// runAll runs the verbs without an answer, and those that join meanwhile. open says that
// some still have none: the set's want has what they need.
func (w *writer) runAll() (open bool) {
	x := &w.set
	for first := 0; ; {
		last := len(w.batch.Jobs)
		for n := first; n < last; n++ {
			if w.done[n] {
				continue
			}
			if err := w.runOne(n); err == errMissing { //nolint:errorlint // our own sentinel, never wrapped
				open = true
			}
		}
		if !open {
			w.draft()
		}
		if !w.joined() {
			break
		}
		first = last
	}
	if !open {
		x.needs()
	}
	return open
}

func (w *writer) runOne(n int) error {
	j := w.batch.Jobs[n]
	w.set.missing = !w.set.known
	err := j.Verb.run(&w.set)
	if err == errMissing { //nolint:errorlint // our own sentinel, never wrapped
		return err
	}
	if err != nil && !isRefusal(err) {
		err = &signalbox.Error{Code: signalbox.CodeInternal, Message: "nothing was stored: " + err.Error(), Err: err}
	}
	w.done[n], j.Err = true, err
	return nil
}

// isRefusal reports whether err is the verb's own result.
func isRefusal(err error) bool {
	var own *signalbox.Error
	return errors.Is(err, store.ErrStale) || errors.As(err, &own)
}

// joined adds verbs that have arrived. It does not wait for more while the backend is locked, because other
// processes wait for the lock, nor while a batch is in flight: they can join until it is stored.
func (w *writer) joined() bool {
	came := false
	if w.sharing.lock == locked || w.exclusive.pipeline.stage == inFlight {
		came = w.store.inbox.Take(&w.batch)
	} else {
		came = w.store.inbox.Joined(&w.batch, w.callers)
	}
	if !came {
		return false
	}
	w.extend()
	return true
}

// extend marks the batch's newest jobs as unanswered.
func (w *writer) extend() {
	for len(w.done) < len(w.batch.Jobs) {
		w.done = append(w.done, false)
	}
	w.compared = false
}

// call returns the context of a backend call.
func (w *writer) call() (context.Context, context.CancelFunc) { return w.store.within(w.store.ctx) }

// want is what the set needs to load.
func (w *writer) want() *Want { return w.set.ask(w.store.opts.Writer, len(w.batch.Jobs)) }

// fetch reads what is wanted, and checks that the backend has not lost acknowledged data.
func (w *writer) fetch(read func(context.Context, *Want) (*Loaded, error), want *Want) (*Loaded, error) {
	ctx, cancel := w.call()
	defer cancel()
	l, err := read(ctx, want)
	if err != nil {
		return nil, err
	}
	return l, w.check(l)
}

// merge adds what was loaded to the set, unless another process has written since the set
// was read.
func (w *writer) merge(l *Loaded) error {
	if w.set.known && l.Moment != w.set.stored.Moment {
		w.overtaken()
		return ErrMoved
	}
	w.set.merge(l)
	w.compared = true
	return nil
}

// seal makes the delta of the batch. From here on the set is the predicted state of the
// backend.
func (w *writer) seal(log bool) *Delta {
	w.number++
	d := &w.deltas[w.number%2]
	w.set.delta(d, w.store.opts.Writer, w.number, log)
	w.ledger.sent = d.To
	w.set.committed()
	return d
}

// send commits a sealed batch.
func (w *writer) send(d *Delta) error {
	ctx, cancel := w.call()
	defer cancel()
	if err := w.store.backend.Commit(ctx, d); err != nil {
		return w.failed(d, err)
	}
	w.stored()
	return nil
}

// stored records that the last sealed batch is stored.
func (w *writer) stored() {
	w.ledger.confirmed, w.ledger.seen = w.number, w.ledger.sent
	w.deltas[w.number%2].clear()
	w.finished()
}

// failed records that a batch is not stored, as far as is known.
func (w *writer) failed(d *Delta, err error) error {
	for i := range d.Requests {
		w.set.requests.drop(d.Requests[i].Seq) // another task may get the Seq
	}
	switch {
	case errors.Is(err, ErrMoved):
		w.overtaken()
	case errors.Is(err, ErrTaken):
		w.set.lookup, w.keyLookups = lookAll, keyLookupBatches
	}
	return err
}

// overtaken records that another process has written since the set was loaded.
func (w *writer) overtaken() {
	if w.store.shared != nil {
		w.mode = &w.sharing
		w.sharing.overtaken()
	}
}

// finished counts a completed batch.
func (w *writer) finished() {
	w.keyLookups = max(0, w.keyLookups-1)
	w.mode.finished()
}

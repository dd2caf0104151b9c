package verbs

import (
	"context"
	"errors"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// writer runs the batches. It is one goroutine.
type writer struct {
	store *Store
	set   workingSet
	batch group.Batch[verb]
	done  []bool // of the batch's jobs: which have their answer
	// compared says that the set was compared with the backend since the last
	// verb came.
	compared bool

	mode  mode // alone, or among
	alone alone
	among among

	callers  int // how many were around the last commit
	keyLooks int // batches to come that look keys up, since one was known
	number   int64
	deltas   [2]Delta // of the newest two batches, by turns
	drafts   Delta    // what is drafted
	ledger   ledger
}

// mode is how a batch is read and stored.
type mode interface {
	// plan readies the mode for a batch, before the first attempt at it.
	plan()
	// begin readies the set for an attempt.
	begin() error
	// load loads what the set wants.
	load() error
	// await is called when all verbs of the batch have run. It reports whether
	// more joined the batch while it had to wait.
	await() (more bool, err error)
	// settle ends a batch that changed nothing.
	settle() error
	// commit stores what the batch changed.
	commit() error
	// finished counts a batch that ended.
	finished()
}

// keyLookBatches is how many batches look keys up after one that was known.
const keyLookBatches = 16

func newWriter(s *Store) *writer {
	w := &writer{store: s}
	w.alone = alone{writer: w, pipeline: pipeline{committed: make(chan error, 1)}}
	w.among = among{writer: w}
	w.mode = &w.alone
	w.set.keep, w.set.near = s.opts.keep, s.shared == nil
	w.set.forget()
	return w
}

// loop runs batches until the inbox is closed and empty.
func (w *writer) loop() {
	defer close(w.store.stopped)
	for !w.store.inbox.Finished() || w.alone.pipeline.stage == inFlight {
		select {
		case err := <-w.alone.pipeline.committed:
			_ = w.alone.finish(err) // no other batch stands on it
			w.alone.ack()
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
		w.callers = n + w.store.inbox.Len()
		w.batch.Answer()
	}
}

// runBatch runs the verbs until they are stored, in flight, or cannot be stored.
func (w *writer) runBatch() {
	w.mode.plan()
	w.set.look = lookNothing
	if w.keyLooks > 0 {
		w.set.look = lookKeys
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

// runAll runs the verbs that have no answer yet, and those that join them
// meanwhile. open says that some have none still: what they need stands in the
// set's want.
func (w *writer) runAll() (open bool) {
	x := &w.set
	for first := 0; ; {
		last := len(w.batch.Jobs)
		for n := first; n < last; n++ {
			if w.done[n] {
				continue
			}
			if err := w.runOne(n); err == errShort { //nolint:errorlint // our own sign, never wrapped
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
	w.set.short = !w.set.known
	err := j.Verb.run(&w.set)
	if err == errShort { //nolint:errorlint // our own sign, never wrapped
		return err
	}
	if err != nil && !isRefusal(err) {
		err = &signalbox.Error{Code: signalbox.CodeInternal, Message: "nothing was stored: " + err.Error(), Err: err}
	}
	w.done[n], j.Err = true, err
	return nil
}

// isRefusal reports whether err is the verb's own answer.
func isRefusal(err error) bool {
	var own *signalbox.Error
	return errors.Is(err, store.ErrStale) || errors.As(err, &own)
}

// joined takes verbs that came meanwhile. Nobody waits for them while the
// backend is locked: others wait for that; nor while a batch is in flight: they
// have until it is stored.
func (w *writer) joined() bool {
	came := false
	if w.among.lock == locked || w.alone.pipeline.stage == inFlight {
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

// extend notes that the batch's newest jobs have no answer yet.
func (w *writer) extend() {
	for len(w.done) < len(w.batch.Jobs) {
		w.done = append(w.done, false)
	}
	w.compared = false
}

// call bounds a call of the backend.
func (w *writer) call() (context.Context, context.CancelFunc) { return w.store.within(w.store.ctx) }

// want is what the set wants to know.
func (w *writer) want() *Want { return w.set.ask(w.store.opts.Writer, len(w.batch.Jobs)) }

// fetch reads what is wanted, and looks whether the backend still has what it
// acknowledged.
func (w *writer) fetch(read func(context.Context, *Want) (*Loaded, error), want *Want) (*Loaded, error) {
	ctx, cancel := w.call()
	defer cancel()
	l, err := read(ctx, want)
	if err != nil {
		return nil, err
	}
	return l, w.check(l)
}

// merge takes what was loaded into the set, unless another process wrote since
// the set was read.
func (w *writer) merge(l *Loaded) error {
	if w.set.known && l.Moment != w.set.stored.Moment {
		w.overtaken()
		return ErrMoved
	}
	w.set.merge(l)
	w.compared = true
	return nil
}

// seal makes the delta of the batch. From here on the set is what the backend
// will be.
func (w *writer) seal(log bool) *Delta {
	w.number++
	d := &w.deltas[w.number%2]
	w.set.delta(d, w.store.opts.Writer, w.number, log)
	w.ledger.sent = d.To
	w.set.settled()
	return d
}

// send stores a sealed batch, and waits for it.
func (w *writer) send(d *Delta) error {
	ctx, cancel := w.call()
	defer cancel()
	if err := w.store.backend.Commit(ctx, d); err != nil {
		return w.failed(d, err)
	}
	w.stored()
	return nil
}

// stored notes that the batch that was sealed last is in the backend.
func (w *writer) stored() {
	w.ledger.confirmed, w.ledger.seen = w.number, w.ledger.sent
	w.deltas[w.number%2].clear()
	w.finished()
}

// failed notes that a batch is not stored, as far as is known.
func (w *writer) failed(d *Delta, err error) error {
	for i := range d.Requests {
		w.set.requests.drop(d.Requests[i].Seq) // another task may get the number
	}
	switch {
	case errors.Is(err, ErrMoved):
		w.overtaken()
	case errors.Is(err, ErrTaken):
		w.set.look, w.keyLooks = lookAll, keyLookBatches
	}
	return err
}

// overtaken notes that another process wrote since the set was loaded.
func (w *writer) overtaken() {
	if w.store.shared != nil {
		w.mode = &w.among
		w.among.overtaken()
	}
}

// finished counts a batch that ended.
func (w *writer) finished() {
	w.keyLooks = max(0, w.keyLooks-1)
	w.mode.finished()
}

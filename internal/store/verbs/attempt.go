package verbs

import (
	"context"
	"errors"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// attempt runs the verbs over the set and commits what they changed.
func (w *writer) attempt() error {
	x := &w.set
	x.begin()
	w.careful = w.crowd > 0 && (w.overtook || !w.looksOnly())
	x.lookKeys, x.busy = w.keyed > 0, len(w.batch.Jobs) >= busyVerbs
	x.ahead = readAhead
	if w.moved {
		x.ahead = 0
	}
	w.done = w.done[:0]
	w.extend()
	w.fresh = false
	if w.crowd > 0 {
		if err := w.land(); err != nil {
			return err
		}
		w.tell()
	}
	if w.crowd > 0 && x.known && !w.holding {
		if err := w.follow(); err != nil {
			return err
		}
	}
	for {
		open := w.runAll()
		if open || x.want.any {
			if err := w.load(); err != nil {
				return err
			}
			continue
		}
		more, err := w.await()
		if err != nil {
			return err
		}
		if !more {
			return w.commit()
		}
	}
}

// follow takes what other processes changed into the set, and the lock before
// where the batch will most likely write. So what the set knows is of use among
// others, too: the verbs run over what the server has at that moment. What they
// will need of it beyond that comes with it, as far as it is foreseen: nobody
// else can write meanwhile.
func (w *writer) follow() error {
	x := &w.set
	for _, j := range w.batch.Jobs {
		if v, ok := j.Verb.(interface{ foresee(x *workingSet) }); ok {
			v.foresee(x)
		}
	}
	want := x.ask(w.store.opts.Writer)
	want.Since, want.InUse = x.stored.Moment, true
	for n := range want.Lines {
		want.Lines[n].After = store.Cursor{} // where the known part ends is not known before the logs are
	}
	l, err := w.fetch(want)
	if err != nil {
		return err
	}
	if x.follow(l); x.known {
		x.merge(l)
	}
	w.fresh = x.known
	return nil
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
// backend is locked: others wait for that; nor while a batch is at sea: they
// have until it has landed.
func (w *writer) joined() bool {
	came := false
	if w.holding || w.sea.out {
		came = w.store.inbox.Take(&w.batch)
	} else {
		came = w.store.inbox.Joined(&w.batch, w.company)
	}
	if !came {
		return false
	}
	w.extend()
	w.fresh = false
	return true
}

// extend notes that the batch's newest jobs have no answer yet.
func (w *writer) extend() {
	for len(w.done) < len(w.batch.Jobs) {
		w.done = append(w.done, false)
	}
}

// call bounds a call of the backend.
func (w *writer) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.store.ctx, w.store.opts.Patience)
}

// looksOnly reports whether all verbs will most likely find nothing to do.
func (w *writer) looksOnly() bool {
	for _, j := range w.batch.Jobs {
		if l, ok := j.Verb.(interface{ looksOnly() bool }); !ok || !l.looksOnly() {
			return false
		}
	}
	return true
}

// load loads what the set wants; where others write, too, it takes the lock
// before.
func (w *writer) load() error {
	if err := w.land(); err != nil {
		return err
	}
	w.tell()
	x := &w.set
	l, err := w.fetch(x.ask(w.store.opts.Writer))
	switch {
	case err != nil:
		return err
	case x.known && l.Moment != x.stored.Moment:
		w.wereOvertaken()
		if !w.holding {
			return ErrMoved
		}
		return errUnderLock
	}
	x.merge(l)
	w.fresh = true
	return nil
}

// fetch loads, or locks and loads, and looks whether the backend still has what
// it acknowledged.
func (w *writer) fetch(want *Want) (*Loaded, error) {
	ctx, cancel := w.call()
	defer cancel()
	if !w.careful || w.holding {
		l, err := w.store.backend.Load(ctx, want)
		if err != nil {
			return nil, err
		}
		return l, w.check(l)
	}
	l, err := w.store.backend.Lock(ctx, want)
	if err != nil {
		return nil, err
	}
	w.holding = true
	if w.moved = l.Moment != w.seen.Moment; w.moved {
		w.crowd = crowdBatches
	}
	return l, w.check(l)
}

// commit stores what the verbs changed, or makes sure that nobody else changed
// what they saw.
func (w *writer) commit() error {
	x := &w.set
	if !w.holding && (w.careful || (!x.wrote && !w.fresh)) {
		if err := w.load(); err != nil {
			return err
		}
	}
	if !x.wrote {
		w.tell()
		w.unlock()
		x.clean()
		w.counted()
		return nil
	}
	d := w.depart()
	if w.sails() {
		w.sail(d)
		return nil
	}
	w.tell()
	ctx, cancel := w.call()
	defer cancel()
	err := w.store.backend.Commit(ctx, d)
	if err == nil {
		w.stored()
		return nil
	}
	return w.failed(d, err)
}

// stored notes that the batch that was sent is in the backend.
func (w *writer) stored() {
	w.holding = false
	w.confirmed, w.seen = w.number, w.sent
	w.deltas[w.number%2].clear()
	w.counted()
}

// failed notes that it is not, as far as is known.
func (w *writer) failed(d *Delta, err error) error {
	for i := range d.Requests {
		w.set.requests.drop(d.Requests[i].Seq) // another task may get the number
	}
	switch {
	case errors.Is(err, ErrMoved):
		w.wereOvertaken()
	case errors.Is(err, ErrTaken):
		w.set.lookIDs, w.keyed = true, keyedBatches
	}
	return err
}

// wereOvertaken notes that another process wrote since the set was loaded.
func (w *writer) wereOvertaken() { w.crowd, w.moved, w.overtook = crowdBatches, true, true }

// counted counts down how long the batches to come are careful.
func (w *writer) counted() {
	w.set.lookIDs, w.overtook = false, false
	w.crowd = max(0, w.crowd-1)
	w.moved = w.moved && w.crowd > 0
	w.keyed = max(0, w.keyed-1)
}

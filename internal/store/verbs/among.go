package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// among is the mode where other processes write, too. A batch takes the lock
// first, so that none is refused for ever, and follows the logs of what the
// others did.
type among struct {
	*writer
	left  int  // batches until this process counts as alone, unless another writes
	moved bool // another process wrote before the lock was taken last
	lock  lock
	// upon is the batch that the set stands on, where another process handed it
	// on and it was not seen to be stored. Nobody is answered before it is: with
	// this one, or before it if this one has nothing to store.
	upon *BatchID
}

// lock is how a batch stands to the backend's lock.
type lock int

const (
	noLock lock = iota // it will most likely find nothing to do
	toLock             // it is taken with the next exchange
	locked
)

// amongBatches is how many batches long others count as being there.
const amongBatches = 16

// errMovedUnderLock says that a batch must begin anew with what the backend has
// now, which stays locked.
var errMovedUnderLock = errors.New("another batch came first, and none can now")

func (m *among) plan() {
	m.lock = toLock
	if m.looksOnly() {
		m.lock = noLock
	}
}

// looksOnly reports whether all verbs will most likely find nothing to do.
func (m *among) looksOnly() bool {
	for _, j := range m.batch.Jobs {
		if l, ok := j.Verb.(interface{ looksOnly() bool }); !ok || !l.looksOnly() {
			return false
		}
	}
	return true
}

// begin takes what other processes changed into the set, and the lock before
// where the batch will most likely write. So what the set knows is of use among
// others, too: the verbs run over what the backend has at that moment. What they
// will need of it beyond that comes with it, as far as it is foreseen: nobody
// else can write meanwhile.
func (m *among) begin() error {
	x := &m.set
	m.doubt()
	x.ahead = readAhead
	if m.moved {
		x.ahead = 0
	}
	if !x.known || m.lock == locked {
		return nil
	}
	for _, j := range m.batch.Jobs {
		if v, ok := j.Verb.(interface{ foresee(x *workingSet) }); ok {
			v.foresee(x)
		}
	}
	want := m.want()
	want.Since, want.InUse = x.stored.Moment, true
	for n := range want.Lines {
		want.Lines[n].After = store.Cursor{} // where the known part ends is not known before the logs are
	}
	l, err := m.read(want)
	if err != nil {
		return err
	}
	if x.follow(l); x.known {
		x.merge(l)
	}
	m.compared = x.known
	if x.known && l.Handed != nil {
		m.upon, m.compared = &l.Handed.BatchID, false
		x.followHanded(l.Handed)
	}
	return nil
}

// doubt is called before an attempt: where the one before stood on a batch
// that was handed on, nobody knows whether that was stored. If not, other tasks
// may get the numbers of those that it made.
func (m *among) doubt() {
	if m.upon != nil {
		m.upon, m.set.requests = nil, requests{}
	}
}

// read loads, or locks and loads.
func (m *among) read(want *Want) (*Loaded, error) {
	if m.lock != toLock {
		return m.fetch(m.store.backend.Load, want)
	}
	return m.fetch(m.take, want)
}

// take takes the lock, and looks whether others had it since.
func (m *among) take(ctx context.Context, want *Want) (*Loaded, error) {
	l, err := m.store.shared.Lock(ctx, want)
	if err != nil {
		return nil, err
	}
	m.lock = locked
	if m.moved = l.Moment != m.ledger.seen.Moment || l.Handed != nil; m.moved {
		m.left = amongBatches
	}
	return l, nil
}

// load waits for a batch that was handed on, if the set stands on one.
func (m *among) load() error {
	want := m.want()
	want.Upon = m.upon
	l, err := m.read(want)
	switch {
	case errors.Is(err, ErrMoved):
		m.overtaken()
	case err != nil:
		return err
	default:
		err = m.merge(l)
	}
	if err != nil && m.lock == locked {
		return errMovedUnderLock
	}
	if err == nil {
		m.upon = nil
	}
	return err
}

func (m *among) await() (more bool, err error) { return false, nil }

func (m *among) settle() error {
	if !m.compared || m.lock == toLock {
		if err := m.load(); err != nil {
			return err
		}
	}
	m.unlock()
	m.set.clean()
	m.writer.finished()
	return nil
}

func (m *among) commit() error {
	if m.lock == toLock {
		if err := m.load(); err != nil {
			return err
		}
	}
	d := m.seal(true)
	d.Upon = m.upon
	return m.send(d)
}

// overtaken makes the batch at hand take the lock.
func (m *among) overtaken() {
	m.left, m.moved = amongBatches, true
	if m.lock != locked {
		m.lock = toLock
	}
}

// finished counts down to where this process counts as alone.
func (m *among) finished() {
	m.lock, m.upon = noLock, nil
	if m.left--; m.left <= 0 {
		m.moved = false
		m.writer.mode = &m.writer.alone
	}
}

// unlockLimit bounds the giving back of a lock: a server that does not answer
// takes it back by itself.
const unlockLimit = 2 * time.Second

// unlock gives the lock back, which the batch takes again if it is not done.
func (m *among) unlock() {
	if m.lock != locked {
		return
	}
	m.lock = toLock
	ctx, cancel := context.WithTimeout(m.store.ctx, min(unlockLimit, m.store.opts.Patience))
	defer cancel()
	m.store.shared.Unlock(ctx)
}

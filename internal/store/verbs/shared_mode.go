package verbs

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// sharedMode is the mode with other writers. A batch takes the lock first, so that none is
// refused for ever, and applies the logs of the others' batches.
type sharedMode struct {
	*writer
	countdown int  // batches until this process counts as the only writer, unless another writes
	moved     bool // another process had written when the lock was last taken
	lock      lock
	// parent is the batch that the set is based on, if another process passed it on and it may not be stored
	// yet. No caller is answered before it is stored: together with this batch, or before it if this one has
	// nothing to store.
	parent *BatchID
}

// lock is the state of the backend's lock.
type lock int

const (
	noLock   lock = iota // not needed: the batch will probably change nothing
	lockNext             // taken with the next exchange
	locked
)

// sharedBatches is after how many batches without another writer a process counts as the
// only one.
const sharedBatches = 16

// errMovedUnderLock: the batch must start again with the backend's current state, which
// stays locked.
var errMovedUnderLock = errors.New("another batch came first, and none can now")

func (m *sharedMode) plan() {
	m.lock = lockNext
	if m.likelyReadOnly() {
		m.lock = noLock
	}
}

// readOnlyHint is a verb that can say before it runs whether it will probably change
// nothing; foresight is one that knows what it will probably need.
type (
	readOnlyHint interface{ likelyReadOnly() bool }
	foresight    interface{ foresee(x *workingSet) }
)

var (
	_ = []readOnlyHint{(*wake)(nil), (*tickets)(nil), (*byKey)(nil)}
	_ = []foresight{(*claim)(nil), (*submit)(nil)}
)

// likelyReadOnly reports whether all verbs will probably change nothing.
func (m *sharedMode) likelyReadOnly() bool {
	for _, j := range m.batch.Jobs {
		if l, ok := j.Verb.(readOnlyHint); !ok || !l.likelyReadOnly() {
			return false
		}
	}
	return true
}

// begin brings the set up to date with the changes of other processes and, if the batch
// will probably write, takes the lock first. So the set is useful with other writers, too.
// What the verbs will probably need is loaded in the same exchange.
func (m *sharedMode) begin() error {
	x := &m.set
	m.dropUnconfirmed()
	x.prefetch = prefetchReady
	if m.moved {
		x.prefetch = 0
	}
	if !x.known || m.lock == locked {
		return nil
	}
	for _, j := range m.batch.Jobs {
		if v, ok := j.Verb.(foresight); ok {
			v.foresee(x)
		}
	}
	want := m.want()
	want.Since, want.InUse = x.stored.Moment, true
	for n := range want.Lines {
		want.Lines[n].After = store.Cursor{} // the end of the known part is only known after the logs
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
		m.parent, m.compared = &l.Handed.BatchID, false
		x.followHanded(l.Handed)
	}
	return nil
}

// dropUnconfirmed is called before an attempt: if the previous one was based on a batch
// that was passed on, that may not have been stored, and its Seqs may be given to other
// tasks.
func (m *sharedMode) dropUnconfirmed() {
	if m.parent != nil {
		m.parent, m.set.requests = nil, requests{}
	}
}

// read loads, or locks and loads.
func (m *sharedMode) read(want *Want) (*Loaded, error) {
	if m.lock != lockNext {
		return m.fetch(m.store.backend.Load, want)
	}
	return m.fetch(m.takeLock, want)
}

// takeLock takes the lock, and checks whether others have written since.
func (m *sharedMode) takeLock(ctx context.Context, want *Want) (*Loaded, error) {
	l, err := m.store.shared.Lock(ctx, want)
	if err != nil {
		return nil, err
	}
	m.lock = locked
	if m.moved = l.Moment != m.ledger.seen.Moment || l.Handed != nil; m.moved {
		m.countdown = sharedBatches
	}
	return l, nil
}

// load also waits for the parent batch to be stored, if there is one.
func (m *sharedMode) load() error {
	want := m.want()
	want.Parent = m.parent
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
		m.parent = nil
	}
	return err
}

func (m *sharedMode) await() (more bool, err error) { return false, nil }

func (m *sharedMode) settle() error {
	if !m.compared || m.lock == lockNext {
		if err := m.load(); err != nil {
			return err
		}
	}
	m.unlock()
	m.set.clearChanges()
	m.writer.finished()
	return nil
}

func (m *sharedMode) commit() error {
	if m.lock == lockNext {
		if err := m.load(); err != nil {
			return err
		}
	}
	d := m.seal(true)
	d.Parent = m.parent
	return m.send(d)
}

// overtaken makes the current batch take the lock.
func (m *sharedMode) overtaken() {
	m.countdown, m.moved = sharedBatches, true
	if m.lock != locked {
		m.lock = lockNext
	}
}

// finished counts down to exclusive mode.
func (m *sharedMode) finished() {
	m.lock, m.parent = noLock, nil
	if m.countdown--; m.countdown <= 0 {
		m.moved = false
		m.writer.mode = &m.writer.exclusive
	}
}

// unlockLimit bounds an unlock; the server releases the lock of a dead process by itself.
const unlockLimit = 2 * time.Second

// unlock releases the lock; the batch takes it again if it is not done.
func (m *sharedMode) unlock() {
	if m.lock != locked {
		return
	}
	m.lock = lockNext
	ctx, cancel := context.WithTimeout(m.store.ctx, min(unlockLimit, m.store.opts.Patience))
	defer cancel()
	m.store.shared.Unlock(ctx)
}

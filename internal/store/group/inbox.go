package group

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Job is a verb on its way to the writer.
type Job[V any] struct {
	Verb V
	Size int   // bytes it will write, about
	Err  error // the answer, set by the writer
	// Alone says that it shares no batch with others.
	Alone bool

	followed bool // another one follows (store.Followed)

	state state
	done  chan struct{}
}

type state int

const (
	waits state = iota
	taken       // the writer has it: its caller will learn the truth
	gone        // its caller went away
)

// Inbox is where verbs wait for the writer. Make one with New.
type Inbox[V any] struct {
	// Patience is how long a caller whose context has ended waits for the
	// answer to a verb that the writer has; then it is told Unsure. 0: for as
	// long as it takes.
	Patience time.Duration

	mu     sync.Mutex
	jobs   []*Job[V]
	closed bool
	sign   chan struct{} // capacity 1: there is something to do
	pool   sync.Pool
}

// New makes an empty inbox.
func New[V any]() *Inbox[V] {
	b := &Inbox[V]{sign: make(chan struct{}, 1)}
	b.pool.New = func() any { return &Job[V]{done: make(chan struct{}, 1)} }
	return b
}

// ErrClosed is the answer of a store that was closed.
var ErrClosed = signalbox.Errorf(signalbox.CodeUnavailable, "the store is closed")

// Gone refuses a verb whose caller could not learn of it any more.
func Gone(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	message := "the caller went away, nothing was done"
	if errors.Is(err, context.DeadlineExceeded) { // it waits, and may have set the limit for the store's sake
		message = "the store had not begun with it when its time was up, nothing was done"
	}
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: message, Err: err}
}

// Unsure is the answer to a caller who went away, or gave up, while a commit
// was on its way.
func Unsure(err error) error {
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Err: err,
		Message: "the store has not said yet whether this was stored: look at the task, or send the same request again with its idempotency key"}
}

// Do hands a verb to the writer and waits until it is durable. A caller whose
// context ends before the writer takes the verb leaves nothing behind; after
// that it is told what became of it all the same, within Patience.
func (b *Inbox[V]) Do(ctx context.Context, verb V, size int, alone bool) error {
	if err := Gone(ctx); err != nil {
		return err
	}
	j := b.pool.Get().(*Job[V])
	queued := store.Follower(ctx)
	j.Verb, j.Size, j.Alone, j.followed, j.state, j.Err = verb, size, alone, queued != nil, waits, nil
	if err := b.put(j); err != nil {
		return err
	}
	if queued != nil {
		queued()
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if b.leave(j) {
			return Gone(ctx) // the inbox still holds j: it does not go back to the pool
		}
		if !b.await(j) {
			return Unsure(ctx.Err()) // the writer still holds j
		}
	}
	err := j.Err
	var none V
	j.Verb, j.Err = none, nil
	b.pool.Put(j)
	return err
}

// await waits for the answer to a verb that the writer has, for Patience.
func (b *Inbox[V]) await(j *Job[V]) bool {
	if b.Patience <= 0 {
		<-j.done
		return true
	}
	late := time.NewTimer(b.Patience)
	defer late.Stop()
	select {
	case <-j.done:
		return true
	case <-late.C:
		return false
	}
}

func (b *Inbox[V]) put(j *Job[V]) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.jobs = append(b.jobs, j)
	first := len(b.jobs) == 1
	b.mu.Unlock()
	if first {
		b.poke()
	}
	return nil
}

func (b *Inbox[V]) poke() {
	select {
	case b.sign <- struct{}{}:
	default:
	}
}

// Sign gets a value when there may be something to take.
func (b *Inbox[V]) Sign() <-chan struct{} { return b.sign }

// Take moves waiting jobs into the batch, in their order, and reports whether
// there were any.
func (b *Inbox[V]) Take(to *Batch[V]) (any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.jobs) && !to.Full() {
		j := b.jobs[n]
		if j.state == waits {
			if j.Alone && len(to.Jobs) > 0 {
				break
			}
			j.state = taken
			to.add(j)
			any = true
		}
		n++
	}
	left := copy(b.jobs, b.jobs[n:])
	clear(b.jobs[left:])
	b.jobs = b.jobs[:left]
	if left > 0 {
		b.poke()
	}
	return any
}

// leave takes a job back, unless the writer has it.
func (b *Inbox[V]) leave(j *Job[V]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.state != waits {
		return false
	}
	j.state = gone
	return true
}

// Close lets no more jobs in. It reports whether it is the first to do so.
func (b *Inbox[V]) Close() bool {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	b.poke()
	return first
}

// Closed refuses a verb after Close.
func (b *Inbox[V]) Closed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	return nil
}

// Len is how many jobs wait.
func (b *Inbox[V]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.jobs)
}

// Finished reports whether the inbox is closed and empty.
func (b *Inbox[V]) Finished() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && len(b.jobs) == 0
}

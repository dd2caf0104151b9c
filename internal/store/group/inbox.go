package group

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Job is a verb queued for the writer.
type Job[V any] struct {
	Verb V
	Size int   // approximate bytes it will write
	Err  error // the result, set by the writer
	// Alone: no other job shares its batch.
	Alone bool

	followed bool // another one follows (store.Followed)

	state state
	done  chan struct{}
}

type state int

const (
	waits     state = iota
	taken           // the writer has it: its caller gets the outcome
	abandoned       // its caller has gone
)

// Inbox is the queue of verbs for the writer. Make one with New.
type Inbox[V any] struct {
	// Patience is how long a caller whose context has ended waits for the outcome of a verb
	// that the writer has; then it gets Unsure. 0: no limit.
	Patience time.Duration

	mu     sync.Mutex
	jobs   []*Job[V]
	closed bool
	sign   chan struct{} // capacity 1: there are jobs
	pool   sync.Pool
}

// New returns an empty inbox.
func New[V any]() *Inbox[V] {
	b := &Inbox[V]{sign: make(chan struct{}, 1)}
	b.pool.New = func() any { return &Job[V]{done: make(chan struct{}, 1)} }
	return b
}

// ErrClosed is the error of a closed store.
var ErrClosed = signalbox.Errorf(signalbox.CodeUnavailable, "the store is closed")

// Gone is the error of a verb whose caller gave up before the writer took it.
func Gone(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	message := "the caller went away, nothing was done"
	if errors.Is(err, context.DeadlineExceeded) { // a caller that waits may have set the deadline because of the store
		message = "the store had not begun with it when its time was up, nothing was done"
	}
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: message, Err: err}
}

// Unsure is the error of a caller that gave up during a commit: the outcome is unknown.
func Unsure(err error) error {
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Err: err,
		Message: "the store has not said yet whether this was stored: look at the task, or send the same request again with its idempotency key"}
}

// Do passes a verb to the writer and waits until it is durable. If the caller's context ends
// before the writer takes the verb, it is dropped; after that the caller gets the outcome
// within Patience.
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
		if b.withdraw(j) {
			return Gone(ctx) // the inbox still holds j, so it is not returned to the pool
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

// await waits for the outcome of a verb that the writer has, for Patience.
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
		b.notify()
	}
	return nil
}

func (b *Inbox[V]) notify() {
	select {
	case b.sign <- struct{}{}:
	default:
	}
}

// Sign receives a value when there may be jobs.
func (b *Inbox[V]) Sign() <-chan struct{} { return b.sign }

// Take moves waiting jobs into the batch, in order, and reports whether there were any.
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
		b.notify()
	}
	return any
}

// withdraw removes a job, unless the writer has it.
func (b *Inbox[V]) withdraw(j *Job[V]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.state != waits {
		return false
	}
	j.state = abandoned
	return true
}

// Close refuses further jobs. It reports whether it is the first call.
func (b *Inbox[V]) Close() bool {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	b.notify()
	return first
}

// Closed returns an error after Close.
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

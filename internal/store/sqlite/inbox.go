package sqlite

import (
	"context"
	"sync"
)

// job is a verb on its way to the writer.
type job struct {
	run   func(w *writer) error
	size  int // bytes it will write, about
	state jobState
	err   error
	done  chan struct{}
}

type jobState int

const (
	jobWaits jobState = iota
	jobTaken          // the writer has it: its caller will learn the truth
	jobGone           // its caller went away before that
)

// inbox is where verbs wait for the writer.
type inbox struct {
	mu     sync.Mutex
	jobs   []*job
	closed bool
	sign   chan struct{} // capacity 1: there is something to do
}

func (b *inbox) init() { b.sign = make(chan struct{}, 1) }

func (b *inbox) put(j *job) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed
	}
	b.jobs = append(b.jobs, j)
	first := len(b.jobs) == 1
	b.mu.Unlock()
	if first {
		b.poke()
	}
	return nil
}

func (b *inbox) poke() {
	select {
	case b.sign <- struct{}{}:
	default:
	}
}

// take moves waiting jobs into the batch, in their order, and reports whether
// there were any.
func (b *inbox) take(to *batch) (any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.jobs) && !to.full() {
		if j := b.jobs[n]; j.state == jobWaits {
			j.state = jobTaken
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
func (b *inbox) leave(j *job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.state != jobWaits {
		return false
	}
	j.state = jobGone
	return true
}

// close lets no more jobs in. It reports whether it is the first to do so.
func (b *inbox) close() bool {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	b.poke()
	return first
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.jobs)
}

func (b *inbox) finished() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && len(b.jobs) == 0
}

var jobs = sync.Pool{New: func() any { return &job{done: make(chan struct{}, 1)} }}

// do hands a verb to the writer and waits until it is durable. A caller whose
// context ends before the writer takes the verb leaves nothing behind; after
// that it is told what became of it all the same.
func (s *Store) do(ctx context.Context, size int, run func(w *writer) error) error {
	if err := gone(ctx); err != nil {
		return err
	}
	j := jobs.Get().(*job)
	j.run, j.size, j.state, j.err = run, size, jobWaits, nil
	if err := s.inbox.put(j); err != nil {
		return err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if s.inbox.leave(j) {
			return gone(ctx) // the inbox still holds j: it does not go back to the pool
		}
		<-j.done
	}
	err := j.err
	j.run, j.err = nil, nil
	jobs.Put(j)
	return err
}

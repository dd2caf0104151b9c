// Package queue has the measurements of all compared queues, ours and others', through
// one interface.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// Work is called when a task begins, with the time of its submit.
type Work func(submitted time.Time)

// Queue is a queue with workers in this process.
type Queue interface {
	// Submit stores a task that may begin at once, and returns when it is durable.
	Submit(ctx context.Context, at time.Time) error
	// Later stores tasks that may begin only tomorrow.
	Later(ctx context.Context, n int) error
	// Work starts workers; it is called at most once per queue.
	Work(ctx context.Context, workers int, do Work) error
	// Close ends the workers and releases all resources.
	Close()
}

// Open makes a new, empty queue.
type Open func(ctx context.Context, b *measure.Bench) (Queue, error)

// fresh opens a queue for one round.
func fresh(ctx context.Context, b *measure.Bench, open Open, do func(Queue) (measure.Values, error)) (measure.Values, error) {
	q, err := open(ctx, b)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return do(q)
}

// Submits measures callers that submit as fast as they can, without workers.
func Submits(name string, open Open, callers int) *measure.Side {
	return side(name, open, func(ctx context.Context, b *measure.Bench, q Queue) (measure.Values, error) {
		return load.Run(ctx, callers, b.Span, func(ctx context.Context, _ int) error { return q.Submit(ctx, time.Now()) })
	})
}

// side returns a side that begins each round with an empty queue.
func side(name string, open Open, do func(context.Context, *measure.Bench, Queue) (measure.Values, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		return func(ctx context.Context) (measure.Values, error) {
			return fresh(ctx, b, open, func(q Queue) (measure.Values, error) { return do(ctx, b, q) })
		}, nil
	}}
}

// Cycles measures from the first submit to the last stored end of a number of tasks,
// which callers submit while workers process them. A queue implements Bulk if it can
// take many tasks at once and that is faster, and Late if its workers continue before
// the end of their task is stored.
func Cycles(name string, open Open, callers, workers, tasks int) *measure.Side {
	return side(name, open, func(ctx context.Context, b *measure.Bench, q Queue) (measure.Values, error) {
		n := b.Scale(tasks)
		done := make(chan struct{}, n)
		if err := q.Work(ctx, workers, func(time.Time) { done <- struct{}{} }); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := fill(ctx, q, callers, n); err != nil {
			return nil, err
		}
		for range n {
			select {
			case <-done:
			case <-time.After(time.Minute):
				return nil, errors.New("a task was not worked on for a minute")
			}
		}
		if late, ok := q.(Late); ok {
			if err := late.AwaitEnds(ctx, n); err != nil {
				return nil, err
			}
		}
		return measure.Values{load.Rate: float64(n) / time.Since(began).Seconds()}, nil
	})
}

// Bulk is a queue that takes many tasks in one call.
type Bulk interface {
	SubmitMany(ctx context.Context, n int) error
}

// Late is a queue whose workers continue before the end of their task is stored.
type Late interface {
	// AwaitEnds returns when n ends are stored, counted from the first.
	AwaitEnds(ctx context.Context, n int) error
}

func fill(ctx context.Context, q Queue, callers, n int) error {
	if many, ok := q.(Bulk); ok {
		return many.SubmitMany(ctx, n)
	}
	var all sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		all.Go(func() {
			for at := i; at < n && errs[i] == nil; at += callers {
				errs[i] = q.Submit(ctx, time.Now())
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Pickups measures from the submit to the beginning of the work, without other load:
// a pause between two submits lets the queue become idle.
func Pickups(name string, open Open, pause time.Duration, times int) *measure.Side {
	return side(name, open, func(ctx context.Context, b *measure.Bench, q Queue) (measure.Values, error) {
		began := make(chan time.Duration, 1)
		if err := q.Work(ctx, 10, func(at time.Time) { began <- time.Since(at) }); err != nil {
			return nil, err
		}
		var took []time.Duration
		for n := range min(times, b.Scale(10*times)) + 3 {
			time.Sleep(pause)
			if err := q.Submit(ctx, time.Now()); err != nil {
				return nil, err
			}
			one := <-began
			if n >= 3 { // connections are warm
				took = append(took, one)
			}
		}
		return load.Spread(took), nil
	})
}

// Half load: tasks arrive at fixed times, half as many as ten workers could process.
const (
	halfWorkers = 10
	halfTask    = 10 * time.Millisecond
	halfEvery   = 2 * time.Millisecond
)

// HalfLoad measures from the time at which a task was due to be submitted to the
// beginning of the work, with half of the workers busy.
func HalfLoad(name string, open Open) *measure.Side {
	return side(name, open, func(ctx context.Context, b *measure.Bench, q Queue) (measure.Values, error) {
		n := int(2 * b.Span / halfEvery)
		began := make(chan time.Duration, n)
		if err := q.Work(ctx, halfWorkers, func(at time.Time) {
			began <- time.Since(at)
			time.Sleep(halfTask)
		}); err != nil {
			return nil, err
		}
		errs := make(chan error, n)
		start := time.Now().Add(20 * time.Millisecond)
		for i := range n {
			due := start.Add(time.Duration(i) * halfEvery)
			time.Sleep(time.Until(due))
			go func() { errs <- q.Submit(ctx, due) }()
		}
		var took []time.Duration
		for range n {
			if err := <-errs; err != nil {
				return nil, err
			}
		}
		for range n {
			select {
			case one := <-began:
				took = append(took, one)
			case <-time.After(time.Minute):
				return nil, fmt.Errorf("%d of %d tasks have not begun after a minute", n-len(took), n)
			}
		}
		return load.Spread(took), nil
	})
}

// Weighed is a queue that can report its size in bytes.
type Weighed interface{ Weight() (float64, error) }

// Deep measures one task after the other, from its submit to its work, while others
// wait for tomorrow. The queue is filled once.
func Deep(name string, open Open, waiting int) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		q, err := open(ctx, b)
		if err != nil {
			return nil, err
		}
		b.Cleanup(q.Close)
		if err := q.Later(ctx, b.Scale(waiting)); err != nil {
			return nil, err
		}
		var each float64
		if w, ok := q.(Weighed); ok {
			bytes, err := w.Weight()
			if err != nil {
				return nil, err
			}
			each = bytes / float64(b.Scale(waiting))
		}
		done := make(chan struct{}, 1)
		if err := q.Work(ctx, 1, func(time.Time) { done <- struct{}{} }); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			v, err := load.Run(ctx, 1, b.Span, func(ctx context.Context, _ int) error {
				if err := q.Submit(ctx, time.Now()); err != nil {
					return err
				}
				<-done
				return nil
			})
			if err == nil && each > 0 {
				v[load.Storage] = each
			}
			return v, err
		}, nil
	}}
}

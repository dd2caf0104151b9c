package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"
)

// submits measures callers that submit for a while.
func (q *queue) submits(ctx context.Context, o order) (map[string]float64, error) {
	took, errs := make([][]time.Duration, o.N), make([]error, o.N)
	began := time.Now()
	var all sync.WaitGroup
	for i := range o.N {
		all.Go(func() {
			for time.Since(began) < o.Span && errs[i] == nil {
				at := time.Now()
				errs[i] = q.submit(ctx, at)
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	all.Wait()
	v := spread(slices.Concat(took...))
	v["rate"] = float64(len(slices.Concat(took...))) / time.Since(began).Seconds()
	return v, errors.Join(errs...)
}

// cycles measures from the first insert to the last stored end of a number of jobs. 64
// callers insert them, or one caller a thousand at a time. The workers pass the ends to
// a goroutine that stores many at a time, and continue.
func (q *queue) cycles(ctx context.Context, o order) (map[string]float64, error) {
	done := make(chan struct{}, o.N)
	if err := q.work(ctx, o.Workers, func(time.Time) { done <- struct{}{} }); err != nil {
		return nil, err
	}
	began := time.Now()
	if q.best {
		if err := q.many(ctx, o.N, nil); err != nil {
			return nil, err
		}
	} else {
		errs := make([]error, 64)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				for at := i; at < o.N && errs[i] == nil; at += len(errs) {
					errs[i] = q.submit(ctx, time.Now())
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
	}
	for range o.N {
		<-done
	}
	for range o.N {
		<-q.ended
	}
	return map[string]float64{"rate": float64(o.N) / time.Since(began).Seconds()}, nil
}

// pickups measures from an insert to the beginning of its work, without other load.
func (q *queue) pickups(ctx context.Context, o order) (map[string]float64, error) {
	began := make(chan time.Duration, 1)
	if err := q.work(ctx, o.Workers, func(at time.Time) { began <- time.Since(at) }); err != nil {
		return nil, err
	}
	var took []time.Duration
	for n := range o.N + 3 {
		time.Sleep(o.Pause)
		if err := q.submit(ctx, time.Now()); err != nil {
			return nil, err
		}
		one := <-began
		if n >= 3 {
			took = append(took, one)
		}
	}
	return spread(took), nil
}

// half measures ten workers with tasks of 10 ms, one due every 2 ms.
func (q *queue) half(ctx context.Context, o order) (map[string]float64, error) {
	began := make(chan time.Duration, o.N)
	if err := q.work(ctx, o.Workers, func(at time.Time) {
		began <- time.Since(at)
		time.Sleep(10 * time.Millisecond)
	}); err != nil {
		return nil, err
	}
	errs := make(chan error, o.N)
	start := time.Now().Add(20 * time.Millisecond)
	for i := range o.N {
		due := start.Add(time.Duration(i) * 2 * time.Millisecond)
		time.Sleep(time.Until(due))
		go func() { errs <- q.submit(ctx, due) }()
	}
	var took []time.Duration
	for range o.N {
		if err := <-errs; err != nil {
			return nil, err
		}
		took = append(took, <-began)
	}
	return spread(took), nil
}

// deep measures one task after the other in a prefilled file. The first call fills it with
// N tasks that wait for tomorrow.
func (q *queue) deep(ctx context.Context, o order) (map[string]float64, error) {
	if o.N > 0 {
		return nil, q.many(ctx, o.N, &river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour)})
	}
	done := make(chan struct{}, 1)
	if err := q.work(ctx, 1, func(time.Time) { done <- struct{}{} }); err != nil {
		return nil, err
	}
	n, began := 0, time.Now()
	for time.Since(began) < o.Span {
		if err := q.submit(ctx, time.Now()); err != nil {
			return nil, err
		}
		<-done
		n++
	}
	return map[string]float64{"each": float64(time.Since(began).Microseconds()) / float64(n)}, nil
}

func spread(took []time.Duration) map[string]float64 {
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[min(len(took)-1, int(float64(len(took))*q))]) / 1e6 }
	return map[string]float64{"p50": at(0.5), "p99": at(0.99)}
}

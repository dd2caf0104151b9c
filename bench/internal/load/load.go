// Package load repeats an operation with a number of callers and counts.
package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/page"
)

// Prompt is the payload of every task, here and at the peers.
const Prompt = page.Prompt

// Names of the values.
const (
	Rate = "rate" // per second
	P50  = "p50"  // ms
	P99  = "p99"  // ms
	CPU  = "cpu"  // µs of this process, per operation
	Each = "each" // µs from one operation to the next, with one caller

	RSS     = "memory"  // MB
	Storage = "storage" // bytes per waiting task
)

// Run calls do from n callers until the span is over.
func Run(ctx context.Context, n int, span time.Duration, do func(ctx context.Context, caller int) error) (measure.Values, error) {
	took, errs := make([][]time.Duration, n), make([]error, n)
	start, used := time.Now(), Processor()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for at := time.Now(); at.Sub(start) < span && errs[i] == nil && ctx.Err() == nil; {
				errs[i] = do(ctx, i)
				done := time.Now()
				took[i] = append(took[i], done.Sub(at))
				at = done
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start)
	used = Processor() - used
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	v := Spread(slices.Concat(took...))
	count := float64(len(slices.Concat(took...)))
	v[Rate] = count / elapsed.Seconds()
	v[CPU] = float64(used.Microseconds()) / count
	v[Each] = elapsed.Seconds() * 1e6 * float64(n) / count
	return v, nil
}

// Spread returns the median and the 99th percentile of times, in milliseconds.
func Spread(took []time.Duration) measure.Values {
	return measure.Values{P50: Quantile(took, 0.5), P99: Quantile(took, 0.99)}
}

// Quantile returns a quantile of times, in milliseconds.
func Quantile(took []time.Duration, q float64) float64 {
	took = slices.Sorted(slices.Values(took))
	return float64(took[min(len(took)-1, int(float64(len(took))*q))]) / 1e6
}

// Many calls do n times in total from 256 callers.
func Many(n int, do func(at int) error) error {
	const callers = 256
	var mu sync.Mutex
	var all sync.WaitGroup
	next, errs := 0, make([]error, callers)
	for i := range callers {
		all.Go(func() {
			for errs[i] == nil {
				mu.Lock()
				at := next
				next++
				mu.Unlock()
				if at >= n {
					return
				}
				errs[i] = do(at)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Processor returns the processor time that this process has used.
func Processor() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

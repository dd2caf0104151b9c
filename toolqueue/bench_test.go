package toolqueue_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// The comparison with a semaphore, alternating within one run, is bench/toolqueue.

func benchQueues(b *testing.B) *toolqueue.Queues {
	return newQueues(b, toolqueue.Hooks{
		Depth:  func(string, int) {},
		Queued: func(string, toolqueue.Who, int, int) {},
		Waited: func(string, toolqueue.Who, time.Duration) {},
	}, map[string]toolqueue.Config{"browser": {Concurrent: 4}, toolqueue.Default: {Concurrent: toolqueue.DefaultConcurrent}})
}

func BenchmarkNobodyWaits(b *testing.B) {
	q, ctx, who := benchQueues(b), b.Context(), toolqueue.Who{Session: "s", Agent: "a", Tool: "t", Since: time.Now()}
	b.ReportAllocs()
	for b.Loop() {
		p, err := q.Acquire(ctx, "browser", who)
		if err != nil {
			b.Fatal(err)
		}
		p.Release()
	}
}

// BenchmarkRate is BenchmarkNobodyWaits with a rate that allows it. A burst below 8 reads the
// clock for each token, which BenchmarkClock measures alone.
func BenchmarkRate(b *testing.B) {
	for _, capacity := range []int{1, 8, 1000} {
		for _, burst := range []int{1, 4, 8, 64, toolqueue.MaxRate} {
			b.Run(fmt.Sprintf("capacity=%d/burst=%d", capacity, burst), func(b *testing.B) {
				c := freeRate(capacity)
				c.Rate.Burst = burst
				q := newQueues(b, toolqueue.Hooks{}, one("a", c))
				ctx, who := b.Context(), toolqueue.Who{Session: "s", Agent: "a", Tool: "t", Since: time.Now()}
				b.ReportAllocs()
				for b.Loop() {
					p, err := q.Acquire(ctx, "a", who)
					if err != nil {
						b.Fatal(err)
					}
					p.Release()
				}
			})
		}
	}
}

func BenchmarkClock(b *testing.B) {
	for start := time.Now(); b.Loop(); {
		_ = time.Since(start)
	}
}

// freeRate returns a configuration whose rate always has a token.
func freeRate(capacity int) toolqueue.Config {
	return toolqueue.Config{Concurrent: capacity, Rate: toolqueue.Rate{N: toolqueue.MaxRate, Per: toolqueue.MinPer, Burst: toolqueue.MaxRate}}
}

func BenchmarkNobodyWaitsChannel(b *testing.B) {
	slots, ctx := make(chan struct{}, 4), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			b.Fatal(ctx.Err())
		}
		<-slots
	}
}

// crowd has 64 callers share b.N turns. Each yields while it has its slot, so that all slots
// are always taken.
func crowd(b *testing.B, turn func(context.Context)) {
	b.ReportAllocs()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for range b.N/64 + 1 {
				turn(ctx)
			}
		})
	}
	all.Wait()
}

func BenchmarkCrowd(b *testing.B) {
	q, who := benchQueues(b), toolqueue.Who{Session: "s", Agent: "a", Tool: "t"}
	crowd(b, func(ctx context.Context) {
		p, err := q.Acquire(ctx, "browser", who)
		if err != nil {
			b.Error(err)
		}
		runtime.Gosched()
		p.Release()
	})
}

func BenchmarkCrowdChannel(b *testing.B) {
	slots := make(chan struct{}, 4)
	crowd(b, func(ctx context.Context) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			b.Error(ctx.Err())
		}
		runtime.Gosched()
		<-slots
	})
}

// TestTakingAllocatesNothing, with a free slot or by waiting, with a rate or without.
func TestTakingAllocatesNothing(t *testing.T) {
	small := freeRate(2)
	small.Rate.Burst = 7
	for name, c := range map[string]toolqueue.Config{
		"no rate": {Concurrent: 2}, "rate": freeRate(2), "rate, small burst": small, "keys": {Concurrent: 2, PerKey: true},
	} {
		t.Run(name, func(t *testing.T) { allocatesNothing(t, c) })
	}
}

func allocatesNothing(t *testing.T, c toolqueue.Config) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", c))
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := q.Acquire(ctx, "a", Tool("t"))
		p.Release()
	}); n != 0 {
		t.Errorf("%v allocations with a free slot", n)
	}
	held := Take(t, q, "a", Tool("holder"))
	other := Take(t, q, "a", Tool("holder"))
	var next toolqueue.Permit
	who := Tool("waiter")
	who.Waits = func(toolqueue.Waiting) { next.Release() }
	next = held
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := q.Acquire(ctx, "a", who)
		next = p
	}); n != 0 {
		t.Errorf("%v allocations with a wait", n)
	}
	next.Release()
	other.Release()
	counts(t, q, "a", 0, 0)
}

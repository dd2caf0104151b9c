package toolqueue

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

const capacity = 4

// run takes one of four slots and releases it, n times; while, if not nil, is called with
// the slot held.
type run func(ctx context.Context, n int, while func())

// told counts the calls of the hooks: the minimum that telemetry does.
var told atomic.Int64

func newQueues(concurrent int) *toolqueue.Queues {
	q := toolqueue.New(toolqueue.Hooks{
		Depth:   func(_ string, depth int) { told.Store(int64(depth)) },
		Queued:  func(string, toolqueue.Who, int, int) {},
		Waited:  func(string, toolqueue.Who, time.Duration) {},
		Refused: func(string, toolqueue.Who, toolqueue.Reason, time.Duration) {},
	})
	if err := q.Configure(map[string]toolqueue.Config{
		toolqueue.Default: {Concurrent: toolqueue.DefaultConcurrent},
		"browser":         {Concurrent: concurrent}, "fetcher": {Concurrent: 8},
	}); err != nil {
		panic(err)
	}
	return q
}

func ours(q *toolqueue.Queues) run {
	who := toolqueue.Who{Session: "session-1", Agent: "claude-1", Tool: "browser__click", Since: time.Now()}
	return func(ctx context.Context, n int, while func()) {
		for range n {
			p, err := q.Acquire(ctx, "browser", who)
			if err != nil {
				panic(err)
			}
			if while != nil {
				while()
			}
			p.Release()
		}
	}
}

func weighted() run {
	s := semaphore.NewWeighted(capacity)
	return func(ctx context.Context, n int, while func()) {
		for range n {
			if err := s.Acquire(ctx, 1); err != nil {
				panic(err)
			}
			if while != nil {
				while()
			}
			s.Release(1)
		}
	}
}

func selecting() run {
	s := make(chan struct{}, capacity)
	return func(ctx context.Context, n int, while func()) {
		for range n {
			select {
			case s <- struct{}{}:
			case <-ctx.Done():
				panic(ctx.Err())
			}
			if while != nil {
				while()
			}
			<-s
		}
	}
}

func channel() run {
	s := make(chan struct{}, capacity)
	return func(_ context.Context, n int, while func()) {
		for range n {
			s <- struct{}{}
			if while != nil {
				while()
			}
			<-s
		}
	}
}

// free returns a rate that always has a token: one each nanosecond.
func free(burst int) toolqueue.Rate {
	return toolqueue.Rate{N: toolqueue.MaxRate, Per: toolqueue.MinPer, Burst: burst}
}

func rated(burst int) func() run {
	return func() run {
		q := newQueues(capacity)
		if _, _, err := q.Update("browser", func(c *toolqueue.Config) { c.Rate = free(burst) }); err != nil {
			panic(err)
		}
		return ours(q)
	}
}

// limited returns a limiter in front of a semaphore: a call waits for its token, then for its slot.
func limited(burst int) func() run {
	return func() run {
		l, s := rate.NewLimiter(rate.Every(free(burst).Every()), burst), semaphore.NewWeighted(capacity)
		return func(ctx context.Context, n int, while func()) {
			for range n {
				if err := l.Wait(ctx); err != nil {
					panic(err)
				}
				if err := s.Acquire(ctx, 1); err != nil {
					panic(err)
				}
				if while != nil {
					while()
				}
				s.Release(1)
			}
		}
	}
}

package ours

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Queue is the engine over a store, with agents that are notified of each submit, like
// the dispatcher.
type Queue struct {
	Store  store.Store
	Engine *engine.Engine

	count  atomic.Int64 // of submits
	told   chan struct{}
	stop   context.CancelFunc
	all    sync.WaitGroup
	closer func()
}

// NewQueue returns a Queue over a store. Close closes the store.
func NewQueue(s store.Store) (*Queue, error) {
	e, err := NewEngine(s)
	if err != nil {
		return nil, err
	}
	q := &Queue{Store: s, Engine: e, told: make(chan struct{}, 1024), stop: func() {}, closer: func() { _ = s.Close() }}
	e.Observe(func(a *engine.Applied) {
		if a.Kind == signalbox.EventSubmit {
			select {
			case q.told <- struct{}{}:
			default: // enough notifications are pending to wake everyone
			}
		}
	})
	return q, nil
}

// Submit submits through the engine, with a key that contains the time and a counter,
// because two may be submitted at the same moment.
func (q *Queue) Submit(ctx context.Context, at time.Time) error {
	key := fmt.Sprintf("%d at %d", q.count.Add(1), at.UnixNano())
	_, err := q.Engine.Submit(ctx, engine.NewTask{Prompt: load.Prompt, IdempotencyKey: key})
	return err
}

// Later fills the queue through the store, which avoids waiting for estimates.
func (q *Queue) Later(ctx context.Context, n int) error {
	return load.Many(n, func(int) error {
		return Submit(ctx, q.Store, func(s *store.Submission) { s.Task.NotBefore = s.Now.Add(24 * time.Hour) })
	})
}

// Work starts agents with one slot each.
func (q *Queue) Work(ctx context.Context, workers int, do queue.Work) error {
	ctx, q.stop = context.WithCancel(ctx)
	for i := range workers {
		q.all.Go(func() { q.agent(ctx, Agent(i), do) })
	}
	return nil
}

func (q *Queue) agent(ctx context.Context, name string, do queue.Work) {
	for {
		t, err := Claim(ctx, q.Store, name)
		if errors.Is(err, ErrNothing) {
			select {
			case <-ctx.Done():
				return
			case <-q.told:
			}
			continue
		}
		if err == nil {
			do(submitted(t))
			err = Finish(ctx, q.Store, t)
		}
		if err != nil {
			if ctx.Err() == nil {
				panic(err) // without a panic, a queue that loses its agents would only be slow
			}
			return
		}
	}
}

// submitted returns the time in the key; the engine prefixes the key with the owner.
func submitted(t signalbox.Task) time.Time {
	nanos, err := strconv.ParseInt(t.IdempotencyKey[strings.LastIndexFunc(t.IdempotencyKey, func(r rune) bool { return r < '0' || r > '9' })+1:], 10, 64)
	if err != nil {
		return t.CreatedAt
	}
	return time.Unix(0, nanos)
}

// Close ends the agents and closes the store.
func (q *Queue) Close() {
	q.stop()
	q.all.Wait()
	q.closer()
}

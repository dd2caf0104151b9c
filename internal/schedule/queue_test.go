package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// queue makes one task of each key.
type queue struct {
	fx    *fixture
	mu    sync.Mutex
	byKey map[string]*task
	byID  map[string]*task
	order []*task
	asked []time.Time // times of submissions
	fail  error       // error of submissions
	slow  chan struct{}
	lost  bool // submissions make a task, and the reply is lost
	signs []chan struct{}
}

type task struct {
	id, key, prompt string
	at              time.Time
	ended           bool
	cancelled       string
	lost            bool // its reply was lost
}

func (q *queue) Submit(ctx context.Context, s signalbox.Schedule, key string) (schedule.Submitted, error) {
	q.mu.Lock()
	q.asked = append(q.asked, q.fx.now())
	slow := q.slow
	q.mu.Unlock()
	if slow != nil && s.Name == "slow" {
		select {
		case <-slow:
		case <-ctx.Done():
			return schedule.Submitted{}, ctx.Err()
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return schedule.Submitted{}, q.fail
	}
	if t := q.byKey[key]; t != nil && !q.lost {
		if t.prompt != s.Prompt {
			return schedule.Submitted{}, signalbox.Errorf(signalbox.CodeIdempotency, "another body")
		}
		return schedule.Submitted{QueueID: t.id, Known: true}, nil
	}
	if q.byKey[key] != nil {
		return schedule.Submitted{}, errNoAnswer
	}
	t := &task{id: fmt.Sprintf("queue-%d", len(q.order)+1), key: key, prompt: s.Prompt, at: q.fx.now()}
	q.byKey[key], q.byID[t.id] = t, t
	q.order = append(q.order, t)
	if t.lost = q.lost; t.lost {
		return schedule.Submitted{}, errNoAnswer
	}
	return schedule.Submitted{QueueID: t.id}, nil
}

func (q *queue) Ended(_ context.Context, id string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.byID[id]
	return t == nil || t.ended, nil
}

func (q *queue) Cancel(_ context.Context, id, by string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.byID[id]; t != nil {
		t.cancelled = by
	}
	return nil
}

func (q *queue) Ends() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.signs = append(q.signs, c)
	return c, func() {}
}

// set changes the queue under its lock.
func (q *queue) set(f func(*queue)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q)
}

// made counts the tasks.
func (q *queue) made() (n int) { q.set(func(q *queue) { n = len(q.order) }); return n }

func (q *queue) tries() (n int) { q.set(func(q *queue) { n = len(q.asked) }); return n }

func (q *queue) at(n int) (t task) { q.set(func(q *queue) { t = *q.order[n] }); return t }

// end ends a task and signals it.
func (q *queue) end(id string) {
	q.mu.Lock()
	q.byID[id].ended = true
	for _, c := range q.signs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	q.mu.Unlock()
	advance(time.Second)
}

// tasks lists when tasks were made, as "02T15:04:05".
func (q *queue) tasks() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var at []string
	for _, t := range q.order {
		at = append(at, t.at.UTC().Format("02T15:04:05"))
	}
	return strings.Join(at, " ")
}

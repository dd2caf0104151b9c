package engine

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// rates limits submits per principal and minute, with one leaky bucket for tasks and one
// for bytes; each holds a minute's worth. Admins are not limited, nor are submits of the
// director itself.
type rates struct {
	tasks, bytes float64 // per minute; 0: no limit

	mu      sync.Mutex
	buckets map[string]bucket
	swept   time.Time // when empty buckets were last deleted
}

// bucket is the fill level of a principal's two buckets at a time.
type bucket struct {
	tasks, bytes float64
	at           time.Time
}

// sweepThreshold is the number of principals from which empty buckets are deleted, once a
// minute.
const sweepThreshold = 1024

// ChargeRate counts a task of size bytes that a caller creates, through Submit or otherwise,
// such as by triggering a schedule.
//
// Errors: CodeRateLimited, with RetryAfter.
func (e *Engine) ChargeRate(who signalbox.Principal, size int) error {
	r, now := &e.rates, e.Now()
	if r.tasks == 0 && r.bytes == 0 || who.Kind == "" || who.Has(signalbox.ScopeAdmin) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.buckets) >= sweepThreshold && now.Sub(r.swept) >= time.Minute {
		r.swept = now
		for key, l := range r.buckets {
			if l = r.leaked(l, now); l.tasks+l.bytes == 0 {
				delete(r.buckets, key)
			}
		}
	}
	l := r.leaked(r.buckets[who.Key()], now)
	if wait := max(waitToFit(l.tasks, 1, r.tasks), waitToFit(l.bytes, float64(size), r.bytes)); wait > 0 {
		return &signalbox.Error{
			Code: signalbox.CodeRateLimited, RetryAfter: wait,
			Message: who.String() + " has submitted as much as one caller may in a minute (queue.submit_tasks, queue.submit_bytes): try again in " + wait.Round(time.Second).String(),
		}
	}
	l.tasks, l.bytes = l.tasks+1, l.bytes+float64(size)
	r.buckets[who.Key()] = l
	return nil
}

// leaked returns the bucket as it is now.
func (r *rates) leaked(l bucket, now time.Time) bucket {
	minutes := max(0, now.Sub(l.at).Minutes())
	return bucket{tasks: max(0, l.tasks-minutes*r.tasks), bytes: max(0, l.bytes-minutes*r.bytes), at: now}
}

// waitToFit returns how long it takes until more fits, in whole seconds. More than a
// minute's worth at once fits an empty bucket.
func waitToFit(level, more, limit float64) time.Duration {
	excess := level + min(more, limit) - limit
	if limit == 0 || excess <= 0 {
		return 0
	}
	return time.Duration(excess/limit*60+1) * time.Second
}

// sizeOf returns the bytes that a new task adds to the store.
func sizeOf(n *NewTask) int {
	size := len(n.Prompt) + len(n.SystemPrompt) + len(n.Arguments) + len(n.Metadata)
	for _, list := range []map[string]string{n.Env, n.Secrets} {
		for name, value := range list {
			size += len(name) + len(value)
		}
	}
	return size
}

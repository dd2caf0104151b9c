package engine

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// rates bounds how much each principal submits in a minute: for each a leaky
// bucket of tasks and one of bytes, which hold a minute's worth. Who has the
// right admin is not bounded, nor what the director submits for nobody.
type rates struct {
	tasks, bytes float64 // a minute; 0: any number

	mu    sync.Mutex
	by    map[string]level
	swept time.Time // when those that had run empty were last forgotten
}

// level is how full the buckets of a principal were at a time.
type level struct {
	tasks, bytes float64
	at           time.Time
}

// manyLevels is from how many on those that have run empty are forgotten, once
// a minute.
const manyLevels = 1024

// Count counts a task of so many bytes that a caller brings about beside Submit,
// such as by firing a schedule.
//
// Errors: CodeRateLimited, with RetryAfter, where that would be too many.
func (e *Engine) Count(who signalbox.Principal, size int) error {
	return e.rates.take(who, size, e.Now())
}

// take counts a task of so many bytes.
//
// Errors: CodeRateLimited, with RetryAfter, where that would be too many.
func (r *rates) take(who signalbox.Principal, size int, now time.Time) error {
	if r.tasks == 0 && r.bytes == 0 || who.Kind == "" || who.Has(signalbox.ScopeAdmin) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.by) >= manyLevels && now.Sub(r.swept) >= time.Minute {
		r.swept = now
		for key, l := range r.by {
			if l = r.drained(l, now); l.tasks+l.bytes == 0 {
				delete(r.by, key)
			}
		}
	}
	l := r.drained(r.by[who.Key()], now)
	if wait := max(over(l.tasks, 1, r.tasks), over(l.bytes, float64(size), r.bytes)); wait > 0 {
		return &signalbox.Error{
			Code: signalbox.CodeRateLimited, RetryAfter: wait,
			Message: who.String() + " has submitted as much as one caller may in a minute (queue.submit_tasks, queue.submit_bytes): try again in " + wait.Round(time.Second).String(),
		}
	}
	l.tasks, l.bytes = l.tasks+1, l.bytes+float64(size)
	if r.by == nil {
		r.by = map[string]level{}
	}
	r.by[who.Key()] = l
	return nil
}

// drained is what is left of a level now.
func (r *rates) drained(l level, now time.Time) level {
	minutes := max(0, now.Sub(l.at).Minutes())
	return level{tasks: max(0, l.tasks-minutes*r.tasks), bytes: max(0, l.bytes-minutes*r.bytes), at: now}
}

// over is how long it takes until so much more fits, in whole seconds. What is
// more than a minute's worth by itself fits an empty bucket.
func over(have, more, limit float64) time.Duration {
	excess := have + min(more, limit) - limit
	if limit == 0 || excess <= 0 {
		return 0
	}
	return time.Duration(excess/limit*60+1) * time.Second
}

// sizeOf is what a new task brings along for the store to keep, in bytes.
func sizeOf(n *NewTask) int {
	size := len(n.Prompt) + len(n.SystemPrompt) + len(n.Arguments) + len(n.Metadata)
	for _, list := range []map[string]string{n.Env, n.Secrets} {
		for name, value := range list {
			size += len(name) + len(value)
		}
	}
	return size
}

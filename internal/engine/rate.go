package engine

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/ratelimit"
)

// rates limits submits per principal and minute, in tasks and in bytes. Admins are not
// limited, nor are submits of the director itself.
type rates struct {
	mu           sync.Mutex // both limits are charged or none
	tasks, bytes *ratelimit.Limiter[string]
}

// maxRateKeys bounds the principals whose submits are counted.
const maxRateKeys = 10_000

func perMinute(n int) *ratelimit.Limiter[string] {
	return ratelimit.New[string](ratelimit.Rate{N: float64(n), Per: time.Minute, Burst: float64(n)}, maxRateKeys)
}

// ChargeRate counts a task of size bytes that a caller creates, through Submit or otherwise,
// such as by triggering a schedule.
//
// Errors: CodeRateLimited, with RetryAfter.
func (e *Engine) ChargeRate(who signalbox.Principal, size int) error {
	if who.Kind == "" || who.Has(signalbox.ScopeAdmin) {
		return nil
	}
	r, key, now := &e.rates, who.Key(), e.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait := max(r.tasks.Wait(key, 1, now), r.bytes.Wait(key, float64(size), now)); wait > 0 {
		wait = wait.Truncate(time.Second) + time.Second
		return &signalbox.Error{
			Code: signalbox.CodeRateLimited, RetryAfter: wait,
			Message: who.String() + " has submitted as much as one caller may in a minute (queue.submit_tasks, queue.submit_bytes): try again in " + wait.String(),
		}
	}
	r.tasks.Add(key, 1, now)
	r.bytes.Add(key, float64(size), now)
	return nil
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

package toolqueue

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxKeys is the maximum number of keys of a queue that are kept: keys that have calls, a bucket
// that is not full or a closing. At the maximum, calls of further keys are refused as by a full
// queue.
const MaxKeys = 10_000

// firstSweep is the number of keys from which a queue looks for keys to forget.
const firstSweep = 64

// keys holds a queue for each key of a queue, with its own limits.
type keys struct {
	whole *queue // has the configuration and no slots

	mu      sync.Mutex
	of      map[string]*keyed
	sweepAt int // keys

	depthMu sync.Mutex
	depth   int // of all
}

// keyed is the queue of one key. While it is pinned it is not forgotten.
type keyed struct {
	queue
	pins atomic.Int64
}

func newKeys(whole *queue) *keys {
	whole.requireLock(lockKeyed)
	return &keys{whole: whole, of: map[string]*keyed{}, sweepAt: firstSweep}
}

// acquire acquires in the queue of the caller's key.
func (k *keys) acquire(ctx context.Context, who Who, maxWait time.Duration) (Permit, error) {
	of := k.pin(who.Key, true)
	if of == nil {
		return Permit{}, k.whole.refuse(who, ReasonFull, errKeys, 0)
	}
	defer of.pins.Add(-1)
	if !of.mustLock() {
		if p, ok := of.tryFast(&who); ok {
			return p, nil
		}
	}
	return of.acquire(ctx, who, maxWait)
}

// pin returns the queue of a key. It returns nil if there is none and it may not be added, or if
// there are MaxKeys.
func (k *keys) pin(key string, add bool) *keyed {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.of[key]
	if of == nil && add {
		of = k.add(key)
	}
	if of != nil {
		of.pins.Add(1)
	}
	return of
}

func (k *keys) add(key string) *keyed {
	if len(k.of) >= k.sweepAt {
		for key, of := range k.of {
			if of.pins.Load() == 0 && of.unused() {
				delete(k.of, key)
			}
		}
		if len(k.of) >= MaxKeys {
			return nil
		}
		k.sweepAt = min(max(firstSweep, 2*len(k.of)), MaxKeys)
	}
	of := &keyed{}
	of.parent, of.key = k, strings.Clone(key)
	k.whole.mu.Lock()
	config := k.whole.config
	k.whole.mu.Unlock()
	of.init(k.whole.name, k.whole.hooks, k.whole.start, config)
	k.of[of.key] = of
	return of
}

// with calls f with the queue of a key. has: only if it exists.
func (k *keys) with(key string, has bool, f func(*queue)) {
	if of := k.pin(key, !has); of != nil {
		defer of.pins.Add(-1)
		f(&of.queue)
	}
}

// each calls f with the queues of all keys, by key.
func (k *keys) each(f func(*queue)) {
	k.mu.Lock()
	var all []*keyed
	for _, of := range k.of {
		of.pins.Add(1)
		all = append(all, of)
	}
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b *keyed) int { return strings.Compare(a.key, b.key) })
	for _, of := range all {
		f(&of.queue)
		of.pins.Add(-1)
	}
}

// configure applies a change of the whole queue's configuration to all keys, including those that
// are added concurrently.
func (k *keys) configure(apply func(*queue)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	apply(k.whole)
	for _, of := range k.of {
		apply(&of.queue)
	}
}

// addDepth is called under the lock of a key's queue.
func (k *keys) addDepth(n int) {
	k.depthMu.Lock()
	defer k.depthMu.Unlock()
	if k.depth += n; k.whole.hooks.Depth != nil {
		k.whole.hooks.Depth(k.whole.name, k.depth)
	}
}

// unused reports whether a queue is in its initial state.
func (q *queue) unused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if q.depth > 0 || len(q.sessions) > 0 || q.closedUntil > now || q.fullAt(now) > now {
		return false
	}
	used := false
	q.requireLock(lockStatus)
	q.eachHeld(func(*slot) { used = true })
	q.allowFast(lockStatus)
	return !used
}

// status returns the status of all keys together, with at most maxWaiters of their waiters and
// limits.
func (k *keys) status(maxWaiters int) Status {
	out := k.whole.emptyStatus()
	k.each(func(of *queue) {
		s := of.status(maxWaiters)
		out.InUse += s.InUse
		out.Depth += s.Depth
		out.Keys++
		out.Holders = append(out.Holders, s.Holders...)
		out.Waiters = append(out.Waiters, s.Waiters[:min(len(s.Waiters), maxWaiters-len(out.Waiters))]...)
		if len(out.Limits) < max(1, maxWaiters) {
			out.Limits = append(out.Limits, s.Limits...)
		}
	})
	return out
}

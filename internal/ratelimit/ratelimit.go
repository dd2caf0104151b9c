// Package ratelimit limits how many units each key may take in a time, with one token bucket per key. It
// reads no clock.
package ratelimit

import (
	"sync"
	"time"
)

// Rate allows N units per Per on average, and Burst of them at once. N and Burst may be
// fractions. The zero Rate is no limit.
type Rate struct {
	N     float64
	Per   time.Duration
	Burst float64
}

// Unlimited reports whether the rate is no limit.
func (r Rate) Unlimited() bool { return r.N <= 0 || r.Per <= 0 }

// refill is how long it takes to refill n units.
func (r Rate) refill(n float64) time.Duration {
	return time.Duration(n * float64(r.Per) / r.N)
}

// Limiter holds a bucket for each key. Its methods are safe for concurrent use.
type Limiter[K comparable] struct {
	rate Rate
	keys int

	mu   sync.Mutex
	full map[K]time.Time // time when the bucket of a key is full again; full ones may be omitted
}

// New returns a limiter with full buckets. At most keys buckets that are not full are kept:
// beyond that, some keys get a full one.
func New[K comparable](rate Rate, keys int) *Limiter[K] {
	return &Limiter[K]{rate: rate, keys: max(keys, 1), full: map[K]time.Time{}}
}

// Wait returns how long to wait until n units may be taken; 0: now. More than the burst at once needs a full
// bucket.
func (l *Limiter[K]) Wait(key K, n float64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(key, n, now)
}

// Take takes n units, or takes none and returns how long to wait for them.
func (l *Limiter[K]) Take(key K, n float64, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait = l.wait(key, n, now); wait == 0 {
		l.add(key, n, now)
	}
	return wait
}

// Add takes n units, even if they are not available: then later calls wait longer. A negative n gives units
// back.
func (l *Limiter[K]) Add(key K, n float64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(key, n, now)
}

func (l *Limiter[K]) wait(key K, n float64, now time.Time) time.Duration {
	if l.rate.Unlimited() {
		return 0
	}
	missing := max(0, l.full[key].Sub(now)) // time until the bucket is full
	return max(0, missing+l.rate.refill(min(n, l.rate.Burst)-l.rate.Burst))
}

func (l *Limiter[K]) add(key K, n float64, now time.Time) {
	if l.rate.Unlimited() {
		return
	}
	full, known := l.full[key]
	if !known && len(l.full) >= l.keys {
		l.makeRoom(now)
	}
	if full.Before(now) {
		full = now
	}
	l.full[key] = full.Add(l.rate.refill(n))
}

// makeRoom removes the full buckets, then others until at most half are left, so that it is not called again
// at once.
func (l *Limiter[K]) makeRoom(now time.Time) {
	for key, full := range l.full {
		if !full.After(now) {
			delete(l.full, key)
		}
	}
	for key := range l.full {
		if len(l.full) <= l.keys/2 {
			break
		}
		delete(l.full, key)
	}
}

package toolqueue

import (
	"fmt"
	"time"
)

// Rate limits how often calls start, however long they take. It is a token bucket of at most Burst
// tokens, to which N tokens are added in each Per at equal intervals. A start takes one token. So
// in every period of Per at most N + Burst calls start.
type Rate struct {
	N     int           // tokens in each Per, 1 to MaxRate; 0: no rate
	Per   time.Duration // MinPer to MaxPer
	Burst int           // tokens saved while idle, 1 to MaxRate; 0: 1
}

// The bounds of a Rate.
const (
	MaxRate = 1_000_000
	MinPer  = time.Millisecond
	MaxPer  = 31 * 24 * time.Hour
	// maxSaving is the longest time in which a bucket becomes full.
	maxSaving = 366 * 24 * time.Hour
)

// Every returns the time between two tokens, rounded up to a nanosecond; 0: there is no rate.
func (r Rate) Every() time.Duration {
	if r.N <= 0 {
		return 0
	}
	n := time.Duration(r.N)
	return (r.Per + n - 1) / n
}

func (r Rate) burst() int { return max(1, r.Burst) }

// shown is the rate with its burst.
func (r Rate) shown() Rate {
	if r.N > 0 {
		r.Burst = r.burst()
	}
	return r
}

// Take takes a token at now from a bucket that will be full at full, both on one clock. after is
// the time at which the bucket is full again. If there is no token, ok is false and after is full.
//
// If the clock was set back, the bucket is full no later than an empty one would be.
func (r Rate) Take(full, now time.Duration) (after time.Duration, ok bool) {
	return r.bucket().take(full, now)
}

// Next returns when the next token is available: now if there is one.
func (r Rate) Next(full, now time.Duration) time.Duration { return r.bucket().next(full, now) }

// Tokens returns how many tokens the bucket has at now; 0 without a rate.
func (r Rate) Tokens(full, now time.Duration) int { return r.bucket().tokens(full, now) }

// bucket is a rate with precomputed values, because divisions are slow. The zero bucket has no
// rate.
type bucket struct {
	every time.Duration // Rate.Every
	size  time.Duration // time in which an empty bucket becomes full
}

func (r Rate) bucket() bucket {
	every := r.Every()
	return bucket{every, time.Duration(r.burst()) * every}
}

func (b bucket) take(full, now time.Duration) (after time.Duration, ok bool) {
	if b.every == 0 {
		return full, true
	}
	full = b.clamp(full, now)
	if b.next(full, now) > now {
		return full, false
	}
	return max(full, now) + b.every, true
}

func (b bucket) next(full, now time.Duration) time.Duration {
	return max(now, b.clamp(full, now)-b.size+b.every)
}

func (b bucket) tokens(full, now time.Duration) int {
	if b.every == 0 {
		return 0
	}
	return int((b.size - max(0, b.clamp(full, now)-now)) / b.every)
}

func (b bucket) clamp(full, now time.Duration) time.Duration { return min(full, now+b.size) }

// Greater returns the rate with the greater N per Per and the greater Burst. An unset rate is the
// smaller one.
func (r Rate) Greater(than Rate) Rate {
	switch {
	case r.N == 0:
		return than
	case than.N == 0:
		return r
	}
	out := r
	if than.Every() < r.Every() {
		out.N, out.Per = than.N, than.Per
	}
	out.Burst = max(r.burst(), than.burst())
	return out
}

// Check returns what is wrong with a rate, "" if nothing is.
func (r Rate) Check() string {
	switch {
	case r == Rate{}:
		return ""
	case r.N < 1 || r.N > MaxRate:
		return fmt.Sprintf("the rate is %d in %s; it must be from 1 to %d", r.N, r.Per, MaxRate)
	case r.Per < MinPer || r.Per > MaxPer:
		return fmt.Sprintf("the rate is per %s; it must be from %s to %s", r.Per, MinPer, MaxPer)
	case r.Burst < 0 || r.Burst > MaxRate:
		return fmt.Sprintf("the burst of the rate is %d; it must be from 1 to %d, or 0 for 1", r.Burst, MaxRate)
	case r.Every() > maxSaving/time.Duration(r.burst()):
		return fmt.Sprintf("a burst of %d is saved in more than a year at %d in %s; lower the burst", r.Burst, r.N, r.Per)
	}
	return ""
}

// lentPart is which part of a full bucket may be taken without the lock. See lend.
const lentPart = 8

// settle counts the tokens that were taken without the lock. Their times are not known, so all
// count as taken now: the bucket never has more tokens than with exact times. It needs the lock.
func (q *queue) settle(now time.Duration) {
	if q.lent == 0 {
		return
	}
	taken := q.lent - q.spare.Swap(0)
	q.lent = 0
	if taken > 0 {
		q.full = max(q.full, now) + time.Duration(taken)*q.bucket.every
	}
}

// lend lets callers take some tokens without the lock and without reading a clock, which costs
// more than the rest of a start. The lent tokens are a small part of the burst: a bucket that
// would have been full again before settle lacks at most those. It needs the lock.
func (q *queue) lend(now time.Duration) {
	most := q.config.Rate.burst() / lentPart
	if q.bucket.every == 0 || most == 0 || q.mustLock() {
		return
	}
	q.settle(now)
	q.lent = int64(min(q.bucket.tokens(q.full, now), most))
	q.spare.Store(q.lent)
}

// takeSpare takes a token without the lock.
func (q *queue) takeSpare() bool {
	for n := q.spare.Load(); n > 0; n = q.spare.Load() {
		if q.spare.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// takeToken takes a token by the clock, for a caller that is about to hold a slot. It does not
// wait for the lock, because the holder of the lock may wait for the slot.
func (q *queue) takeToken() bool {
	if !q.mu.TryLock() {
		return false
	}
	defer q.mu.Unlock()
	now := q.now()
	if q.mustLock() || !q.begin(now) {
		return false
	}
	q.lend(now)
	return true
}

// fullAt returns when the bucket is full, as after settle. It needs the lock.
func (q *queue) fullAt(now time.Duration) time.Duration {
	taken := q.lent - q.spare.Load()
	if q.lent == 0 || taken <= 0 {
		return q.full
	}
	return max(q.full, now) + time.Duration(taken)*q.bucket.every
}

// setRate changes the rate. The bucket still lacks the same number of tokens. It needs the lock.
func (q *queue) setRate(to Rate) {
	if to == q.config.Rate {
		return
	}
	now, was := q.now(), q.config.Rate
	q.settle(now)
	q.config.Rate, q.bucket = to, to.bucket()
	if to.N == 0 {
		q.allowFast(hasRate)
		q.full = 0
		return
	}
	lacks := 0
	if was.N > 0 {
		lacks = min(was.burst()-was.Tokens(q.full, now), to.burst())
	}
	q.full = now + time.Duration(lacks)*to.Every()
	q.requireLock(hasRate)
}

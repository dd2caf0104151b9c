package access

import (
	"net/netip"
	"sync"
	"time"
)

// An address may send ten wrong tokens at once, then one each six seconds. A valid token
// is not delayed by them.
const (
	guessBurst  = 10
	guessRefill = 6 * time.Second
	maxGuessers = 10_000
)

// guesses counts wrong tokens by address block.
type guesses struct {
	mu   sync.Mutex
	seen map[netip.Prefix]*bucket
}

func newGuesses() *guesses { return &guesses{seen: map[netip.Prefix]*bucket{}} }

// bucket is a leaky bucket; until is when it is empty.
type bucket struct{ until time.Time }

// wait returns how long the address has to wait before its next wrong token is answered
// as such; 0 or less: not at all.
func (b *guesses) wait(key netip.Prefix, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.seen[key]
	if got == nil {
		return 0
	}
	return got.until.Sub(now) - (guessBurst-1)*guessRefill
}

// note counts a wrong token. The table is bounded: when it is full, empty buckets are
// deleted, or all if none is empty.
func (b *guesses) note(key netip.Prefix, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= maxGuessers {
		for k, old := range b.seen {
			if old.until.Before(now) {
				delete(b.seen, k)
			}
		}
		if len(b.seen) >= maxGuessers {
			clear(b.seen)
		}
	}
	got := b.seen[key]
	if got == nil {
		got = &bucket{}
		b.seen[key] = got
	}
	if got.until.Before(now) {
		got.until = now
	}
	got.until = got.until.Add(guessRefill)
}

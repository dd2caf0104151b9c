package access

import (
	"net/netip"
	"sync"
	"time"
)

// Ten wrong tokens may come at once from one address, then one in six
// seconds. Whoever has the right one is not held up by them.
const (
	guessBurst  = 10
	guessRefill = 6 * time.Second
	maxGuessers = 10_000
)

// guesses counts what is wrong by address block.
type guesses struct {
	mu   sync.Mutex
	seen map[netip.Prefix]*bucket
}

func newGuesses() *guesses { return &guesses{seen: map[netip.Prefix]*bucket{}} }

// bucket holds when the address would be free of blame.
type bucket struct{ until time.Time }

// wait returns how long the address has to wait before a wrong token of its
// is answered as such again.
func (b *guesses) wait(key netip.Prefix, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.seen[key]
	if got == nil {
		return 0
	}
	return got.until.Sub(now) - (guessBurst-1)*guessRefill
}

// note counts a wrong token. The table is bounded: when it is full, the
// addresses that are free of blame go, or else all do.
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

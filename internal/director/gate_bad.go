package director

import (
	"net/netip"
	"sync"
	"time"
)

// Ten wrong tokens may come at once from one address, then one in six
// seconds. Whoever has the right one is not held up by them.
const (
	badBurst    = 10
	badRefill   = 6 * time.Second
	maxBadAddrs = 10_000
)

// badTokens counts what is wrong by address block.
type badTokens struct {
	mu   sync.Mutex
	seen map[netip.Prefix]*bucket
}

func newBadTokens() *badTokens { return &badTokens{seen: map[netip.Prefix]*bucket{}} }

// bucket holds when the address would be free of blame.
type bucket struct{ until time.Time }

// wait returns how long the address has to wait before a wrong token of its
// is answered as such again.
func (b *badTokens) wait(key netip.Prefix, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.seen[key]
	if got == nil {
		return 0
	}
	return got.until.Sub(now) - (badBurst-1)*badRefill
}

// note counts a wrong token. The table is bounded: when it is full, the
// addresses that are free of blame go, or else all do.
func (b *badTokens) note(key netip.Prefix, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= maxBadAddrs {
		for k, old := range b.seen {
			if old.until.Before(now) {
				delete(b.seen, k)
			}
		}
		if len(b.seen) >= maxBadAddrs {
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
	got.until = got.until.Add(badRefill)
}

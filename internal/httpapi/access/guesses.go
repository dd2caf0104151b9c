package access

import (
	"net/netip"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/ratelimit"
)

// An address block may send ten wrong tokens at once, then one every six seconds. Valid
// tokens are not delayed.
const (
	guessBurst  = 10
	guessRefill = 6 * time.Second
	maxBlocks   = 10_000
)

// newGuesses returns the limiter by address block.
func newGuesses() *ratelimit.Limiter[netip.Prefix] {
	return ratelimit.New[netip.Prefix](ratelimit.Rate{N: 1, Per: guessRefill, Burst: guessBurst}, maxBlocks)
}

// Refusals are recorded, but must not fill the audit log, which is never pruned. The limit
// is the number of wrong tokens for each address block, and for all together a hundred at
// once, then one per second. The next row counts the refusals that were left out.
const (
	allDenials       = 100
	allDenialsRefill = time.Second
)

type denials struct {
	from *ratelimit.Limiter[netip.Prefix]
	all  *ratelimit.Limiter[struct{}]

	mu   sync.Mutex
	left int
}

func newDenials() denials {
	return denials{from: newGuesses(), all: ratelimit.New[struct{}](ratelimit.Rate{N: 1, Per: allDenialsRefill, Burst: allDenials}, 1)}
}

// take reports whether to record a refusal, and how many were left out since the last one.
func (n *denials) take(from netip.Prefix, now time.Time) (left int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.from.Wait(from, 1, now) > 0 || n.all.Take(struct{}{}, 1, now) > 0 {
		n.left++
		return 0, false
	}
	n.from.Add(from, 1, now)
	left, n.left = n.left, 0
	return left, true
}

package peers

import (
	"cmp"
	"hash/fnv"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// rank is the score of a director for an agent: deterministic, and uniformly distributed.
func rank(director, agent string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(director)) // a hash never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(agent))
	// FNV mixes the high bits of short names poorly: apply the finisher of MurmurHash3.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// first is the director that ranks highest for an agent.
func first(directors []store.Director, agent string) string {
	best, high := "", uint64(0)
	for i := range directors {
		id := directors[i].ID
		r := rank(id, agent)
		if best == "" || cmp.Or(cmp.Compare(r, high), cmp.Compare(id, best)) > 0 {
			best, high = id, r
		}
	}
	return best
}

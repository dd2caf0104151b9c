package store_test

import (
	"math"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestNextFence(t *testing.T) {
	for _, c := range []struct{ last, above, want int64 }{
		{0, 0, 1}, {7, 3, 8}, {7, 7, 8}, {7, 900, 901},
		{7, 7 + store.FenceStep, 8 + store.FenceStep},
		{7, 8 + store.FenceStep, 8 + store.FenceStep}, // the next claim continues
		{7, 7 + store.FenceAhead, 8 + store.FenceStep},
	} {
		if got, err := store.NextFence(c.last, c.above); got != c.want || err != nil {
			t.Errorf("after %d, above %d: fence %d, %v; want %d", c.last, c.above, got, err, c.want)
		}
	}
	for _, absurd := range []int64{8 + store.FenceAhead, 1 << 53, math.MaxInt64} {
		if got, err := store.NextFence(7, absurd); signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("above %d: fence %d, %v", absurd, got, err)
		}
	}
}

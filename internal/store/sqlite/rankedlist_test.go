package sqlite

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A rankedList must match a plain sorted list, while it grows at its end, middle and beginning, and while it
// shrinks to nothing.
func TestRankedListMatchesSortedSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l rankedList
	var want []position
	check := func(s position) {
		t.Helper()
		n, found := slices.BinarySearchFunc(want, s, comparePositions)
		before, there := l.rank(s)
		if before != n || there != found || l.n != len(want) {
			t.Fatalf("of %d: %v stands at %d (%v), want %d (%v)", len(want), s, before, there, n, found)
		}
	}
	for step := range 60_000 {
		grow := step < 40_000
		s := position{int64(r.IntN(3000)), int64(step)}
		switch {
		case grow && r.IntN(3) > 0:
			s.key += int64(step) // mostly at the end
			fallthrough
		case grow:
			l.add(s)
			n, _ := slices.BinarySearchFunc(want, s, comparePositions)
			want = slices.Insert(want, n, s)
		}
		if len(want) > 0 && (!grow || r.IntN(3) == 0) {
			n := r.IntN(len(want)) / (1 + r.IntN(100)) // mostly near the beginning
			l.remove(want[n])
			want = slices.Delete(want, n, n+1)
		}
		if step%50 == 0 {
			check(s)
			if len(want) > 0 {
				check(want[r.IntN(len(want))])
				if first, ok := l.first(); !ok || first != want[0] {
					t.Fatalf("the first is %v, want %v", first, want[0])
				}
			}
		}
	}
	for _, s := range want {
		l.remove(s)
	}
	if _, ok := l.first(); ok || l.n != 0 || len(l.chunks) != 0 {
		t.Fatalf("%d are left in %d parts", l.n, len(l.chunks))
	}
	l.remove(position{1, 1}) // not present
}

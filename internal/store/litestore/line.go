package sqlite

import (
	"cmp"
	"slices"
)

// spot is a place in a line: the lowest key is first, then the lowest tie.
type spot struct{ key, tie int64 }

func compareSpots(a, b spot) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.tie, b.tie)
}

// line is a sorted set of spots which can say how many stand before one,
// whatever its length. It is a list of short sorted lists; nearly all that
// happens to a queue happens at one of its ends, where both cost next to
// nothing.
type line struct {
	parts [][]spot // none is empty
	n     int
}

// partSize is the most that a part holds.
const partSize = 512

// part returns the index of the part that s belongs to.
func (l *line) part(s spot) int {
	if last := len(l.parts) - 1; last >= 0 && compareSpots(l.parts[last][0], s) <= 0 {
		return last
	}
	n, found := slices.BinarySearchFunc(l.parts, s, func(p []spot, s spot) int { return compareSpots(p[0], s) })
	if found || n == 0 {
		return n
	}
	return n - 1
}

func (l *line) add(s spot) {
	l.n++
	if len(l.parts) == 0 {
		l.parts = append(l.parts, append(make([]spot, 0, 16), s))
		return
	}
	at := l.part(s)
	p := l.parts[at]
	n, _ := slices.BinarySearchFunc(p, s, compareSpots)
	if len(p) < partSize {
		l.parts[at] = slices.Insert(p, n, s)
		return
	}
	if n == len(p) && at == len(l.parts)-1 {
		l.parts = append(l.parts, append(make([]spot, 0, partSize), s))
		return
	}
	half := slices.Clone(p[partSize/2:])
	l.parts[at] = p[:partSize/2]
	l.parts = slices.Insert(l.parts, at+1, half)
	l.n--
	l.add(s)
}

func (l *line) remove(s spot) {
	if len(l.parts) == 0 {
		return
	}
	at := l.part(s)
	p := l.parts[at]
	n, found := slices.BinarySearchFunc(p, s, compareSpots)
	if !found {
		return
	}
	l.n--
	switch {
	case len(p) == 1:
		l.parts = slices.Delete(l.parts, at, at+1)
	case n == 0:
		l.parts[at] = p[1:]
	default:
		l.parts[at] = slices.Delete(p, n, n+1)
	}
}

// rank returns how many spots stand before s, and whether s is there.
func (l *line) rank(s spot) (before int, found bool) {
	if len(l.parts) == 0 {
		return 0, false
	}
	at := l.part(s)
	n, found := slices.BinarySearchFunc(l.parts[at], s, compareSpots)
	if at > len(l.parts)/2 {
		before = l.n
		for _, p := range l.parts[at:] {
			before -= len(p)
		}
		return before + n, found
	}
	for _, p := range l.parts[:at] {
		before += len(p)
	}
	return before + n, found
}

// first returns the lowest spot.
func (l *line) first() (spot, bool) {
	if len(l.parts) == 0 {
		return spot{}, false
	}
	return l.parts[0][0], true
}

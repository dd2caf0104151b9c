package sqlite

import (
	"cmp"
	"slices"
)

// position is a sort key.
type position struct{ key, tie int64 }

func comparePositions(a, b position) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.tie, b.tie)
}

// rankedList is a sorted set that finds the rank of an element fast, whatever its length. It is
// a list of short sorted lists; nearly all changes of a queue are at its ends, where they cost
// little.
type rankedList struct {
	chunks [][]position // none is empty
	n      int
}

// maxChunk is the maximum length of a chunk.
const maxChunk = 512

// chunkOf returns the index of the chunk that s belongs to.
func (l *rankedList) chunkOf(s position) int {
	if last := len(l.chunks) - 1; last >= 0 && comparePositions(l.chunks[last][0], s) <= 0 {
		return last
	}
	n, found := slices.BinarySearchFunc(l.chunks, s, func(p []position, s position) int { return comparePositions(p[0], s) })
	if found || n == 0 {
		return n
	}
	return n - 1
}

func (l *rankedList) add(s position) {
	l.n++
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, append(make([]position, 0, 16), s))
		return
	}
	at := l.chunkOf(s)
	p := l.chunks[at]
	n, _ := slices.BinarySearchFunc(p, s, comparePositions)
	if len(p) < maxChunk {
		l.chunks[at] = slices.Insert(p, n, s)
		return
	}
	if n == len(p) && at == len(l.chunks)-1 {
		l.chunks = append(l.chunks, append(make([]position, 0, maxChunk), s))
		return
	}
	half := slices.Clone(p[maxChunk/2:])
	l.chunks[at] = p[:maxChunk/2]
	l.chunks = slices.Insert(l.chunks, at+1, half)
	l.n--
	l.add(s)
}

func (l *rankedList) remove(s position) {
	if len(l.chunks) == 0 {
		return
	}
	at := l.chunkOf(s)
	p := l.chunks[at]
	n, found := slices.BinarySearchFunc(p, s, comparePositions)
	if !found {
		return
	}
	l.n--
	switch {
	case len(p) == 1:
		l.chunks = slices.Delete(l.chunks, at, at+1)
	case n == 0:
		l.chunks[at] = p[1:]
	default:
		l.chunks[at] = slices.Delete(p, n, n+1)
	}
}

// rank returns how many elements are before s, and whether s is present.
func (l *rankedList) rank(s position) (before int, found bool) {
	if len(l.chunks) == 0 {
		return 0, false
	}
	at := l.chunkOf(s)
	n, found := slices.BinarySearchFunc(l.chunks[at], s, comparePositions)
	if at > len(l.chunks)/2 {
		before = l.n
		for _, p := range l.chunks[at:] {
			before -= len(p)
		}
		return before + n, found
	}
	for _, p := range l.chunks[:at] {
		before += len(p)
	}
	return before + n, found
}

// first returns the lowest element.
func (l *rankedList) first() (position, bool) {
	if len(l.chunks) == 0 {
		return position{}, false
	}
	return l.chunks[0][0], true
}

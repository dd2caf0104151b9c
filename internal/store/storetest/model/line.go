package model

import (
	"cmp"
	"slices"
)

// spot is a row's position in a line, by key, then tie. The two are unique in a line.
type spot struct {
	key, tie int64
	row      *row
}

func compareSpots(a, b spot) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.tie, b.tie))
}

// line is a sorted list of rows.
type line struct{ spots []spot }

// rank returns how many spots are before (key, tie).
func (l *line) rank(key, tie int64) int {
	n, _ := slices.BinarySearchFunc(l.spots, spot{key: key, tie: tie}, compareSpots)
	return n
}

func (l *line) add(key, tie int64, r *row) {
	l.spots = slices.Insert(l.spots, l.rank(key, tie), spot{key, tie, r})
}

func (l *line) remove(key, tie int64) {
	n := l.rank(key, tie)
	l.spots = slices.Delete(l.spots, n, n+1)
}

func (l *line) empty() bool { return len(l.spots) == 0 }

// after returns the spots after (key, tie).
func (l *line) after(key, tie int64) []spot { return l.spots[l.rank(key, tie+1):] }

// lines are lines by name; empty ones are not kept.
type lines map[string]*line

func (ls lines) add(name string, key, tie int64, r *row) {
	if ls[name] == nil {
		ls[name] = &line{}
	}
	ls[name].add(key, tie, r)
}

func (ls lines) remove(name string, key, tie int64) {
	l := ls[name]
	l.remove(key, tie)
	if l.empty() {
		delete(ls, name)
	}
}

// get returns the line of that name; an empty one if there is none.
func (ls lines) get(name string) *line {
	if l := ls[name]; l != nil {
		return l
	}
	return &line{}
}

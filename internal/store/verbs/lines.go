package verbs

import (
	"cmp"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// spot is a row's place in a sorted list: the lowest key is first, then the
// lowest tie. The two are unique in a list.
type spot struct {
	key, tie int64
	row      *row
}

func compareSpots(a, b spot) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.tie, b.tie)
}

// sorted is a sorted list of rows. Nearly all that happens to one happens at
// one of its ends.
type sorted struct{ spots []spot }

// rank returns how many spots stand before (key, tie).
func (l *sorted) rank(key, tie int64) int {
	at := spot{key: key, tie: tie}
	if n := len(l.spots); n == 0 || compareSpots(l.spots[n-1], at) < 0 {
		return n
	}
	if compareSpots(l.spots[0], at) >= 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(l.spots, at, compareSpots)
	return n
}

func (l *sorted) add(key, tie int64, r *row) {
	n := l.rank(key, tie)
	if n == len(l.spots) {
		l.spots = append(l.spots, spot{key, tie, r})
		return
	}
	l.spots = slices.Insert(l.spots, n, spot{key, tie, r})
}

func (l *sorted) remove(key, tie int64) {
	n := l.rank(key, tie)
	if len(l.spots) == 1 { // its room stays
		l.spots[0] = spot{}
		l.spots = l.spots[:0]
		return
	}
	if n < len(l.spots)/2 || n == 0 { // those before it are fewer than those behind it; the head goes most often
		copy(l.spots[1:n+1], l.spots[:n])
		l.spots[0] = spot{}
		l.spots = l.spots[1:]
		return
	}
	l.spots = slices.Delete(l.spots, n, n+1)
}

// line is the ready tasks of a queue that the set knows.
type line struct {
	sorted
	queue string
	whole bool         // they are all
	upTo  store.Cursor // else: they are all up to this place; beyond it there may be others
	need  int          // claims that wait for more
	asked bool         // it is in the want
}

func (x *workingSet) line(queue string) *line {
	l := x.lines[queue]
	if l == nil {
		l = &line{queue: queue}
		x.lines[queue] = l
	}
	return l
}

// head returns the best ready task of a queue; nil if there is none, or if the
// set does not know: then it is short.
func (x *workingSet) head(queue string) *row {
	l := x.line(queue)
	x.complete(l)
	if len(l.spots) > 0 && (l.whole || !l.upTo.Before(cursorOf(&l.spots[0]))) {
		return l.spots[0].row
	}
	if !l.whole {
		l.need++
		x.want.line(l)
		x.short = true
	}
	return nil
}

// complete notes that a line is whole where it has as many tasks as are ready.
func (x *workingSet) complete(l *line) {
	if !l.whole {
		c := x.queues[l.queue]
		l.whole = c != nil && c.known && c.Ready == len(l.spots)
	}
}

func cursorOf(p *spot) store.Cursor { return store.Cursor{OrderKey: p.key, Place: p.tie} }

// loaded notes that the first n ready tasks behind upTo, or a place before it,
// are in the set now: got are those, as the backend has them.
func (l *line) loaded(got []*signalbox.Task, n int) {
	if len(got) < n {
		l.whole = true
		return
	}
	if last := store.CursorOf(got[len(got)-1]); l.upTo == (store.Cursor{}) || l.upTo.Before(last) {
		l.upTo = last
	}
}

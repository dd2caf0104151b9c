package verbs

import (
	"cmp"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// item is a row's position in a sorted list, by key, then tie. The two are unique in a
// list.
type item struct {
	key, tie int64
	row      *row
}

func compareItems(a, b item) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.tie, b.tie)
}

// sortedRows is a sorted list of rows. Nearly all changes are at its ends.
type sortedRows struct{ items []item }

// rank returns how many items are before (key, tie).
func (l *sortedRows) rank(key, tie int64) int {
	at := item{key: key, tie: tie}
	if n := len(l.items); n == 0 || compareItems(l.items[n-1], at) < 0 {
		return n
	}
	if compareItems(l.items[0], at) >= 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(l.items, at, compareItems)
	return n
}

func (l *sortedRows) add(key, tie int64, r *row) {
	n := l.rank(key, tie)
	if n == len(l.items) {
		l.items = append(l.items, item{key, tie, r})
		return
	}
	l.items = slices.Insert(l.items, n, item{key, tie, r})
}

func (l *sortedRows) remove(key, tie int64) {
	n := l.rank(key, tie)
	if len(l.items) == 1 { // keep the capacity
		l.items[0] = item{}
		l.items = l.items[:0]
		return
	}
	if n < len(l.items)/2 || n == 0 { // shift the shorter side; the head is removed most often
		copy(l.items[1:n+1], l.items[:n])
		l.items[0] = item{}
		l.items = l.items[1:]
		return
	}
	l.items = slices.Delete(l.items, n, n+1)
}

// readyQueue is the ready tasks of a queue that the set knows.
type readyQueue struct {
	sortedRows
	queue    string
	complete bool         // all ready tasks are known
	upTo     store.Cursor // otherwise: all up to this cursor are known
	need     int          // claims that wait for more
	wanted   bool         // it is in the want
}

func (x *workingSet) readyQueue(queue string) *readyQueue {
	l := x.readyQueues[queue]
	if l == nil {
		l = &readyQueue{queue: queue}
		x.readyQueues[queue] = l
	}
	return l
}

// head returns the first ready task of a queue that a claim may take; nil if there is none, or if that is
// unknown: then missing is set.
func (x *workingSet) head(queue string, v *choice) *row {
	l := x.readyQueue(queue)
	x.updateComplete(l)
	v.begin()
	for i := range l.items {
		if !l.complete && l.upTo.Before(cursorOf(&l.items[i])) {
			break
		}
		if r := l.items[i].row; v.takes(r.task) {
			return r
		}
		if v.over() {
			return nil
		}
	}
	if !l.complete {
		l.need++
		x.want.readyQueue(l)
		x.missing = true
	}
	return nil
}

// updateComplete marks a queue as complete if it has as many tasks as are ready.
func (x *workingSet) updateComplete(l *readyQueue) {
	if !l.complete {
		c := x.queues[l.queue]
		l.complete = c != nil && c.known && c.Ready == len(l.items)
	}
}

func cursorOf(p *item) store.Cursor { return store.Cursor{OrderKey: p.key, Place: p.tie} }

// loaded records that the first n ready tasks after upTo, or after an earlier cursor, were
// loaded: got.
func (l *readyQueue) loaded(got []*signalbox.Task, n int) {
	if len(got) < n {
		l.complete = true
		return
	}
	if last := store.CursorOf(got[len(got)-1]); l.upTo == (store.Cursor{}) || l.upTo.Before(last) {
		l.upTo = last
	}
}

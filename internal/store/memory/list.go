package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// spot is a row's place in a list: the lowest key is first, then the lowest
// tie. The two are unique in a list.
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

// list is rows in their order. Most come at its end, and go at its head.
type list []spot

// rank returns how many spots stand before (key, tie).
func (l list) rank(key, tie int64) int {
	at := spot{key: key, tie: tie}
	if n := len(l); n == 0 || compareSpots(l[n-1], at) < 0 {
		return n
	}
	n, _ := slices.BinarySearchFunc(l, at, compareSpots)
	return n
}

// upTo returns the spots with a key up to that one.
func (l list) upTo(key int64) list { return l[:l.rank(key, math.MaxInt64)] }

// behind returns the spots that stand behind (key, tie).
func (l list) behind(key, tie int64) list { return l[l.rank(key, tie+1):] }

func (l *list) add(key, tie int64, r *row) {
	*l = slices.Insert(*l, l.rank(key, tie), spot{key, tie, r})
}

func (l *list) remove(key, tie int64) {
	all, n := *l, l.rank(key, tie)
	if len(all) == 1 { // its room stays
		all[0] = spot{}
		*l = all[:0]
		return
	}
	if n < len(all)/2 || n == 0 { // those before it are fewer than those behind it
		copy(all[1:n+1], all[:n])
		all[0] = spot{}
		*l = all[1:]
		return
	}
	*l = slices.Delete(all, n, n+1)
}

// lists are lists by name; an empty one has no entry.
type lists struct {
	by    map[string]*list
	spare *list // was emptied last: its room is for the next
}

func newLists() lists { return lists{by: map[string]*list{}, spare: new(list)} }

func (ls *lists) add(name string, key, tie int64, r *row) {
	l := ls.by[name]
	if l == nil {
		if l, ls.spare = ls.spare, nil; l == nil {
			l = new(list)
		}
		ls.by[name] = l
	}
	l.add(key, tie, r)
}

func (ls *lists) remove(name string, key, tie int64) {
	l := ls.by[name]
	if l.remove(key, tie); len(*l) == 0 {
		delete(ls.by, name)
		ls.spare = l
	}
}

// get returns the list of that name, an empty one if there is none.
func (ls *lists) get(name string) list {
	if l := ls.by[name]; l != nil {
		return *l
	}
	return nil
}

// bump adds to a number, which has no entry while it is 0.
func bump(numbers map[string]int, name string, n int) {
	if numbers[name] += n; numbers[name] == 0 {
		delete(numbers, name)
	}
}

// first returns the first n of a list, or all.
func first[T any, L ~[]T](l L, n int) L { return l[:max(0, min(n, len(l)))] }

// tasks returns the tasks of the first n spots.
func tasks(l list, n int) []signalbox.Task {
	if l = first(l, n); len(l) == 0 {
		return nil
	}
	tasks := make([]signalbox.Task, len(l))
	for i := range l {
		tasks[i] = *l[i].row.task
	}
	return tasks
}

// pointers does the same for the working set, which changes no task in place.
func pointers(l list, n int) []*signalbox.Task {
	l = first(l, n)
	tasks := make([]*signalbox.Task, len(l))
	for i := range l {
		tasks[i] = l[i].row.task
	}
	return tasks
}

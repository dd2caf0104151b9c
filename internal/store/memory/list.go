package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// position is the sort key of a row in a list, unique there.
type position struct {
	key, tie int64
	row      *row
}

func comparePositions(a, b position) int {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.tie, b.tie)
}

// list is a sorted list of rows. Most are appended at the end and removed from the front.
type list []position

// rank returns how many rows are before (key, tie).
func (l list) rank(key, tie int64) int {
	at := position{key: key, tie: tie}
	if n := len(l); n == 0 || comparePositions(l[n-1], at) < 0 {
		return n
	}
	n, _ := slices.BinarySearchFunc(l, at, comparePositions)
	return n
}

// upTo returns the rows with a key up to that one.
func (l list) upTo(key int64) list { return l[:l.rank(key, math.MaxInt64)] }

// after returns the rows after (key, tie).
func (l list) after(key, tie int64) list { return l[l.rank(key, tie+1):] }

func (l *list) add(key, tie int64, r *row) {
	*l = slices.Insert(*l, l.rank(key, tie), position{key, tie, r})
}

func (l *list) remove(key, tie int64) {
	all, n := *l, l.rank(key, tie)
	if len(all) == 1 { // keep the capacity
		all[0] = position{}
		*l = all[:0]
		return
	}
	if n < len(all)/2 || n == 0 { // fewer before than after it
		copy(all[1:n+1], all[:n])
		all[0] = position{}
		*l = all[1:]
		return
	}
	*l = slices.Delete(all, n, n+1)
}

// lists are lists by name; empty ones have no entry.
type lists struct {
	by    map[string]*list
	spare *list // a list that has become empty, for reuse
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

// bump adds to a counter, which is deleted at 0.
func bump(numbers map[string]int, name string, n int) {
	if numbers[name] += n; numbers[name] == 0 {
		delete(numbers, name)
	}
}

// first returns the first n of a list, or all.
func first[T any, L ~[]T](l L, n int) L { return l[:max(0, min(n, len(l)))] }

// tasks returns the tasks of the first n rows.
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

// pointers is tasks for the working set, which does not modify tasks.
func pointers(l list, n int) []*signalbox.Task {
	l = first(l, n)
	tasks := make([]*signalbox.Task, len(l))
	for i := range l {
		tasks[i] = l[i].row.task
	}
	return tasks
}

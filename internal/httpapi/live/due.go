package live

import (
	"container/heap"
	"time"
)

// dueAgents says which agents are shown otherwise by time alone, and when.
type dueAgents struct {
	items []*dueItem // a heap: the first is due first
	of    map[string]*dueItem
}

type dueItem struct {
	name string
	at   time.Time
	i    int
}

// set says when the agent is due; zero: never.
func (h *dueAgents) set(name string, at time.Time) {
	item := h.of[name]
	switch {
	case item == nil && !at.IsZero():
		if h.of == nil {
			h.of = map[string]*dueItem{}
		}
		item = &dueItem{name: name, at: at}
		h.of[name] = item
		heap.Push(h, item)
	case item != nil && at.IsZero():
		heap.Remove(h, item.i)
		delete(h.of, name)
	case item != nil:
		item.at = at
		heap.Fix(h, item.i)
	}
}

// until takes those out that are due by now.
func (h *dueAgents) until(now time.Time) (names []string) {
	for len(h.items) > 0 && !h.items[0].at.After(now) {
		names = append(names, h.items[0].name)
		h.set(h.items[0].name, time.Time{})
	}
	return names
}

// The methods of heap.Interface.

func (h *dueAgents) Len() int           { return len(h.items) }
func (h *dueAgents) Less(i, j int) bool { return h.items[i].at.Before(h.items[j].at) }
func (h *dueAgents) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].i, h.items[j].i = i, j
}

func (h *dueAgents) Push(x any) {
	item := x.(*dueItem)
	item.i = len(h.items)
	h.items = append(h.items, item)
}

func (h *dueAgents) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

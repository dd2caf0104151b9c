package live

import (
	"container/heap"
	"time"
)

// dueAgents is a queue of agents that must be rebuilt at a given time even without an
// event, because their entities depend on the clock.
type dueAgents struct {
	items  []*dueItem // a min-heap by at
	byName map[string]*dueItem
}

type dueItem struct {
	name  string
	at    time.Time
	index int // in items
}

// set replaces the due time of an agent. The zero time removes it.
func (h *dueAgents) set(name string, at time.Time) {
	item := h.byName[name]
	switch {
	case item == nil && !at.IsZero():
		if h.byName == nil {
			h.byName = map[string]*dueItem{}
		}
		item = &dueItem{name: name, at: at}
		h.byName[name] = item
		heap.Push(h, item)
	case item != nil && at.IsZero():
		heap.Remove(h, item.index)
		delete(h.byName, name)
	case item != nil:
		item.at = at
		heap.Fix(h, item.index)
	}
}

// popDue removes and returns the agents that are due at now or earlier.
func (h *dueAgents) popDue(now time.Time) (names []string) {
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
	h.items[i].index, h.items[j].index = i, j
}

func (h *dueAgents) Push(x any) {
	item := x.(*dueItem)
	item.index = len(h.items)
	h.items = append(h.items, item)
}

func (h *dueAgents) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

package verbs

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// usage is the slots of an agent that are in use.
type usage struct {
	agent string
	known bool
	rows  map[int]*slotRow
	count [store.SlotSorts]int
	low   [store.SlotSorts]int // all slots of the sort below it are in use
	own   bool                 // the director's own executor: no fleet counts its slots
}

type slotRow struct {
	agent   string
	n       int
	slot    *signalbox.Slot // never changed in place; nil: it is free
	before  *signalbox.Slot // when the batch began
	changed bool
}

// usage returns the slots of an agent, if the set knows them; else it is
// short, and the answer is not to be used.
func (x *workingSet) usage(agent string) *usage {
	u := x.agents[agent]
	if u == nil {
		u = &usage{agent: agent, rows: map[int]*slotRow{}, low: [store.SlotSorts]int{0, signalbox.FirstIsolatedSlot}}
		_, u.own = signalbox.ExecutorKind(agent)
		x.agents[agent] = u
	}
	if !u.known {
		x.want.slots(agent)
		x.short = true
	}
	return u
}

// loaded takes the rows of the backend: the batch has not changed any before.
func (u *usage) loaded(rows []signalbox.Slot) {
	u.known = true
	for i := range rows {
		s := &rows[i]
		u.rows[s.Slot] = &slotRow{agent: u.agent, n: s.Slot, slot: s}
		u.count[store.SlotSort(signalbox.Isolated(s.Slot))]++
	}
}

// slot returns a slot row, if it is still there with that fence.
func (u *usage) slot(n int, fence int64) *signalbox.Slot {
	if r := u.rows[n]; r != nil && r.slot != nil && r.slot.Fence == fence {
		return r.slot
	}
	return nil
}

// used is how many slots there are rows of.
func (u *usage) used() int { return u.count[store.CommonSlots] + u.count[store.IsolatedSlots] }

// free returns the lowest free slot of a sort below an end.
func (u *usage) free(sort, end int) (int, bool) {
	for n := u.low[sort]; n < end; n++ {
		if r := u.rows[n]; r == nil || r.slot == nil {
			return n, true
		}
		u.low[sort] = n + 1
	}
	return 0, false
}

// setSlot puts a slot row in place of what there is; nil frees it.
func (x *workingSet) setSlot(u *usage, n int, s *signalbox.Slot) {
	r := u.rows[n]
	if r == nil {
		r = &slotRow{agent: u.agent, n: n}
		u.rows[n] = r
	}
	if !r.changed {
		r.changed, r.before = true, r.slot
		x.slots = append(x.slots, r)
	}
	x.wrote = true
	sort, more := store.SlotSort(signalbox.Isolated(n)), 0
	switch {
	case r.slot == nil && s != nil:
		more = 1
	case r.slot != nil && s == nil:
		more = -1
		u.low[sort] = min(u.low[sort], n)
	}
	r.slot = s
	u.count[sort] += more
	if !u.own {
		x.inUse[sort] += more
	}
}

type renew struct {
	leases []store.Lease
	n      int
}

// Renew moves the end of slot leases and returns how many of them exist.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) (int, error) {
	v := &renew{leases: leases}
	if err := s.do(ctx, v, 0); err != nil {
		return 0, err
	}
	return v.n, nil
}

func (v *renew) run(x *workingSet) error {
	for i := range v.leases {
		x.usage(v.leases[i].Agent)
	}
	if x.short {
		return errShort
	}
	v.n = 0
	for i := range v.leases {
		l := &v.leases[i]
		u := x.usage(l.Agent)
		if held := u.slot(l.Slot, l.Fence); held != nil {
			moved := *held
			moved.Expires = l.Expires
			x.setSlot(u, l.Slot, &moved)
			v.n++
		}
	}
	return nil
}

type freeSlot struct {
	agent string
	slot  int
	fence int64
	freed bool
}

// FreeSlot removes a withheld slot row, if it is still there with that fence.
func (s *Store) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (bool, error) {
	v := &freeSlot{agent: agent, slot: slot, fence: fence}
	if err := s.do(ctx, v, 0); err != nil {
		return false, err
	}
	return v.freed, nil
}

func (v *freeSlot) run(x *workingSet) error {
	u := x.usage(v.agent)
	if x.short {
		return errShort
	}
	held := u.slot(v.slot, v.fence)
	if v.freed = held != nil && held.Withheld; v.freed {
		x.setSlot(u, v.slot, nil)
	}
	return nil
}

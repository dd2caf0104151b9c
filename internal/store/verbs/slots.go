package verbs

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// agentSlots are the slots of an agent that are in use.
type agentSlots struct {
	agent     string
	known     bool
	rows      map[int]*slotRow
	count     [store.SlotSorts]int
	firstFree [store.SlotSorts]int // all slots of the sort below it are in use
	executor  bool                 // the director's own executor: its slots do not count towards the fleet limit
}

type slotRow struct {
	agent   string
	n       int
	slot    *signalbox.Slot // immutable; nil: it is free
	before  *signalbox.Slot // at the start of the batch
	changed bool
}

// agentSlots returns the slots of an agent. If they are not loaded, missing is set and the
// result is not valid.
func (x *workingSet) agentSlots(agent string) *agentSlots {
	u := x.agents[agent]
	if u == nil {
		u = &agentSlots{agent: agent, rows: map[int]*slotRow{}, firstFree: [store.SlotSorts]int{0, signalbox.FirstIsolatedSlot}}
		_, u.executor = signalbox.ExecutorKind(agent)
		x.agents[agent] = u
	}
	if !u.known {
		x.want.slots(agent)
		x.missing = true
	}
	return u
}

// loaded sets the loaded rows, before the batch changes any.
func (u *agentSlots) loaded(rows []signalbox.Slot) {
	u.known = true
	for i := range rows {
		s := &rows[i]
		u.rows[s.Slot] = &slotRow{agent: u.agent, n: s.Slot, slot: s}
		u.count[store.SlotSort(signalbox.Isolated(s.Slot))]++
	}
}

// slot returns a slot row, if it still has that fence.
func (u *agentSlots) slot(n int, fence int64) *signalbox.Slot {
	if r := u.rows[n]; r != nil && r.slot != nil && r.slot.Fence == fence {
		return r.slot
	}
	return nil
}

// used is the number of slot rows.
func (u *agentSlots) used() int { return u.count[store.CommonSlots] + u.count[store.IsolatedSlots] }

// free returns the lowest free slot of a sort below end.
func (u *agentSlots) free(sort, end int) (int, bool) {
	for n := u.firstFree[sort]; n < end; n++ {
		if r := u.rows[n]; r == nil || r.slot == nil {
			return n, true
		}
		u.firstFree[sort] = n + 1
	}
	return 0, false
}

// setSlot replaces a slot row; nil frees the slot.
func (x *workingSet) setSlot(u *agentSlots, n int, s *signalbox.Slot) {
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
		u.firstFree[sort] = min(u.firstFree[sort], n)
	}
	r.slot = s
	u.count[sort] += more
	if !u.executor {
		x.inUse[sort] += more
	}
}

type renew struct {
	leases []store.Lease
	n      int
}

// Renew extends slot leases and returns how many of them exist.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) (int, error) {
	v := &renew{leases: leases}
	if err := s.do(ctx, v, 0); err != nil {
		return 0, err
	}
	return v.n, nil
}

func (v *renew) run(x *workingSet) error {
	for i := range v.leases {
		x.agentSlots(v.leases[i].Agent)
	}
	if x.missing {
		return errMissing
	}
	v.n = 0
	for i := range v.leases {
		l := &v.leases[i]
		u := x.agentSlots(l.Agent)
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

// FreeSlot removes a withheld slot row, if it still has that fence.
func (s *Store) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (bool, error) {
	v := &freeSlot{agent: agent, slot: slot, fence: fence}
	if err := s.do(ctx, v, 0); err != nil {
		return false, err
	}
	return v.freed, nil
}

func (v *freeSlot) run(x *workingSet) error {
	u := x.agentSlots(v.agent)
	if x.missing {
		return errMissing
	}
	held := u.slot(v.slot, v.fence)
	if v.freed = held != nil && held.Withheld; v.freed {
		x.setSlot(u, v.slot, nil)
	}
	return nil
}

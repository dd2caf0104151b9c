package model

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Claim gives the best ready task of the request's queues to the agent's lowest free slot.
func (s *Store) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	if err := s.lock(ctx); err != nil {
		return store.Claimed{}, err
	}
	defer s.mu.Unlock()
	slot, free := s.freeSlot(&c)
	if drained := !c.Isolated && s.drained(c.Agent, c.Now); drained || !free {
		return store.Claimed{Held: drained}, nil
	}
	account, open := s.accounts[c.Account], true
	if _, known := s.accounts[c.Account]; known && !c.Isolated {
		p := account.Probe
		account, open = account.Admit(signalbox.AccountProbe{Agent: c.Agent, Slot: slot}, s.slot(p.Agent, p.Slot, p.Fence) != nil, c.Now)
	}
	open = open && !c.Closed
	r, short := s.head(&c)
	if r == nil || !(open || r.task.IgnoreGates) {
		return store.Claimed{Held: !open, Short: short && open}, nil
	}
	fence, err := store.NextFence(s.lastFence, c.FenceAbove)
	if err != nil {
		return store.Claimed{}, err
	}
	change, err := signalbox.Next(r.task, signalbox.Event{
		Kind: signalbox.EventClaim, Now: c.Now, Fence: fence, Agent: c.Agent, AgentURL: c.AgentURL, Slot: slot,
	})
	if err != nil {
		return store.Claimed{}, err
	}
	s.lastFence = fence
	t := change.Task
	t.Rev++
	t.Ready = false
	s.replace(r, t)
	s.takeSlot(signalbox.Slot{Agent: c.Agent, Slot: slot, TaskID: t.ID, Fence: fence, Expires: c.Expires})
	s.note(change.Entry)
	if was, known := s.accounts[c.Account]; known && open && !c.Isolated {
		if account.Probe != was.Probe {
			account.Probe.Fence = fence
		}
		s.accounts[c.Account] = account
	}
	var holds []signalbox.Hold
	for _, n := range c.Requires(&t) {
		h, _ := signalbox.Allot(c.Resources, n, s.held(n.Resource))
		h.Agent, h.Slot, h.Fence = t.Agent, t.Slot, t.Fence
		holds = append(holds, h)
	}
	s.holds = append(s.holds, holds...)
	return store.Claimed{Found: true, Task: t, Request: *r.request.Clone(), Holds: holds}, nil
}

// held lists what is held of a resource; "" is all resources.
func (s *Store) held(resource string) (list []signalbox.Hold) {
	s.holds = slices.DeleteFunc(s.holds, func(h signalbox.Hold) bool { return s.slot(h.Agent, h.Slot, h.Fence) == nil })
	for _, h := range s.holds {
		if resource == "" || h.Resource == resource {
			list = append(list, h)
		}
	}
	return list
}

// Holds lists what executions hold, by resource and fence.
func (s *Store) Holds(ctx context.Context) ([]signalbox.Hold, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	list := s.held("")
	slices.SortStableFunc(list, func(a, b signalbox.Hold) int { return strings.Compare(a.Resource, b.Resource) })
	return list, nil
}

// lacks returns the resources of which others hold too much for a task to run.
func (s *Store) lacks(c *store.ClaimRequest, t *signalbox.Task) (names []string) {
	for _, n := range c.Requires(t) {
		if _, ok := signalbox.Allot(c.Resources, n, s.held(n.Resource)); !ok {
			names = append(names, n.Resource)
		}
	}
	return names
}

// freeSlot returns the agent's lowest free slot of the requested sort, unless the fleet limit is reached.
// Every row of that sort counts, including withheld ones and those above a lowered number of slots: each may
// be an execution.
func (s *Store) freeSlot(c *store.ClaimRequest) (int, bool) {
	sort, first, slots := store.SlotSort(c.Isolated), 0, min(c.Slots, signalbox.FirstIsolatedSlot)
	if c.Isolated {
		first, slots = signalbox.FirstIsolatedSlot, c.Slots
	}
	if s.used[sort][c.Agent] >= slots || (c.Fleet > 0 && s.inUse[sort] >= c.Fleet) {
		return 0, false
	}
	for n := first; n < first+slots; n++ {
		if s.slots[c.Agent][n] == nil {
			return n, true
		}
	}
	return 0, false
}

// head returns the best ready task that the claim may take from the queues that are not paused, and whether a
// task was passed over because of its needs.
func (s *Store) head(c *store.ClaimRequest) (_ *row, short bool) {
	if s.paused("", c.Now) {
		return nil, false
	}
	var best *spot
	for _, q := range c.Queues {
		if s.paused(q, c.Now) {
			continue
		}
		l := s.ready.get(q)
		waits, passed := map[string]bool{}, 0
		first := slices.IndexFunc(l.spots, func(p spot) bool {
			t := &p.row.task
			if c.Except.Contains(t) || passed > signalbox.MaxPassed {
				return false
			}
			needs := c.Requires(t)
			if len(s.lacks(c, t)) == 0 && !slices.ContainsFunc(needs, func(n signalbox.Need) bool { return waits[n.Resource] }) {
				return true
			}
			for _, n := range needs {
				waits[n.Resource] = true
			}
			passed, short = passed+1, true
			return false
		})
		if first >= 0 && (best == nil || compareSpots(l.spots[first], *best) < 0) {
			best = &l.spots[first]
		}
	}
	if best == nil {
		return nil, short
	}
	return best.row, short
}

// drained reports whether an agent's own queue is paused, which keeps it from all queues.
func (s *Store) drained(agent string, now time.Time) bool {
	return s.paused(signalbox.AgentQueue(agent), now)
}

// paused reports whether a pause of exactly that queue is in force; an expired one is not, even if its row
// still exists.
func (s *Store) paused(queue string, now time.Time) bool {
	p, ok := s.pauses[queue]
	return ok && (p.UntilMS == 0 || now.UnixMilli() < p.UntilMS)
}

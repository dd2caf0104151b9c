package model

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Claim gives the best ready task of the request's queues to the lowest free
// slot of the agent.
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
	r := s.head(c.Queues, c.Now, &c.Except)
	if r == nil || !(open || r.task.Anyway) {
		return store.Claimed{Held: !open}, nil
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
	return store.Claimed{Found: true, Task: t, Request: *r.request.Clone()}, nil
}

// freeSlot returns the agent's lowest free slot of the sort that is asked for,
// unless the fleet's ceiling is reached. Every row of that sort counts,
// withheld ones and those above a lowered number of slots too: each may be an
// execution.
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

// head returns the best ready task of the queues that are not paused, except of some.
func (s *Store) head(queues []string, now time.Time, except *store.Except) *row {
	if s.paused("", now) {
		return nil
	}
	var best *spot
	for _, q := range queues {
		if s.paused(q, now) {
			continue
		}
		l := s.ready.get(q)
		first := slices.IndexFunc(l.spots, func(p spot) bool { return !except.Takes(&p.row.task) })
		if first >= 0 && (best == nil || compareSpots(l.spots[first], *best) < 0) {
			best = &l.spots[first]
		}
	}
	if best == nil {
		return nil
	}
	return best.row
}

// drained reports whether an agent is kept from all queues: its own is paused.
func (s *Store) drained(agent string, now time.Time) bool {
	return s.paused(signalbox.AgentQueue(agent), now)
}

// paused reports whether a pause of exactly that queue is in force: one whose
// time is over holds nothing back, even while its row still stands.
func (s *Store) paused(queue string, now time.Time) bool {
	p, ok := s.pauses[queue]
	return ok && (p.UntilMS == 0 || now.UnixMilli() < p.UntilMS)
}

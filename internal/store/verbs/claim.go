package verbs

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

type claim struct {
	request store.ClaimRequest
	got     store.Claimed
	row     *row
	asked   bool // the request of the claimed task is wanted
}

// claimSize is the size of a claim in its batch, in bytes. The request of the claimed task is loaded with it
// and may hold a prompt of 1 MiB, so the bound on a batch also bounds the requests loaded at once.
const claimSize = 32 << 10

// Claim gives the best ready task of the request's queues to the agent's lowest free slot.
func (s *Store) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	v := claims.Get().(*claim)
	v.request = c
	if err := s.do(ctx, v, claimSize); err != nil {
		return store.Claimed{}, err // the writer may still use v, so it is not returned to the pool
	}
	got := v.got
	*v = claim{}
	claims.Put(v)
	return got, nil
}

var claims = sync.Pool{New: func() any { return new(claim) }}

func (v *claim) run(x *workingSet) error {
	c := &v.request
	v.got, v.row, v.asked = store.Claimed{}, nil, false
	u := x.agentSlots(c.Agent)
	slot, free := x.freeSlot(u, c)
	account, open := x.admits(c, slot)
	open = open && !c.Closed
	if drained := !c.Isolated && x.drained(c.Agent, c.Now); drained {
		free, v.got.Held = false, true
	}
	if x.known && u.known && !free && !x.missing {
		return nil
	}
	pick := choice{x: x, c: c}
	r := x.best(c.Queues, c.Now, &pick)
	if x.missing {
		x.prefetchCounts(c.Queues, v.limits()...)
		return errMissing
	}
	v.got.Short = pick.short && open
	if v.got.Held = !open; r == nil || !open && !r.task.IgnoreGates {
		return nil
	}
	fence, err := store.NextFence(x.Fence, c.FenceAbove)
	if err != nil {
		return err
	}
	change, err := signalbox.Next(*r.task, signalbox.Event{
		Kind: signalbox.EventClaim, Now: c.Now, Fence: fence, Agent: c.Agent, AgentURL: c.AgentURL, Slot: slot,
	})
	if err != nil {
		return err
	}
	x.Fence = fence
	t := new(signalbox.Task)
	*t = change.Task
	t.Rev = x.nextRev(t)
	t.Ready = false
	x.change(r, t)
	x.setSlot(u, slot, &signalbox.Slot{Agent: c.Agent, Slot: slot, TaskID: t.ID, Fence: fence, Expires: c.Expires})
	v.got.Holds = x.allot(c, t)
	x.note(change.Entry)
	if account != nil && open {
		if account.Probe.Fence == 0 && account.State == signalbox.AccountTrying {
			account.Probe.Fence = fence
		}
		x.putAccount(account)
	}
	v.got.Held, v.got.Short, v.got.Found, v.got.Task, v.row = false, false, true, *t, r
	x.claims = append(x.claims, v)
	return nil
}

// foresee wants the heads of queues of which only the beginning is known: with other writers it has most
// likely been claimed.
func (v *claim) foresee(x *workingSet) {
	if x.prefetch > 0 {
		return
	}
	for _, q := range v.request.Queues {
		if l := x.readyQueues[q]; l != nil && !l.complete {
			l.need++
			x.want.readyQueue(l)
		}
	}
}

// limits returns the limits that tasks of the agent's queues count against.
func (v *claim) limits() []string {
	agent := v.request.Agent
	switch kind, _ := signalbox.ExecutorKind(agent); kind {
	case signalbox.ExecutorCommands:
		return []string{signalbox.LimitCommands}
	case signalbox.ExecutorCalls:
		return []string{signalbox.LimitCalls}
	}
	if v.request.Isolated {
		return []string{signalbox.LimitBypass(agent)}
	}
	return []string{signalbox.LimitWork, signalbox.LimitChat(agent)}
}

// freeSlot returns the agent's lowest free slot of the requested sort, unless the fleet
// limit is reached. Every row of that sort counts, including withheld ones and those above
// a lowered number of slots: each may be an execution.
func (x *workingSet) freeSlot(u *agentSlots, c *store.ClaimRequest) (int, bool) {
	sort, first, slots := store.SlotSort(c.Isolated), 0, min(c.Slots, signalbox.FirstIsolatedSlot)
	if c.Isolated {
		first, slots = signalbox.FirstIsolatedSlot, c.Slots
	}
	if u.count[sort] >= slots || (c.Fleet > 0 && x.inUse[sort] >= c.Fleet) {
		return 0, false
	}
	return u.free(sort, first+slots)
}

// best returns the first ready task that the claim may take from the queues that are not paused. If the head
// of one is unknown, missing is set.
func (x *workingSet) best(queues []string, now time.Time, pick *choice) *row {
	if x.paused("", now) {
		return nil
	}
	var best *row
	for _, q := range queues {
		if x.paused(q, now) {
			continue
		}
		r := x.head(q, pick)
		if r != nil && (best == nil || store.CursorOf(r.task).Before(store.CursorOf(best.task))) {
			best = r
		}
	}
	return best
}

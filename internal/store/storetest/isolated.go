package storetest

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func isolatedRules() []rule {
	return []rule{
		{"isolated slots are numbered apart, the lowest first", isolatedNumbers},
		{"isolated and normal slots are counted separately", isolatedApart},
		{"isolated and other slots each have a limit over all agents", isolatedFleet},
		{"a withheld slot counts towards the fleet limit", isolatedFleetWithheld},
		{"the fleet limit does not count slots of the director's own executor", isolatedFleetExecutor},
		{"of many slots the lowest free one is taken", isolatedMany},
		{"an agent that holds an isolated slot is not removed", isolatedRemove},
		{"an isolated execution lives and ends like any other", isolatedLife},
	}
}

// apart is the claim of an agent for an isolated execution.
func (b *fixture) apart(agent string, slots int) store.ClaimRequest {
	c := b.offerSlots(agent, slots)
	c.Queues, c.Isolated = []string{signalbox.BypassQueue(agent)}, true
	return c
}

func isolatedNumbers(b *fixture) {
	b.submits(4, inQueue("bypass:a"))
	for n := range 3 {
		b.same("slot", b.claimed(b.apart("a", 3)).Slot, signalbox.FirstIsolatedSlot+n)
	}
	b.noClaim(b.apart("a", 3))
	b.finish(id(2))
	t := b.claimed(b.apart("a", 3))
	b.same("slot", [2]any{t.Slot, signalbox.Isolated(t.Slot)}, [2]any{signalbox.FirstIsolatedSlot + 1, true})
}

func isolatedApart(b *fixture) {
	b.submits(2, inQueue("bypass:a"))
	b.submits(2, inQueue("agent:a"))
	b.claimed(b.apart("a", 1))
	b.noClaim(b.apart("a", 1))
	b.same("slot", b.claim("a").Slot, 0)
	b.noClaim(b.offer("a"))
	b.finish(id(3))
	b.same("slot", b.claim("a").Slot, 0)
	b.noClaim(b.apart("a", 1))
}

func isolatedFleet(b *fixture) {
	b.submits(4)
	b.submits(2, inQueue("bypass:a"))
	under := func(c store.ClaimRequest, fleet int) store.ClaimRequest {
		c.Fleet = fleet
		return c
	}
	b.claimed(under(b.offer("a"), 2))
	b.claimed(under(b.offer("b"), 2))
	b.noClaim(under(b.offer("c"), 2))
	b.claimed(under(b.apart("a", 5), 1))
	b.noClaim(under(b.apart("a", 5), 1))
	b.finish(id(1))
	b.claimed(under(b.offer("c"), 2))
	b.noClaim(under(b.offer("d"), 2))
	b.claimed(b.offer("d")) // no fleet limit
}

func isolatedFleetWithheld(b *fixture) {
	b.withheld()
	b.submit()
	c := b.offer("b")
	c.Fleet = 1
	b.noClaim(c)
}

func isolatedFleetExecutor(b *fixture) {
	b.submits(2, inQueue(signalbox.QueueCommands))
	c := b.offerSlots(signalbox.ExecutorName(signalbox.ExecutorCommands, signalbox.DefaultInstance), 2)
	c.Queues = []string{signalbox.QueueCommands}
	b.claimed(c)
	b.claimed(c)
	b.noClaim(c) // its own slots count
	b.submits(2)
	under := b.offer("a")
	under.Fleet = 1
	room := &store.Room{Queues: []string{signalbox.QueueWork}, Agents: []store.RoomAgent{{Name: "a", Slots: 3}}, Fleet: 3, Must: true}
	b.submit(func(s *store.Submission) { s.Room = room })
	b.claimed(under)
	under = b.offer("b")
	under.Fleet = 1
	b.noClaim(under)
	b.finish(id(1))
	b.noClaim(under)
}

func isolatedMany(b *fixture) {
	const slots = 130
	b.submits(slots + 4)
	for n := range slots {
		b.same("slot", b.claimed(b.offerSlots("a", slots)).Slot, n)
	}
	b.noClaim(b.offerSlots("a", slots))
	for _, n := range []int{128, 64, 0, 63} {
		b.finish(id(n + 1))
	}
	for _, want := range []int{0, 63, 64, 128} {
		b.same("slot", b.claimed(b.offerSlots("a", slots)).Slot, want)
	}
	b.noClaim(b.offerSlots("a", slots))
}

func isolatedRemove(b *fixture) {
	b.put(anAgent("a"))
	b.submit(inQueue("bypass:a"))
	t := b.claimed(b.apart("a", 1))
	b.refused(b.remove("a"), signalbox.CodeConflict)
	b.finish(t.ID)
	b.must(b.remove("a"))
}

func isolatedLife(b *fixture) {
	b.submit(inQueue("bypass:a"), func(s *store.Submission) { s.Task.Mode = signalbox.ModeBypass })
	t := b.claimed(b.apart("a", 1))
	renewed, err := b.Renew(b.ctx, []store.Lease{{Agent: "a", Slot: t.Slot, Fence: t.Fence, Expires: b.now}})
	b.must(err)
	b.same("renewed", renewed, 1)
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	b.same("withheld", b.slots()[0].Withheld, true)
	b.same("freed", b.freeSlot("a", t.Slot, t.Fence), true)
}

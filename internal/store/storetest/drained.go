package storetest

import (
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// A pause of an agent's own queue drains the agent.
func drainedRules() []rule {
	return []rule{
		{"a pause of its own queue keeps an agent from all queues, and no other agent", claimDrained},
		{"a drained agent finishes what it runs, and its isolated slots stay available", claimDrainedGoesOn},
		{"a drained agent adds no slots to a room", roomDrained},
		{"a room of which all agents are drained says so", roomAllDrained},
		{"the isolated slots of a drained agent count as room", roomDrainedIsolated},
	}
}

func claimDrained(b *fixture) {
	b.submits(2)
	b.submit(inQueue("agent:a"))
	b.submit(inQueue("pool:k"))
	b.pause(signalbox.Pause{Queue: "agent:a", UntilMS: b.now.Add(time.Second).UnixMilli()})
	c := b.offerSlots("a", 5)
	c.Queues = append(c.Queues, "pool:k")
	b.noClaim(c)
	b.claimID("b", id(1))
	c.Queues = []string{"work"} // whatever queues it names
	b.noClaim(c)
	b.pass(time.Second) // the pause is over
	c.Now = b.now
	b.same("claimed", b.claimed(c).ID, id(2))
	b.pause(signalbox.Pause{Queue: "agent:a"})
	b.noClaim(b.offerSlots("a", 5))
	b.resume("agent:a")
	b.same("claimed", b.claimed(b.offerSlots("a", 5)).ID, id(3))
}

func claimDrainedGoesOn(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.pause(signalbox.Pause{Queue: "agent:a"})
	b.accept(t.ID)
	b.submit(inQueue("bypass:a"))
	b.claimed(b.apart("a", 1))
	b.finish(t.ID)
	b.submit(inQueue("bypass:a"))
	b.pause(signalbox.Pause{Queue: "bypass:a"})
	b.noClaim(b.apart("a", 2))
	b.resume("bypass:a")
	b.pause(signalbox.Pause{})
	b.noClaim(b.apart("a", 2))
	b.resume("")
	b.claimed(b.apart("a", 2))
}

// roomOf is a room of agents with one slot each, for the queue of a kind.
func roomOf(agents ...string) store.Room {
	r := store.Room{Queues: []string{"pool:k"}, Must: true}
	for _, name := range agents {
		r.Agents = append(r.Agents, store.RoomAgent{Name: name, Slots: 1})
	}
	return r
}

func roomDrained(b *fixture) {
	b.pause(signalbox.Pause{Queue: "agent:a", UntilMS: b.now.Add(time.Second).UnixMilli()})
	b.submit(inQueue("pool:k"), inRoom(roomOf("a", "b")))
	_, err := b.Submit(b.ctx, b.submission(inQueue("pool:k"), inRoom(roomOf("a", "b")))) // b's slot is already taken by a ready task
	b.refused(err, signalbox.CodeAgentBusy)
	for _, part := range []string{"0 of 1 slots in use", "1 waiting", "1 of 2 agents paused"} {
		if !strings.Contains(err.Error(), part) {
			b.Errorf("%q does not say %q", err, part)
		}
	}
	b.pass(time.Second) // the pause is over
	b.submit(inQueue("pool:k"), inRoom(roomOf("a", "b")))
}

func roomAllDrained(b *fixture) {
	b.pause(signalbox.Pause{Queue: "agent:a"})
	b.pause(signalbox.Pause{Queue: "agent:b"})
	for said, r := range map[string]store.Room{"agent a is paused": roomOf("a"), "all 2 agents that could take it are paused": roomOf("a", "b")} {
		_, err := b.Submit(b.ctx, b.submission(inQueue("pool:k"), inRoom(r)))
		b.refused(err, signalbox.CodeAgentBusy)
		if !strings.Contains(err.Error(), said) {
			b.Errorf("%q does not say %q", err, said)
		}
	}
	waits := roomAt("a", 1)
	b.same("queued as", b.call(waits, capped("chat:a", 2)).QueuedAs, 1)
	b.same("queued as", b.call(waits, capped("chat:a", 2)).QueuedAs, 2)
	_, err := b.Submit(b.ctx, b.submission(inQueue("agent:a"), inRoom(waits), capped("chat:a", 2)))
	b.refused(err, signalbox.CodeQueueFull) // none of them is about to start
}

func roomDrainedIsolated(b *fixture) {
	b.pause(signalbox.Pause{Queue: "agent:a"})
	b.submit(inQueue("bypass:a"), inRoom(store.Room{Queues: []string{"bypass:a"}, Agents: []store.RoomAgent{{Name: "a", Slots: 1}}, Isolated: true, Must: true}))
}

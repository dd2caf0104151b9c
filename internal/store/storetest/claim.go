package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func claimRules() []rule {
	return []rule{
		{"the claim is the row as stored, with its request", claimAnswers},
		{"without waiting tasks nothing is found and nothing changes", claimNothing},
		{"only the queues of the request are looked at", claimOwnQueues},
		{"a paused queue hands out nothing", claimPaused},
		{"pausing all pauses all", claimPausedAll},
		{"an expired pause has no effect", claimPauseOver},
		{"a session's next task waits until the turn ends", claimSession},
		{"concurrent claims never share a task", claimRace},
		{"an agent need not be known", claimUnknownAgent},
	}
}

func claimAnswers(b *fixture) {
	t := b.submit(withEnv("sealed"), inSession("s"))
	b.pass(time.Second)
	got, err := b.Claim(b.ctx, b.offer("a"))
	b.must(err)
	want := t
	want.State, want.Ready, want.Rev = signalbox.Dispatching, false, 2
	want.Agent, want.AgentURL, want.Slot, want.Fence = "a", "http://a", 0, 1
	want.DispatchedAt, want.Claims = b.now, 1
	b.same("task", got.Task, want)
	b.same("stored", b.task(t.ID), want)
	b.same("request", got.Request, signalbox.Request{Prompt: "do task 1", SealedEnv: []byte("sealed")})
	b.same("slot", b.slots(), []signalbox.Slot{{Agent: "a", Slot: 0, TaskID: t.ID, Fence: 1, Expires: b.now.Add(10 * time.Minute)}})
}

func claimNothing(b *fixture) {
	b.noClaim(b.offer("a"))
	none := b.offer("a")
	none.Queues = nil
	b.submit()
	b.noClaim(none)
	b.same("slots", b.slots(), []signalbox.Slot(nil))
	b.same("journal entries", len(b.journal()), 1)
	b.same("fence of the first claim", b.claim("a").Fence, int64(1))
}

func claimOwnQueues(b *fixture) {
	b.submit(inQueue("agent:b"))
	b.submit(inQueue("pool:coder"))
	b.submit(inQueue("commands"))
	b.noClaim(b.offer("a"))
}

func claimPaused(b *fixture) {
	b.submit()
	own := b.submit(inQueue("agent:a"))
	b.must(b.SetPause(b.ctx, signalbox.Pause{Queue: "work"}, signalbox.Entry{Kind: signalbox.EventPaused, At: b.now}))
	b.claimID("a", own.ID)
	b.noClaim(b.offer("c"))
	_, err := b.Resume(b.ctx, "work", signalbox.Entry{Kind: signalbox.EventResumed, At: b.now})
	b.must(err)
	b.claim("c")
}

func claimPausedAll(b *fixture) {
	b.submit()
	b.submit(inQueue("agent:a"))
	b.must(b.SetPause(b.ctx, signalbox.Pause{}, signalbox.Entry{Kind: signalbox.EventPaused, At: b.now}))
	b.noClaim(b.offer("a"))
	_, err := b.Resume(b.ctx, "", signalbox.Entry{Kind: signalbox.EventResumed, At: b.now})
	b.must(err)
	b.claim("a")
}

func claimPauseOver(b *fixture) {
	b.submit()
	for _, queue := range []string{"work", ""} {
		p := signalbox.Pause{Queue: queue, UntilMS: b.now.Add(time.Second).UnixMilli()}
		b.must(b.SetPause(b.ctx, p, signalbox.Entry{Kind: signalbox.EventPaused, At: b.now}))
	}
	b.pass(time.Second - time.Millisecond)
	b.noClaim(b.offer("a"))
	b.pass(time.Millisecond)
	b.claim("a")
}

func claimSession(b *fixture) {
	first := b.submit(inSession("s"))
	second := b.submit(inSession("s"))
	b.claimID("a", first.ID)
	b.noClaim(b.offer("b"))
	b.finish(first.ID)
	b.claimID("b", second.ID)
}

func claimRace(b *fixture) {
	const n = 32
	b.submits(n / 2)
	got := make([]store.Claimed, n)
	now := b.now
	for _, err := range together(n, func(i int) (err error) {
		got[i], err = b.Claim(b.ctx, store.ClaimRequest{
			Agent: fmt.Sprintf("a%d", i%8), Slots: 4, Queues: []string{"work"}, Now: now, Expires: now.Add(time.Hour),
		})
		return err
	}) {
		b.must(err)
	}
	seen := map[string]bool{}
	for _, c := range got {
		if c.Found && seen[c.Task.ID] {
			b.Fatalf("%s was claimed twice", c.Task.ID)
		}
		seen[c.Task.ID] = c.Found
	}
	flying, err := b.InFlight(b.ctx)
	b.must(err)
	b.same("in flight", len(flying), n/2)
}

func claimUnknownAgent(b *fixture) {
	b.submit()
	b.claim("nobody-knows-me")
}

func slotRules() []rule {
	return []rule{
		{"an agent without a free slot gets nothing", slotsFull},
		{"the lowest free slot is taken", slotsLowest},
		{"a slot whose lease has passed is still in use", slotsNeverExpire},
		{"a withheld slot is not offered", slotsWithheld},
		{"rows above a lowered number of slots count", slotsLowered},
		{"no slots, no claim", slotsNone},
		{"concurrent claims never take more than the slots", slotsRace},
	}
}

func slotsFull(b *fixture) {
	b.submits(3)
	b.claimed(b.offerSlots("a", 2))
	b.claimed(b.offerSlots("a", 2))
	b.noClaim(b.offerSlots("a", 2))
	b.claimed(b.offerSlots("b", 2))
}

func slotsLowest(b *fixture) {
	b.submits(5)
	var held []signalbox.Task
	for n := range 3 {
		t := b.claimed(b.offerSlots("a", 3))
		b.same("slot", t.Slot, n)
		held = append(held, t)
	}
	b.finish(held[0].ID)
	b.finish(held[1].ID)
	b.same("slot", b.claimed(b.offerSlots("a", 3)).Slot, 0)
	b.same("slot", b.claimed(b.offerSlots("a", 3)).Slot, 1)
}

func slotsNeverExpire(b *fixture) {
	b.submits(2)
	t := b.claim("a")
	b.pass(24 * time.Hour)
	b.noClaim(b.offer("a"))
	b.same("state", b.task(t.ID).State, signalbox.Dispatching)
}

func slotsWithheld(b *fixture) {
	b.submits(3)
	t := b.claim("a")
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	b.noClaim(b.offer("a"))
	b.same("slot", b.claimed(b.offerSlots("a", 2)).Slot, 1)
	b.noClaim(b.offerSlots("a", 2))
}

func slotsLowered(b *fixture) {
	b.submits(5)
	for range 3 {
		b.claimed(b.offerSlots("a", 3))
	}
	b.finish(id(1))
	b.noClaim(b.offerSlots("a", 2)) // slots 1 and 2 are in use
	b.finish(id(2))
	b.same("slot", b.claimed(b.offerSlots("a", 2)).Slot, 0)
}

func slotsNone(b *fixture) {
	b.submit()
	b.noClaim(b.offerSlots("a", 0))
	b.noClaim(b.offerSlots("a", -1))
}

func slotsRace(b *fixture) {
	const n, slots = 32, 3
	b.submits(n)
	var mu sync.Mutex
	used := map[int]int{}
	fences := map[int64]bool{}
	offer := b.offerSlots("a", slots)
	for _, err := range together(n, func(int) error {
		c, err := b.Claim(b.ctx, offer)
		mu.Lock()
		defer mu.Unlock()
		if c.Found {
			used[c.Task.Slot]++
			fences[c.Task.Fence] = true
		}
		return err
	}) {
		b.must(err)
	}
	b.same("claims by slot", used, map[int]int{0: 1, 1: 1, 2: 1})
	b.same("fences", len(fences), slots)
	b.same("rows", len(b.slots()), slots)
}

func fenceRules() []rule {
	return []rule{
		{"each claim gets a higher fence, of whatever agent", fencesGrow},
		{"a fence is above what the agent has seen", fencesAbove},
		{"a requeued task gets a higher fence", fencesRequeue},
	}
}

func fencesGrow(b *fixture) {
	b.submits(20)
	last := int64(0)
	for n := range 20 {
		t := b.claim([]string{"a", "b"}[n%2])
		if t.Fence <= last {
			b.Fatalf("fence %d after %d", t.Fence, last)
		}
		last = t.Fence
		b.finish(t.ID)
	}
}

func fencesAbove(b *fixture) {
	b.submits(3)
	c := b.offer("a")
	c.FenceAbove = 1000
	t := b.claimed(c)
	if t.Fence <= 1000 {
		b.Fatalf("fence %d is not above 1000", t.Fence)
	}
	c = b.offer("b")
	c.FenceAbove = 5
	if next := b.claimed(c); next.Fence <= t.Fence {
		b.Fatalf("fence %d after %d", next.Fence, t.Fence)
	}
}

func fencesRequeue(b *fixture) {
	b.submit()
	first := b.claim("a")
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventBusy})
	if second := b.claim("b"); second.Fence <= first.Fence {
		b.Fatalf("fence %d after %d", second.Fence, first.Fence)
	}
}

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

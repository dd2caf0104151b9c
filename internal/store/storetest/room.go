package storetest

import (
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func roomRules() []rule {
	return []rule{
		{"with a free slot, the task could start at once", roomFree},
		{"without a free slot, its position is returned", roomTaken},
		{"without a room, nothing is checked", roomNone},
		{"a task that could start takes the slot before it", roomAhead},
		{"a task that is blocked takes no slot", roomBlockedAhead},
		{"the slots of several agents add up", roomAgents},
		{"an agent that runs more than its slots has none free", roomOverfull},
		{"a withheld slot is not free", roomWithheld},
		{"isolated slots are counted apart", roomIsolated},
		{"the fleet's ceiling leaves no room", roomFleet},
		{"a paused queue has no room", roomPaused},
		{"another turn of the session leaves no room", roomTurn},
		{"a task with a later start time has no room", roomLater},
		{"a task that requires room is refused without it, with the numbers", roomMust},
		{"a refused task leaves nothing behind", roomMustNoEffect},
		{"the checks come in the order key, id, room, limit", roomOrder},
		{"a task with a free slot neither fills a limit nor blocks another", roomBurst},
		{"of 64 concurrent tasks for 10 slots, exactly 10 find room", roomRace},
	}
}

// roomAt is the room of an agent with a number of slots, for its own queue.
func roomAt(agent string, slots int) store.Room {
	return store.Room{Queues: []string{signalbox.AgentQueue(agent)}, Agents: []store.RoomAgent{{Name: agent, Slots: slots}}}
}

func inRoom(r store.Room) option { return func(s *store.Submission) { s.Room = &r } }

// must makes a room required: without it the task is refused.
func must(r store.Room) store.Room {
	r.Must = true
	return r
}

// call submits a task to the queue of agent a with a room.
func (b *fixture) call(r store.Room, options ...option) signalbox.Task {
	b.Helper()
	return b.submit(append([]option{inQueue("agent:a"), inRoom(r)}, options...)...)
}

// turnedAway wants a call to be refused for lack of room, and returns the message.
func (b *fixture) turnedAway(r store.Room, options ...option) string {
	b.Helper()
	_, err := b.Submit(b.ctx, b.submission(append([]option{inQueue("agent:a"), inRoom(must(r))}, options...)...))
	b.refused(err, signalbox.CodeAgentBusy)
	return err.Error()
}

func roomFree(b *fixture) {
	t := b.call(roomAt("a", 1))
	b.same("queued as", t.QueuedAs, 0)
	b.claimID("a", t.ID)
	b.finish(t.ID)
	b.same("queued as, when the slot is free again", b.call(must(roomAt("a", 1))).QueuedAs, 0)
}

func roomTaken(b *fixture) {
	b.call(roomAt("a", 1))
	b.claim("a")
	for n := range 3 {
		t := b.call(roomAt("a", 1))
		b.same("queued as", t.QueuedAs, n+1)
		b.same("stored", b.task(t.ID).QueuedAs, n+1)
	}
	b.finish(id(1))
	next := b.claim("a")
	b.same("status at submit stays", next.QueueStatus(), "queued:1")
}

func roomNone(b *fixture) {
	b.claimID("a", b.submit(inQueue("agent:a")).ID)
	b.same("queued as", b.submit(inQueue("agent:a")).QueuedAs, 0)
}

func roomAhead(b *fixture) {
	b.submit(inQueue("work"))
	r := roomAt("a", 1)
	r.Queues = append(r.Queues, "work")
	b.same("queued as: the other stands in another queue", b.call(r).QueuedAs, 1)
	b.turnedAway(r)
	b.same("queued as, with a slot for each", b.call(must(store.Room{Queues: r.Queues, Agents: []store.RoomAgent{{Name: "a", Slots: 3}}})).QueuedAs, 0)
}

func roomBlockedAhead(b *fixture) {
	b.submit(inQueue("agent:a"), notBefore(b.now.Add(time.Hour)))
	b.same("queued as", b.call(must(roomAt("a", 1))).QueuedAs, 0)
}

func roomAgents(b *fixture) {
	r := store.Room{Queues: []string{"pool:k"}, Agents: []store.RoomAgent{{Name: "a", Slots: 1}, {Name: "b", Slots: 2}}}
	for n := range 3 {
		b.same("queued as", b.submit(inQueue("pool:k"), inRoom(must(r))).QueuedAs, 0)
		if n == 1 {
			c := b.offerSlots("b", 2)
			c.Queues = []string{"pool:k"}
			b.claimed(c)
		}
	}
	b.same("queued as: the two before it have a slot each", b.submit(inQueue("pool:k"), inRoom(r)).QueuedAs, 1)
}

func roomOverfull(b *fixture) {
	b.submits(3)
	for range 3 {
		b.claimed(b.offerSlots("b", 3)) // it has one slot from now on
	}
	r := store.Room{Queues: []string{"pool:k"}, Agents: []store.RoomAgent{{Name: "b", Slots: 1}, {Name: "a", Slots: 1}}}
	b.same("queued as", b.submit(inQueue("pool:k"), inRoom(r)).QueuedAs, 0)
}

func roomWithheld(b *fixture) {
	lost := b.withheld()
	b.turnedAway(roomAt("a", 1))
	b.freeSlot("a", 0, lost.Fence)
	b.call(must(roomAt("a", 1)))
}

func roomIsolated(b *fixture) {
	b.submit(inQueue("agent:a"))
	b.claim("a")
	apart := store.Room{Queues: []string{"bypass:a"}, Agents: []store.RoomAgent{{Name: "a", Slots: 1}}, Isolated: true, Must: true}
	b.submit(inQueue("bypass:a"), inRoom(apart))
	b.claimed(b.apart("a", 1))
	_, err := b.Submit(b.ctx, b.submission(inQueue("bypass:a"), inRoom(apart)))
	b.refused(err, signalbox.CodeAgentBusy)
	b.finish(id(1))
	b.call(must(roomAt("a", 1)))
}

func roomFleet(b *fixture) {
	b.submits(2)
	b.claim("b")
	b.claim("c")
	r := roomAt("a", 5)
	r.Fleet = 3
	b.call(must(r)) // the third one: it waits, and counts like those that run
	said := b.turnedAway(r)
	if !strings.Contains(said, "3 executions") {
		b.Fatalf("%q does not name the ceiling", said)
	}
	r.Fleet = 4
	b.call(must(r))
	r.Isolated = true
	r.Fleet = 1
	r.Queues = []string{"bypass:a"}
	b.submit(inQueue("bypass:a"), inRoom(must(r))) // no isolated slot is in use
}

func roomPaused(b *fixture) {
	for _, queue := range []string{"agent:a", ""} {
		b.pause(signalbox.Pause{Queue: queue, UntilMS: b.now.Add(time.Second).UnixMilli()})
		b.turnedAway(roomAt("a", 1))
		b.pass(time.Second) // the pause is over
		b.happen(b.call(must(roomAt("a", 1))).ID, signalbox.Event{Kind: signalbox.EventCancel})
	}
}

func roomTurn(b *fixture) {
	first := b.call(must(roomAt("a", 2)), inSession("s"))
	b.turnedAway(roomAt("a", 2), inSession("s")) // it is ready
	b.claimID("a", first.ID)
	b.same("queued as", b.call(roomAt("a", 2), inSession("s")).QueuedAs, 1) // it runs
	b.call(must(roomAt("a", 2)), inSession("r"))
}

func roomLater(b *fixture) {
	b.turnedAway(roomAt("a", 1), notBefore(b.now.Add(time.Millisecond)))
	b.call(must(roomAt("a", 1)), notBefore(b.now))
}

func roomMust(b *fixture) {
	b.call(roomAt("a", 1))
	b.claim("a")
	b.call(roomAt("a", 1))
	said := b.turnedAway(roomAt("a", 1))
	for _, part := range []string{"agent a is busy", "1 of 1 slots in use", "1 waiting"} {
		if !strings.Contains(said, part) {
			b.Errorf("%q does not say %q", said, part)
		}
	}
}

func roomMustNoEffect(b *fixture) {
	b.call(roomAt("a", 1))
	b.claim("a")
	before := everything(b)
	b.turnedAway(roomAt("a", 1), keyed("k", "h"), talking(store.ChatSession{Agent: "a", New: "s"}))
	b.same("what is stored", everything(b), before)
	_, err := b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
	t := b.submit(keyed("k", "other"))
	b.same("seq", t.Seq, int64(2))
}

func roomOrder(b *fixture) {
	first := b.call(roomAt("a", 1), keyed("k", "h"), capped("chat:a", 1))
	b.claim("a")
	b.call(roomAt("a", 1), capped("chat:a", 1))
	full := func(options ...option) store.Submission {
		return b.submission(append([]option{inQueue("agent:a"), inRoom(must(roomAt("a", 1))), capped("chat:a", 1)}, options...)...)
	}
	got, err := b.Submit(b.ctx, full(keyed("k", "h")))
	b.must(err)
	b.same("replay", [2]any{got.Replayed, got.Task.ID}, [2]any{true, first.ID})
	again := full()
	again.Task.ID = first.ID
	_, err = b.Submit(b.ctx, again)
	b.refused(err, signalbox.CodeConflict)
	_, err = b.Submit(b.ctx, full())
	b.refused(err, signalbox.CodeAgentBusy)
	_, err = b.Submit(b.ctx, b.submission(inQueue("agent:a"), inRoom(roomAt("a", 1)), capped("chat:a", 1)))
	b.refused(err, signalbox.CodeQueueFull)
}

// roomBurst is the seed's step 4: five chats for a free agent with room for three that wait, all submitted
// before the first is claimed.
func roomBurst(b *fixture) {
	r := roomAt("a", 1)
	for n := range 4 {
		b.same("queued as", b.call(r, capped("chat:a", 3)).QueuedAs, n)
	}
	_, err := b.Submit(b.ctx, b.submission(inQueue("agent:a"), inRoom(r), capped("chat:a", 3)))
	b.refused(err, signalbox.CodeQueueFull)
}

func roomRace(b *fixture) {
	const n, slots = 64, 10
	var subs []store.Submission
	for range n {
		subs = append(subs, b.submission(inQueue("agent:a"), inRoom(must(roomAt("a", slots)))))
	}
	stored := 0
	for _, err := range together(n, func(i int) error { _, err := b.Submit(b.ctx, subs[i]); return err }) {
		if err == nil {
			stored++
			continue
		}
		b.refused(err, signalbox.CodeAgentBusy)
	}
	b.same("stored and noted", [2]int{stored, len(b.journal())}, [2]int{slots, slots})
	for range slots {
		b.claimed(b.offerSlots("a", slots))
	}
}

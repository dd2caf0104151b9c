package storetest

import (
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func parkingRules() []rule {
	return []rule{
		{"a park is one commit: row, slot, result, usage, session, account and journal", parkWhole},
		{"a park of an older revision has no effect, not even on the account", parkStale},
		{"a parked task is not claimed, and is the first when its gate opens", parkClaimed},
		{"of several whose gates open, the one whose gate opened last is first", parkOrder},
		{"a park that ends the task leaves it parked nowhere", parkEnds},
		{"parked tasks are listed by gate, the longest parked ones first", parkListed},
		{"a task that leaves its gate is removed from the list", parkForgotten},
		{"a parked turn holds up its session", parkTurn},
		{"a turn that is moved ahead of a parked one is not held up", parkTurnOvertaken},
		{"a session with a parked turn is not archived", parkSession},
		{"a parked turn leaves no room for its session", parkRoom},
		{"parked tasks are counted and listed as waiting", parkCounts},
		{"a parked task counts towards a limit", parkLimit},
		{"a parked task keeps its request and its environment", parkRequest},
		{"a parked task waits for no time", parkTimes},
		{"a parked task can move to another queue, and stays parked", parkMove},
		{"an unpark or a cancel of one revision wins", parkRace},
		{"a hostile parking comes back byte for byte", parkHostile},
		{"a park frees the slot of its own fence only", parkFence},
	}
}

var closedMax = signalbox.Gate{Kind: signalbox.GateAccount, Name: "max", Text: "account max is closed until 14:00", Until: start.Add(2 * time.Hour)}

// parkAt parks a task that is in flight.
func (b *fixture) parkAt(id string, gate signalbox.Gate) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventPark, Parking: &signalbox.Parking{Gate: gate}})
}

// parks submits a task and parks it at an agent.
func (b *fixture) parks(agent string, gate signalbox.Gate, options ...option) signalbox.Task {
	b.Helper()
	t := b.submit(append([]option{inQueue(signalbox.AgentQueue(agent))}, options...)...)
	c := b.offer(agent)
	c.Queues = c.Queues[:1]
	b.same("claimed", b.claimed(c).ID, t.ID)
	return b.parkAt(t.ID, gate)
}

func (b *fixture) unpark(id string) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventUnpark})
}

func (b *fixture) parked(kind signalbox.GateKind, name string) []string {
	b.Helper()
	list, err := b.Parked(b.ctx, kind, name)
	b.must(err)
	for _, t := range list {
		b.same("listed as parked", t, b.task(t.ID))
	}
	return ids(list)
}

func parkWhole(b *fixture) {
	b.submit(ofOwner("ann"), waitUntil(b.now.Add(time.Hour)))
	t := b.claim("a")
	b.accept(t.ID)
	b.pass(time.Minute)
	c := b.change(b.task(t.ID), signalbox.Event{
		Kind: signalbox.EventPark, SessionID: "s", Result: spends(0.5),
		Parking: &signalbox.Parking{Gate: closedMax, Next: "go on", Began: true},
		Account: &signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max", Now: b.now, Until: b.now.Add(time.Hour), Source: "event"},
	})
	got, err := b.Apply(b.ctx, c, b.now)
	b.must(err)
	want := c.Task
	want.Rev, want.Ready, want.Bias = 4, false, got.Bias
	b.same("answer", got, want)
	b.same("stored", b.task(t.ID), want)
	b.same("state", [4]any{got.State, got.Queue, got.SessionID, got.Attempts}, [4]any{signalbox.Parked, "agent:a", "s", 0})
	b.same("parked", *got.Parking, signalbox.Parking{Gate: closedMax, Next: "go on", Began: true, At: b.now, Count: 1})
	b.same("slots", b.slots(), []signalbox.Slot(nil))
	result, err := b.Result(b.ctx, t.ID)
	b.must(err)
	b.same("result", result, *spends(0.5))
	used := b.usage(everyUsage)
	b.same("usage", [3]int64{used[0].Runs, used[0].Failed, used[0].NanoUSD}, [3]int64{1, 0, 500_000_000})
	held, err := b.Session(b.ctx, "s")
	b.must(err)
	b.same("session", [2]any{held.Agent, held.LastUsed}, [2]any{"a", b.now})
	b.same("account", b.account("max").State, signalbox.AccountClosed)
	log := b.journal()
	b.same("journal", kinds(log), []signalbox.EventKind{"submit", "claim", "accept", "park", "account"})
	b.same("entry of the park", log[3].Message, closedMax.Text)
	b.same("entry of the account", [4]any{log[4].Account, log[4].Message, log[4].At, log[4].QueueID},
		[4]any{"max", "account max is closed until 2026-03-01T13:01:00Z", b.now, ""})
}

func parkStale(b *fixture) {
	b.submit()
	t := b.claim("a")
	c := b.change(t, signalbox.Event{
		Kind: signalbox.EventPark, Parking: &signalbox.Parking{Gate: closedMax},
		Account: &signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max", Now: b.now},
	})
	b.accept(t.ID)
	before := everything(b)
	if _, err := b.Apply(b.ctx, c, b.now); err != store.ErrStale {
		b.Fatalf("got %v, want ErrStale", err)
	}
	b.same("what is stored", everything(b), before)
	b.same("parked", b.parked("", ""), []string(nil))
}

func parkClaimed(b *fixture) {
	t := b.parks("a", closedMax)
	urgent := b.submit(inQueue("agent:a"), prioritised(5))
	b.claimID("a", urgent.ID)
	b.finish(urgent.ID)
	b.noClaim(b.offer("a"))
	urgent = b.submit(inQueue("agent:a"), prioritised(5))
	open := b.unpark(t.ID)
	b.same("opened", [4]any{open.State, open.Ready, open.Rev, open.Parking.Count}, [4]any{signalbox.Pending, true, int64(4), 1})
	b.same("stored", b.task(t.ID), open)
	b.ready(t.ID, urgent.ID)
	log := b.journal()
	b.same("entry", [2]any{log[len(log)-1].Kind, log[len(log)-1].Message}, [2]any{signalbox.EventUnpark, "its gate has opened"})
	again := b.claimID("a", t.ID)
	b.same("claims and attempts", [2]int{again.Claims, again.Attempts}, [2]int{2, 0})
	b.same("parked for the second time", b.parkAt(t.ID, closedMax).Parking.Count, 2)
}

func parkOrder(b *fixture) {
	first, second := b.parks("a", closedMax), b.parks("a", closedMax)
	b.unpark(second.ID)
	b.unpark(first.ID)
	b.ready(first.ID, second.ID)
}

func parkEnds(b *fixture) {
	b.submit()
	t := b.claim("a")
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel, By: "ann"})
	t = b.parkAt(t.ID, closedMax)
	b.same("end", [2]any{t.State, t.CancelledBy}, [2]any{signalbox.Cancelled, "ann"})
	b.same("parked", b.parked("", ""), []string(nil))
	b.same("slots", b.slots(), []signalbox.Slot(nil))
}

func parkListed(b *fixture) {
	pro := signalbox.Gate{Kind: signalbox.GateAccount, Name: "pro"}
	slashed := signalbox.Gate{Kind: signalbox.GateAccount, Name: "max/"}
	noon := signalbox.Gate{Kind: signalbox.GateTime, Until: b.now.Add(time.Hour)}
	for _, gate := range []signalbox.Gate{noon, closedMax, pro, slashed, closedMax} {
		b.parks("a", gate)
		b.pass(time.Second)
	}
	b.pass(-time.Hour) // sorted by the times of the clock
	b.parks("a", closedMax)
	b.same("all", b.parked("", ""), []string{id(6), id(1), id(2), id(3), id(4), id(5)})
	b.same("at max", b.parked(signalbox.GateAccount, "max"), []string{id(6), id(2), id(5)})
	b.same("at max/", b.parked(signalbox.GateAccount, "max/"), []string{id(4)})
	b.same("at pro", b.parked(signalbox.GateAccount, "pro"), []string{id(3)})
	b.same("at a time", b.parked(signalbox.GateTime, ""), []string{id(1)})
	b.same("at none", b.parked(signalbox.GateAccount, ""), []string(nil))
}

func parkForgotten(b *fixture) {
	for range 4 {
		b.parks("a", closedMax)
	}
	b.unpark(id(1))
	b.happen(id(2), signalbox.Event{Kind: signalbox.EventCancel})
	b.happen(id(3), signalbox.Event{Kind: signalbox.EventUndeliverable, Message: "gone"})
	b.same("parked", b.parked("", ""), []string{id(4)})
	b.claimID("a", id(1))
	b.pass(time.Second)
	b.parkAt(id(1), signalbox.Gate{Kind: signalbox.GateTime})
	b.same("at the account", b.parked(signalbox.GateAccount, "max"), []string{id(4)})
	b.same("at the time", b.parked(signalbox.GateTime, ""), []string{id(1)})
	b.pass(time.Hour)
	b.prune(b.now, 100)
	b.same("parked", b.parked("", ""), []string{id(4), id(1)})
}

func parkTurn(b *fixture) {
	first := b.parks("a", closedMax, inSession("s"))
	next := b.submit(inQueue("agent:a"), inSession("s"), prioritised(5))
	b.submit(inSession("s"), notBefore(b.now.Add(time.Second)))
	b.submit(inQueue("agent:a"), inSession("r"))
	b.ready(id(4))
	b.pass(time.Second)
	b.wake(10)
	b.ready(id(4))
	b.unpark(first.ID)
	b.ready(first.ID, id(4))
	b.claimID("a", first.ID)
	b.parkAt(first.ID, closedMax)
	b.ready(id(4))
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.ready(next.ID, id(4))
}

func parkTurnOvertaken(b *fixture) {
	b.parks("a", closedMax, inSession("s"))
	next := b.submit(inQueue("agent:a"), inSession("s"))
	b.happen(next.ID, signalbox.Event{Kind: signalbox.EventEdit, Edit: &signalbox.Edit{Rev: next.Rev, Order: signalbox.OrderTop}})
	b.ready(next.ID)
	b.claimID("a", next.ID)
	b.finish(next.ID)
	b.ready()
}

func parkSession(b *fixture) {
	b.put(anAgent("a"))
	t := b.bind("a", "s")
	b.parkAt(t.ID, closedMax)
	held, err := b.Session(b.ctx, "s")
	b.must(err)
	archived := held
	archived.State = signalbox.SessionArchived
	b.refused(b.PutSession(b.ctx, held, archived, signalbox.Entry{At: b.now}), signalbox.CodeConflict)
	b.pass(time.Hour)
	b.prune(b.now, 100)
	_, err = b.Session(b.ctx, "s") // the session that it continues in
	b.must(err)
}

func parkRoom(b *fixture) {
	b.parks("a", closedMax, inSession("s"))
	if said := b.turnedAway(must(roomAt("a", 1)), inSession("s")); !strings.Contains(said, "another turn of the session") {
		b.Errorf("it is turned away: %s", said)
	}
	b.same("queued as", b.call(roomAt("a", 1), inSession("s")).QueuedAs, 2)
	b.call(must(roomAt("a", 1)))
}

func parkCounts(b *fixture) {
	b.submit()
	b.pass(time.Second)
	parked := b.parks("a", closedMax)
	b.submit(inQueue("agent:a"), prioritised(5))
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("counts", counts, store.Counts{
		Queues: map[string]int{"work": 1, "agent:a": 2}, Limits: map[string]int{"work": 3}, Pending: 3,
		InFlight: map[signalbox.State]int{}, Oldest: start,
	})
	lengths, err := b.Lengths(b.ctx, "agent:a", "work")
	b.must(err)
	b.same("lengths", lengths, []int{2, 1})
	b.same("waiting", ids(b.waiting("agent:a", store.Cursor{}, 10)), []string{id(2), id(3)})
	b.same("all that waits", ids(b.waiting("", store.Cursor{}, 10)), []string{id(2), id(3), id(1)})
	b.same("position", b.position(parked.ID), store.Position{N: 1})
	b.same("position", b.position(id(3)), store.Position{N: 2})
	whole, err := b.Whole(b.ctx, parked.ID)
	b.must(err)
	b.same("whole", [2]any{whole.Task, whole.Position}, [2]any{parked, store.Position{N: 1}})
	shot := b.snapshot(1)
	b.same("heads", ids(shot.Heads["agent:a"]), []string{id(2)})
	b.same("snapshot", [2]any{shot.Counts, len(shot.InFlight)}, [2]any{counts, 0})
	b.same("history", len(b.history(store.HistoryQuery{Limit: 10})), 0)
	b.happen(id(1), signalbox.Event{Kind: signalbox.EventCancel})
	b.happen(parked.ID, signalbox.Event{Kind: signalbox.EventCancel})
	counts, err = b.Counts(b.ctx)
	b.must(err)
	b.same("counts", counts, store.Counts{
		Queues: map[string]int{"agent:a": 1}, Limits: map[string]int{"work": 1}, Pending: 1, InFlight: map[signalbox.State]int{}, Oldest: b.now,
	})
}

func parkLimit(b *fixture) {
	t := b.parks("a", closedMax, capped("work", 1))
	_, err := b.Submit(b.ctx, b.submission(capped("work", 1)))
	b.refused(err, signalbox.CodeQueueFull)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.submit(capped("work", 1))
}

func parkRequest(b *fixture) {
	t := b.parks("a", closedMax, withEnv("sealed"))
	b.unpark(t.ID)
	got, err := b.Claim(b.ctx, b.offer("a"))
	b.must(err)
	b.same("request", [2]string{got.Request.Prompt, string(got.Request.SealedEnv)}, [2]string{"do task 1", "sealed"})
	b.parkAt(t.ID, closedMax)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	r, err := b.Request(b.ctx, t.ID)
	b.must(err)
	b.same("environment after the end", string(r.SealedEnv), "")
}

func parkTimes(b *fixture) {
	b.parks("a", closedMax, notBefore(b.now.Add(-time.Second)), waitUntil(b.now.Add(time.Second)))
	b.pass(time.Hour)
	late, err := b.Overdue(b.ctx, b.now, 10)
	b.must(err)
	b.same("overdue", late, []signalbox.Task(nil))
	b.same("next", b.wake(10), time.Time{})
	b.ready()
}

func parkMove(b *fixture) {
	t := b.parks("a", closedMax)
	moved := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventMove, Queue: "pool:k"})
	b.same("moved", [2]any{moved.State, moved.Queue}, [2]any{signalbox.Parked, "pool:k"})
	b.same("waiting", ids(b.waiting("pool:k", store.Cursor{}, 10)), []string{t.ID})
	b.same("waiting", ids(b.waiting("agent:a", store.Cursor{}, 10)), []string(nil))
	b.same("parked", b.parked(signalbox.GateAccount, "max"), []string{t.ID})
	c := b.offer("a")
	c.Queues = []string{"pool:k"}
	b.noClaim(c)
	b.unpark(t.ID)
	b.same("claimed", b.claimed(c).ID, t.ID)
}

func parkRace(b *fixture) {
	t := b.parks("a", closedMax)
	changes := []signalbox.Change{
		b.change(t, signalbox.Event{Kind: signalbox.EventUnpark}), b.change(t, signalbox.Event{Kind: signalbox.EventCancel}),
	}
	won := 0
	for _, err := range together(16, func(n int) error { _, err := b.Apply(b.ctx, changes[n%2], b.now); return err }) {
		switch err {
		case nil:
			won++
		case store.ErrStale:
		default:
			b.Fatal(err)
		}
	}
	b.same("winners", won, 1)
	b.same("parked", b.parked("", ""), []string(nil))
}

func parkHostile(b *fixture) {
	var want []string
	for _, h := range hostile() {
		p := signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateKind("k" + h), Name: h, Text: "t", Until: b.now.Add(time.Hour)}, Next: h}
		t := b.submit()
		b.claimID("a", t.ID)
		got := *b.happen(t.ID, signalbox.Event{Kind: signalbox.EventPark, Parking: &p}).Parking
		p.At, p.Count = b.now, 1
		b.same("parking", got, p)
		b.same("stored", *b.task(t.ID).Parking, p)
		b.same("listed", b.parked(p.Kind, h), []string{t.ID})
		want = append(want, t.ID)
		b.pass(time.Second)
	}
	b.same("all", b.parked("", ""), want)
}

func parkFence(b *fixture) {
	b.submits(2)
	first := b.claim("a")
	b.accept(first.ID)
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	other := b.claimed(b.offerSlots("a", 2))
	b.parkAt(other.ID, closedMax)
	b.same("slots", b.slots(), []signalbox.Slot{{Agent: "a", TaskID: first.ID, Fence: first.Fence, Expires: b.now.Add(10 * time.Minute), Withheld: true}})
}

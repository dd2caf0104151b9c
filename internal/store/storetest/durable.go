package storetest

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// RunDurable checks that everything survives a Close and a reopen of the same folder.
func RunDurable(t *testing.T, open func(t *testing.T, dir string) store.Store) {
	t.Helper()
	var count tally
	t.Run("durable", func(t *testing.T) {
		for _, r := range durableRules() {
			count.add()
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				r.test(&reopened{fixture: newFixture(t, open(t, dir)), open: func() store.Store { return open(t, dir) }})
				count.done()
			})
		}
	})
	count.check(t)
}

// reopened is a fixture that can be closed and opened again.
type reopened struct {
	*fixture
	open func() store.Store
}

func (b *reopened) reopen() {
	b.Helper()
	b.must(b.Store.Close())
	b.Store = b.open()
}

type durableRule struct {
	name string
	test func(b *reopened)
}

func durableRules() []durableRule {
	return []durableRule{
		{"every row and list is unchanged", durableAll},
		{"the order is unchanged, also of requeued tasks", durableOrder},
		{"fences are above the old ones", durableFences},
		{"EnqueuedAt does not go back", durableEnqueued},
		{"numbers continue, even after a prune", durableNumbers},
		{"readiness is unchanged, and later tasks become ready", durableReady},
		{"idempotency keys are known", durableKeys},
		{"slots, leases and withheld slots are as they were", durableSlots},
		{"parked tasks and accounts are unchanged", durableParked},
		{"holds are unchanged", durableHolds},
		{"landings continue", durableLandings},
		{"an erased environment stays erased", durableEnv},
		{"limits count waiting tasks", durableLimits},
		{"rooms count running and waiting tasks", durableRoom},
		{"the audit log continues", durableAudit},
		{"a decided instant stays decided, and an open one is found", durableSchedules},
		{"directors and their holdings are unchanged", durablePeers},
		{"tickets are unchanged, and their numbers continue", durableTickets},
		{"the identity of the data stays", durableID},
	}
}

func durableAll(b *reopened) {
	b.put(anAgent("a"))
	b.pause(signalbox.Pause{Queue: "pool:k", Reason: "r", By: "me", AtMS: 1, UntilMS: 2})
	b.bind("a", "s")
	b.submit(inSession("s"), withEnv("sealed"), prioritised(2), notBefore(b.now.Add(time.Hour)), waitUntil(b.now.Add(2*time.Hour)))
	b.submits(2)
	b.run("b")
	b.submit(inQueue("bypass:a"), calledBy(id(1)), func(s *store.Submission) {
		s.Task.Mode, s.Task.Owner, s.Task.OwnerEmail, s.Task.Depth, s.Task.Waits = signalbox.ModeBypass, "user:ann", "ann@example.com", 1, true
		s.Request.AllowedTools, s.Request.SystemPrompt = []string{"Read"}, "be brief"
	})
	isolated := b.claimed(b.apart("a", 2))
	b.accept(isolated.ID)
	b.happen(isolated.ID, signalbox.Event{Kind: signalbox.EventStop, Reason: signalbox.ReasonStalled, Message: "quiet"})
	b.chat("r")
	b.must(b.KeepStale(b.ctx, id(1), aStale(1)))
	b.must(b.RestoreUsage(b.ctx, aUsage("a")))
	b.must(b.PutToken(b.ctx, aToken("t")))
	b.must(b.PutUser(b.ctx, aUser("u")))
	b.audit(anAudit(1))
	b.plan(aSchedule("a"), aRun("r", start), opened("o", start))
	b.plan(signalbox.Schedule{ID: "plain", Name: "plain"})
	b.beats(b.director("x"), "a")
	b.enter("q", "c1", "c2", "c3")
	b.parks("b", closedMax)
	b.told("max", signalbox.AccountRefused)
	before := surveyOf(b.ctx, b.Store, b.now, 10)
	b.reopen()
	b.same("everything", surveyOf(b.ctx, b.Store, b.now, 10), before)
}

func durableOrder(b *reopened) {
	b.submits(3)
	b.submit(prioritised(1))
	b.claimID("a", id(4))
	b.claimID("b", id(1))
	b.pass(time.Second)
	b.happen(id(4), signalbox.Event{Kind: signalbox.EventRefuse})
	b.happen(id(1), signalbox.Event{Kind: signalbox.EventBusy}) // to the back of its queue
	b.submit()
	b.reopen()
	for _, n := range []int{4, 2, 3, 1, 5} {
		b.claimID("a", id(n))
		b.finish(id(n))
	}
}

func durableFences(b *reopened) {
	b.submits(3)
	c := b.offer("a")
	c.FenceAbove = 500
	last := b.claimed(c).Fence
	b.finish(id(1))
	b.pass(time.Hour)
	b.prune(b.now, 10) // now no row has the fence
	b.reopen()
	if next := b.claim("b").Fence; next <= last {
		b.Fatalf("fence %d after %d", next, last)
	}
}

func durableEnqueued(b *reopened) {
	b.submits(2)
	b.run("a")
	b.run("a")
	b.prune(b.now.Add(time.Second), 10)
	b.reopen()
	b.pass(-time.Hour)
	b.same("enqueued", b.submit().EnqueuedAt, start)
}

func durableNumbers(b *reopened) {
	b.submits(2)
	b.run("a")
	b.run("a")
	b.prune(b.now.Add(time.Second), 10)
	b.reopen()
	t := b.submit()
	b.same("seq, place and entry", [3]int64{t.Seq, t.Place, b.journal()[0].Seq}, [3]int64{3, 3, 9})
}

func durableReady(b *reopened) {
	b.submits(2, inSession("s"))
	b.submit(notBefore(start.Add(time.Second)))
	b.claimID("a", id(1))
	b.reopen()
	b.ready()
	b.same("next", b.wake(10), start.Add(time.Second))
	b.finish(id(1))
	b.ready(id(2))
	b.reopen()
	b.pass(time.Second)
	b.wake(10, id(3))
	b.reopen()
	b.ready(id(2), id(3))
}

func durableKeys(b *reopened) {
	first := b.submit(keyed("k", "h"))
	b.reopen()
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "h")))
	b.must(err)
	b.same("replay", got, store.Submitted{Task: first, Replayed: true})
	_, err = b.Submit(b.ctx, b.submission(keyed("k", "H")))
	b.refused(err, signalbox.CodeIdempotency)
}

func durableSlots(b *reopened) {
	lost := b.withheld()
	b.submits(2)
	held := b.claimed(b.offerSlots("a", 2))
	until := b.now.Add(time.Hour)
	n, err := b.Renew(b.ctx, []store.Lease{{Agent: "a", Slot: 1, Fence: held.Fence, Expires: until}})
	b.must(err)
	b.same("renewed", n, 1)
	before := b.slots()
	b.reopen()
	b.same("slots", b.slots(), before)
	b.same("end of the lease", b.slots()[1].Expires, until)
	b.noClaim(b.offerSlots("a", 2))
	b.same("freed", b.freeSlot("a", 0, lost.Fence), true)
	b.finish(held.ID)
	b.claim("a")
}

func durableParked(b *reopened) {
	parked := b.parks("a", closedMax)
	b.submits(3)
	b.limit("max", time.Hour)
	b.reopen()
	b.held(b.spends("a", "max"))
	b.same("parked", b.parked(signalbox.GateAccount, "max"), []string{parked.ID})
	b.same("row", b.task(parked.ID), parked)
	b.pass(time.Hour)
	b.told("max", signalbox.AccountDue)
	b.reopen()
	b.same("the first is", b.claimed(b.spends("a", "max")).ID, parked.ID)
	before := b.accounts()
	b.reopen()
	b.same("accounts", b.accounts(), before)
	b.held(b.spends("b", "max"))
	b.finish(parked.ID)
	b.reopen()
	b.same("the next is", b.claimed(b.spends("b", "max")).ID, id(2))
	b.held(b.spends("a", "max"))
	b.told("max", signalbox.AccountAnswered)
	b.reopen()
	b.claimed(b.spends("a", "max"))
}

func durableHolds(b *reopened) {
	b.submits(2, needing(signalbox.Need{Resource: "port", N: 1}))
	held := b.gets(b.having("a"), id(1)).Holds
	b.gets(b.having("b"), id(2))
	b.finish(id(2))
	b.reopen()
	b.same("holds", b.holds(), held)
	b.submit(needing(signalbox.Need{Resource: "port", N: 3}))
	b.short(b.having("b"))
}

func durableLandings(b *reopened) {
	b.submits(2, wishing("main"))
	b.run("a")
	b.reopen()
	b.same("open", b.landings(), []string{id(1)})
	b.run("a")
	before := b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingSubmitted, Task: id(7)})
	b.reopen()
	b.same("row", b.task(id(1)), before)
	b.same("open", b.landings(), []string{id(1), id(2)})
	b.land(id(1), signalbox.LandingEvent{Kind: signalbox.LandingDone, Task: id(7)})
	b.reopen()
	b.same("open", b.landings(), []string{id(2)})
}

func durableEnv(b *reopened) {
	b.submits(2, withEnv("sealed"))
	b.run("a")
	b.reopen()
	ended, err := b.Request(b.ctx, id(1))
	b.must(err)
	waits, err := b.Request(b.ctx, id(2))
	b.must(err)
	b.same("environments", [2]string{string(ended.SealedEnv), string(waits.SealedEnv)}, [2]string{"", "sealed"})
}

func durableLimits(b *reopened) {
	b.submits(2, capped("work", 2))
	b.reopen()
	_, err := b.Submit(b.ctx, b.submission(capped("work", 2)))
	b.refused(err, signalbox.CodeQueueFull)
	b.claim("a")
	b.submit(capped("work", 2))
}

func durableRoom(b *reopened) {
	b.submits(2, inQueue("agent:a"))
	b.submit(inQueue("bypass:a"))
	b.claim("a")
	b.claimed(b.apart("a", 1))
	b.reopen()
	b.same("queued as", b.call(roomAt("a", 1)).QueuedAs, 2)
	b.noClaim(b.offer("a"))
	b.noClaim(b.apart("a", 1))
	c := b.offer("b")
	c.Fleet = 1
	b.submit()
	b.noClaim(c)
}

func durableAudit(b *reopened) {
	first := b.audit(anAudit(1))
	b.reopen()
	second := b.audit(anAudit(2))
	b.same("chain", [2]any{second.Seq, second.Prev}, [2]any{int64(2), first.Hash})
}

func durablePeers(b *reopened) {
	heard := []store.Heard{{Agent: "p", At: b.now, Status: []byte("{}")}}
	b.beat(store.Beat{Director: b.director("x"), Take: []string{"a", "b"}, Drop: []string{"b"}, Heard: heard})
	b.pass(time.Second)
	b.reopen()
	b.holders(map[string]string{"a": "x", "b": "x"})
	answer := b.beats(b.director("x"))
	b.same("answer", answer, store.Peers{Directors: []store.Director{b.director("x")}, Heard: heard})
	b.same("taken by another", b.beats(b.director("y"), "a", "c").Taken, []string{"c"})
}

func durableTickets(b *reopened) {
	b.enter("q", "c1", "c2", "c3")
	b.give("q", "c1", "c2")
	before := b.tickets("q")
	b.reopen()
	b.same("tickets", b.tickets("q"), before)
	b.give("q", "c3")
	b.reopen()
	b.same("numbers", brief(b.enter("q", "c4", "c5", "c6")), []string{"c4 holds 4", "c5 holds 5", "c6 waits 6"})
}

func durableSchedules(b *reopened) {
	s := b.plan(aSchedule("a"), aRun("r", start), opened("o", start))
	b.reopen()
	b.unplanned(signalbox.CodeConflict, s, aRun("r", start))
	b.stalePlan(aSchedule("a"))
	b.unplanned(signalbox.CodeConflict, signalbox.Schedule{ID: "new", Name: "a"})
	b.same("open", runIDs(b.openRuns()), []string{"o"})
	b.plan(s, aRun("o", start))
	b.reopen()
	b.same("open", len(b.openRuns()), 0)
	b.same("revision", b.schedule(s.ID).Rev, int64(2))
	b.unplan(s.ID)
	b.reopen()
	b.same("schedules and runs", [2]int{len(b.schedules()), len(b.runs(s.ID))}, [2]int{0, 0})
}

func durableID(b *reopened) {
	before := b.Info()
	b.reopen()
	b.same("info", b.Info(), before)
}

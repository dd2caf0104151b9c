package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// wake wants these tasks to be woken, and returns when to call again.
func (b *fixture) wake(limit int, want ...string) time.Time {
	b.Helper()
	woken, next, err := b.Wake(b.ctx, b.now, limit)
	b.must(err)
	b.same("woken", woken, want)
	return next
}

func wakeRules() []rule {
	return []rule{
		{"due tasks become ready, the first due first", wakeDue},
		{"the next time is that of the first to wait for one", wakeNext},
		{"where the limit cuts, the next time has passed", wakeLimit},
		{"a task is woken once", wakeOnce},
		{"a task that has ended or was cancelled is not woken", wakeEnded},
		{"a task whose session is busy is not woken", wakeSession},
		{"of several due tasks of a session one is woken", wakeSessionOne},
		{"a clock that goes back wakes no task and blocks none", wakeClockBack},
		{"without waiting due tasks there is no next time", wakeNothing},
		{"waking writes no entry and no revision", wakeQuiet},
		{"a clock that goes back later does not unready a woken task", wakeStays},
		{"a turn that gives way to an earlier one after the clock went back is due again", wakeAgain},
	}
}

func wakeDue(b *fixture) {
	third := b.submit(notBefore(start.Add(3 * time.Second)))
	first := b.submit(notBefore(start.Add(time.Second)))
	second := b.submit(notBefore(start.Add(2 * time.Second)))
	b.pass(2 * time.Second)
	b.wake(10, first.ID, second.ID)
	b.ready(first.ID, second.ID)
	b.pass(time.Second)
	b.wake(10, third.ID)
	b.claimID("a", third.ID) // its place is that of its submission
}

func wakeNext(b *fixture) {
	b.submit(notBefore(start.Add(time.Hour)))
	b.submit(notBefore(start.Add(time.Minute)))
	b.same("next", b.wake(10), start.Add(time.Minute))
	b.pass(time.Minute)
	b.same("next", b.wake(10, id(2)), start.Add(time.Hour))
}

func wakeLimit(b *fixture) {
	for n := range 3 {
		b.submit(notBefore(start.Add(time.Duration(n+1) * time.Second)))
	}
	b.pass(time.Minute)
	b.same("next", b.wake(0), start.Add(time.Second))
	b.same("next", b.wake(2, id(1), id(2)), start.Add(3*time.Second))
	b.same("next", b.wake(2, id(3)), time.Time{})
}

func wakeOnce(b *fixture) {
	b.submit(notBefore(start.Add(time.Second)))
	b.pass(time.Second)
	b.wake(10, id(1))
	b.wake(10)
}

func wakeEnded(b *fixture) {
	t := b.submit(notBefore(start.Add(time.Second)))
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.pass(time.Second)
	b.same("next", b.wake(10), time.Time{})
}

func wakeSession(b *fixture) {
	running := b.submit(inSession("s"))
	b.claimID("a", running.ID)
	b.submit(inSession("s"), notBefore(start.Add(time.Second)))
	b.same("next", b.wake(10), start.Add(time.Second))
	b.pass(time.Minute)
	b.same("next while the turn before it runs", b.wake(10), time.Time{})
	b.finish(running.ID)
	b.ready(id(2)) // the end makes it ready without Wake
	b.wake(10)
}

func wakeSessionOne(b *fixture) {
	b.submit(inSession("s"), notBefore(start.Add(2*time.Second)))
	b.submit(inSession("s"), notBefore(start.Add(time.Second)))
	b.pass(time.Minute)
	b.same("next", b.wake(10, id(1)), time.Time{})
	b.ready(id(1))
}

func wakeClockBack(b *fixture) {
	awake := b.submit()
	b.submit(notBefore(start.Add(time.Second)))
	b.pass(-time.Hour)
	b.same("next", b.wake(10), start.Add(time.Second))
	b.ready(awake.ID)
}

func wakeNothing(b *fixture) {
	b.same("next", b.wake(10), time.Time{})
	b.submits(2)
	b.same("next", b.wake(10), time.Time{})
}

func wakeQuiet(b *fixture) {
	t := b.submit(notBefore(start.Add(time.Second)))
	b.pass(time.Second)
	b.wake(10, t.ID)
	want := t
	want.Ready = true
	b.same("task", b.task(t.ID), want)
	b.same("entries", len(b.journal()), 1)
}

func wakeStays(b *fixture) {
	t := b.submit(notBefore(start.Add(time.Second)), inSession("s"))
	b.pass(time.Second)
	b.wake(10, t.ID)
	b.pass(-time.Hour)
	b.submit(inSession("s"))
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventMove, Queue: "pool:k"})
	b.ready(t.ID)
}

func wakeAgain(b *fixture) {
	later := start.Add(-time.Minute)
	b.submit(inSession("s"), notBefore(later))
	b.pass(-time.Hour)
	b.submit(inSession("s"), prioritised(1), notBefore(b.now.Add(time.Second)))
	b.pass(time.Minute)
	b.same("next", b.wake(10, id(2)), later)
}

func leaseRules() []rule {
	return []rule{
		{"a lease with its fence is renewed", leaseRenews},
		{"a lease with another fence, slot or agent is left out", leaseWrong},
		{"a withheld slot's row is still there to renew", leaseWithheld},
		{"renewing nothing is no error", leaseNothing},
		{"FreeSlot removes a withheld slot", freeWithheld},
		{"FreeSlot leaves a slot whose task is in flight", freeInFlight},
		{"FreeSlot wants the right fence", freeWrongFence},
	}
}

func leaseRenews(b *fixture) {
	b.submits(2)
	first, second := b.claimed(b.offerSlots("a", 2)), b.claimed(b.offerSlots("a", 2))
	until := b.now.Add(time.Hour)
	n, err := b.Renew(b.ctx, []store.Lease{
		{Agent: "a", Slot: 0, Fence: first.Fence, Expires: until}, {Agent: "a", Slot: 1, Fence: second.Fence, Expires: until},
	})
	b.must(err)
	b.same("renewed", n, 2)
	for _, s := range b.slots() {
		b.same("end of the lease", s.Expires, until)
	}
	b.same("entries", len(b.journal()), 4)
	b.same("revision", b.task(first.ID).Rev, int64(2))
}

func leaseWrong(b *fixture) {
	b.submit()
	t := b.claim("a")
	before := b.slots()
	until := b.now.Add(time.Hour)
	n, err := b.Renew(b.ctx, []store.Lease{
		{Agent: "a", Slot: 0, Fence: t.Fence + 1, Expires: until}, {Agent: "a", Slot: 1, Fence: t.Fence, Expires: until},
		{Agent: "b", Slot: 0, Fence: t.Fence, Expires: until},
	})
	b.must(err)
	b.same("renewed", n, 0)
	b.same("slots", b.slots(), before)
}

func leaseWithheld(b *fixture) {
	t := b.withheld()
	n, err := b.Renew(b.ctx, []store.Lease{{Agent: "a", Fence: t.Fence, Expires: b.now.Add(time.Hour)}})
	b.must(err)
	b.same("renewed", n, 1)
	b.same("withheld", b.slots()[0].Withheld, true)
}

func leaseNothing(b *fixture) {
	n, err := b.Renew(b.ctx, nil)
	b.must(err)
	b.same("renewed", n, 0)
}

// withheld returns a task that was lost on agent a, which may still run it.
func (b *fixture) withheld() signalbox.Task {
	b.Helper()
	t := b.submit()
	b.claimID("a", t.ID)
	b.accept(t.ID)
	return b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
}

func (b *fixture) freeSlot(agent string, slot int, fence int64) bool {
	b.Helper()
	freed, err := b.FreeSlot(b.ctx, agent, slot, fence)
	b.must(err)
	return freed
}

func freeWithheld(b *fixture) {
	t := b.withheld()
	b.submit()
	b.noClaim(b.offer("a"))
	b.same("freed", b.freeSlot("a", 0, t.Fence), true)
	b.same("freed again", b.freeSlot("a", 0, t.Fence), false)
	b.claim("a")
}

func freeInFlight(b *fixture) {
	b.submit()
	t := b.claim("a")
	b.same("freed", b.freeSlot("a", 0, t.Fence), false)
	b.same("slots", len(b.slots()), 1)
}

func freeWrongFence(b *fixture) {
	t := b.withheld()
	b.same("freed", b.freeSlot("a", 0, t.Fence+1), false)
	b.same("freed", b.freeSlot("a", 1, t.Fence), false)
	b.same("freed", b.freeSlot("b", 0, t.Fence), false)
	b.same("slots", len(b.slots()), 1)
}

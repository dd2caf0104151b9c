package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

func orderRules() []rule {
	return []rule{
		{"first in, first out within a priority", orderFIFO},
		{"a higher priority overtakes", orderPriority},
		{"a priority is worth its bias and no more", orderAgeing},
		{"equal keys are taken by place", orderTies},
		{"a clock that goes back does not change the order", orderClockBack},
		{"a clock that goes back does not move EnqueuedAt back", orderClamp},
		{"a busy agent's task goes to the back", orderBusyBack},
		{"a task that waits can go to the back", orderToBack},
		{"a task moved to the top is first, ahead of those moved before", orderTop},
		{"a turn moved to the top is the next of its session", orderTopOfSession},
		{"a refused task keeps its place", orderRefusedStays},
		{"the best head of three queues wins", orderBestHead},
		{"a blocked task does not block others", orderBlockedHead},
	}
}

func orderFIFO(b *fixture) {
	for _, t := range b.submits(5) {
		b.claimID("a", t.ID)
		b.finish(t.ID)
	}
}

func orderPriority(b *fixture) {
	low, normal, high := b.submit(prioritised(-1)), b.submit(), b.submit(prioritised(1))
	for _, want := range []string{high.ID, normal.ID, low.ID} {
		b.claimID("a", want)
		b.finish(want)
	}
}

func orderAgeing(b *fixture) {
	old := b.submit()
	b.pass(time.Minute - time.Millisecond)
	soon := b.submit(prioritised(1)) // within its minute, so it overtakes
	b.pass(2 * time.Millisecond)
	late := b.submit(prioritised(1)) // after it, so it does not
	for _, want := range []string{soon.ID, old.ID, late.ID} {
		b.claimID("a", want)
		b.finish(want)
	}
}

func orderTies(b *fixture) {
	first := b.submit()
	b.pass(time.Minute)
	second := b.submit(prioritised(1))
	b.same("keys", first.OrderKey(), second.OrderKey())
	b.claimID("a", first.ID)
}

func orderClockBack(b *fixture) {
	first := b.submit()
	b.pass(-time.Hour)
	second := b.submit()
	b.claimID("a", first.ID)
	b.finish(first.ID)
	b.claimID("a", second.ID)
}

func orderClamp(b *fixture) {
	b.submit()
	b.pass(-time.Hour)
	t := b.submit()
	b.same("enqueued", t.EnqueuedAt, start)
	b.same("created", t.CreatedAt, start.Add(-time.Hour))
	b.claimed(b.offer("a"))
	back := b.happen(id(1), signalbox.Event{Kind: signalbox.EventBusy})
	b.same("enqueued again", back.EnqueuedAt, start)
	b.pass(time.Hour + time.Millisecond)
	b.same("enqueued when the clock is past it", b.submit().EnqueuedAt, start.Add(time.Millisecond))
}

func orderBusyBack(b *fixture) {
	first, second := b.submit(), b.submit()
	b.claimID("a", first.ID)
	b.pass(time.Second)
	back := b.happen(first.ID, signalbox.Event{Kind: signalbox.EventBusy})
	b.same("enqueued", back.EnqueuedAt, b.now)
	third := b.submit()
	for _, want := range []string{second.ID, first.ID, third.ID} {
		b.claimID("a", want)
		b.finish(want)
	}
}

func orderRefusedStays(b *fixture) {
	first := b.submit()
	b.submit()
	b.claimID("a", first.ID)
	b.pass(time.Second)
	again := b.happen(first.ID, signalbox.Event{Kind: signalbox.EventRefuse})
	b.same("place", [2]int64{again.Place, again.EnqueuedAt.UnixMilli()}, [2]int64{first.Place, first.EnqueuedAt.UnixMilli()})
	b.claimID("a", first.ID)
}

func orderBestHead(b *fixture) {
	pool := b.submit(inQueue("pool:coder"))
	own := b.submit(inQueue("agent:a"))
	work := b.submit(inQueue("work"))
	urgent := b.submit(inQueue("work"), prioritised(2))
	b.submit(inQueue("agent:b"), prioritised(9)) // not a's queue
	for _, want := range []string{urgent.ID, pool.ID, own.ID, work.ID} {
		c := b.offer("a")
		c.Queues = []string{"agent:a", "pool:coder", "work", "work", "pool:empty"}
		b.same("claimed", b.claimed(c).ID, want)
		b.finish(want)
	}
}

func orderBlockedHead(b *fixture) {
	b.submits(3, notBefore(b.now.Add(time.Hour)))
	running := b.submit(inSession("s"), inQueue("agent:b"))
	b.claimID("b", running.ID)
	b.submits(3, inSession("s"))
	free := b.submit()
	b.claimID("a", free.ID)
}

// move changes the position of a waiting task.
func (b *fixture) move(id string, to signalbox.Order) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventEdit, Edit: &signalbox.Edit{Rev: b.task(id).Rev, Order: to}})
}

func orderToBack(b *fixture) {
	list := b.submits(3)
	b.pass(time.Second)
	got := b.move(list[0].ID, signalbox.OrderBack)
	b.same("enqueued", got.EnqueuedAt, b.now)
	for _, want := range []string{list[1].ID, list[2].ID, list[0].ID} {
		b.claimID("a", want)
		b.finish(want)
	}
}

func orderTop(b *fixture) {
	list := b.submits(2)
	high := b.submit(prioritised(10))
	later := b.submit(notBefore(b.now.Add(time.Hour)))
	b.move(list[1].ID, signalbox.OrderTop)
	b.move(later.ID, signalbox.OrderTop)
	pos, err := b.Position(b.ctx, later.ID)
	b.must(err)
	b.same("position", pos.N, 1)
	for _, want := range []string{list[1].ID, high.ID, list[0].ID} {
		b.claimID("a", want)
		b.finish(want)
	}
}

func orderTopOfSession(b *fixture) {
	first, second, third := b.submit(inSession("s")), b.submit(inSession("s")), b.submit(inSession("s"))
	b.ready(first.ID)
	b.move(third.ID, signalbox.OrderTop)
	b.ready(third.ID)
	b.move(third.ID, signalbox.OrderBack)
	b.ready(first.ID)
	b.claimID("a", first.ID)
	b.finish(first.ID)
	b.ready(second.ID)
}

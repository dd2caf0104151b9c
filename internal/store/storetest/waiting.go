package storetest

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func positionRules() []rule {
	return []rule{
		{"a position counts all tasks before it, ready or not", positionCounts},
		{"a position is the one in the task's own queue", positionQueue},
		{"a task that is not pending has no position", positionNone},
		{"positions are exact to 1,000 and marked beyond", positionFar},
	}
}

func (b *fixture) position(id string) store.Position {
	b.Helper()
	p, err := b.Position(b.ctx, id)
	b.must(err)
	return p
}

func positionCounts(b *fixture) {
	b.submits(2, inSession("s"))
	b.submit(notBefore(b.now.Add(time.Hour)))
	b.submit()
	for n := range 4 {
		b.same("position", b.position(id(n+1)), store.Position{N: n + 1})
	}
	high := b.submit(prioritised(1))
	b.same("position of a priority", b.position(high.ID), store.Position{N: 1})
	b.same("position of the last", b.position(id(4)), store.Position{N: 5})
	b.claimID("a", high.ID)
	b.same("position of the last", b.position(id(4)), store.Position{N: 4})
}

func positionQueue(b *fixture) {
	b.submits(3)
	t := b.submit(inQueue("pool:k"))
	b.same("position", b.position(t.ID), store.Position{N: 1})
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventMove, Queue: "work"})
	b.same("position after a move", b.position(t.ID), store.Position{N: 4})
}

func positionNone(b *fixture) {
	b.submits(2)
	b.claimID("a", id(1))
	b.same("position in flight", b.position(id(1)), store.Position{})
	b.finish(id(1))
	b.same("position after the end", b.position(id(1)), store.Position{})
}

func positionFar(b *fixture) {
	b.many(store.MaxExactPosition + 5)
	line, err := b.Waiting(b.ctx, "work", store.Cursor{}, store.MaxExactPosition+5)
	b.must(err)
	for _, n := range []int{1, 500, store.MaxExactPosition - 1, store.MaxExactPosition} {
		b.same("position", b.position(line[n-1].ID), store.Position{N: n})
	}
	for _, n := range []int{store.MaxExactPosition + 1, store.MaxExactPosition + 5} {
		if p := b.position(line[n-1].ID); !p.Approximate || p.N <= store.MaxExactPosition {
			b.Fatalf("position %d is %+v", n, p)
		}
	}
}

func waitingRules() []rule {
	return []rule{
		{"waiting tasks are listed as they will be taken", waitingOrder},
		{"the list of all queues is one order", waitingAll},
		{"pages by cursor have no gaps and nothing twice", waitingPages},
		{"a cursor stays valid when its task is gone", waitingCursorGone},
		{"keys below zero are listed too", waitingNegative},
	}
}

func (b *fixture) waiting(queue string, after store.Cursor, limit int) []signalbox.Task {
	b.Helper()
	list, err := b.Waiting(b.ctx, queue, after, limit)
	b.must(err)
	return list
}

func waitingOrder(b *fixture) {
	b.submits(2)
	b.submit(prioritised(2))
	b.submit(notBefore(b.now.Add(time.Hour)))
	b.submit(inQueue("pool:k"))
	b.claimID("a", id(3))
	b.same("waiting", ids(b.waiting("work", store.Cursor{}, 10)), []string{id(1), id(2), id(4)})
	b.same("row", b.waiting("work", store.Cursor{}, 1)[0], b.task(id(1)))
	b.same("waiting nowhere", ids(b.waiting("pool:x", store.Cursor{}, 10)), []string(nil))
}

func waitingAll(b *fixture) {
	for n := range 6 {
		b.submit(inQueue([]string{"work", "pool:k", "agent:a"}[n%3]), prioritised(n/3))
	}
	b.same("waiting", ids(b.waiting("", store.Cursor{}, 10)), []string{id(4), id(5), id(6), id(1), id(2), id(3)})
}

func waitingPages(b *fixture) {
	for n := range 23 {
		b.submit(inQueue([]string{"work", "pool:k"}[n%2]), prioritised(n%3))
	}
	for _, queue := range []string{"", "work", "pool:k"} {
		want := ids(b.waiting(queue, store.Cursor{}, 100))
		for _, size := range []int{1, 4, 23} {
			var got []string
			var after store.Cursor
			for {
				page := b.waiting(queue, after, size)
				if len(page) == 0 {
					break
				}
				got = append(got, ids(page)...)
				after = store.CursorOf(&page[len(page)-1])
			}
			b.same(fmt.Sprintf("queue %q in pages of %d", queue, size), got, want)
		}
	}
}

func waitingCursorGone(b *fixture) {
	list := b.submits(3)
	after := store.CursorOf(&list[1])
	b.happen(list[1].ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.same("waiting", ids(b.waiting("work", after, 10)), []string{id(3)})
	b.same("waiting", ids(b.waiting("", after, 10)), []string{id(3)})
}

func waitingNegative(b *fixture) {
	b.now = time.UnixMilli(1).UTC()
	t := b.submit(prioritised(5))
	b.same("waiting", ids(b.waiting("", store.Cursor{}, 10)), []string{t.ID})
	b.same("waiting", ids(b.waiting("work", store.Cursor{}, 10)), []string{t.ID})
}

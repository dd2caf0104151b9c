package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

func sessionRules() []rule {
	return []rule{
		{"one turn of a session is ready at a time", sessionOneTurn},
		{"sessions do not wait for each other", sessionOthers},
		{"the end of a turn readies the next", sessionEndReadies},
		{"a requeue to the back gives the turn to the next", sessionRequeueBack},
		{"a retry in place is the next turn again", sessionRetryInPlace},
		{"a retry with a delay gives the turn to the next", sessionRetryDelay},
		{"the cancel of the ready task readies the next", sessionCancelReady},
		{"the cancel of a waiting task changes no turn", sessionCancelWaiting},
		{"a task due later lets others of its session go first", sessionLater},
		{"a priority overtakes inside a session", sessionPriority},
		{"a priority does not overtake a running turn", sessionPriorityRunning},
		{"the next turn may wait in another queue", sessionQueues},
		{"a withheld slot does not hold up the session", sessionWithheld},
		{"a pending task that ends in another way readies the next", sessionOtherEnds},
	}
}

func sessionOneTurn(b *fixture) {
	first := b.submits(3, inSession("s"))[0]
	b.ready(first.ID)
	b.claimID("a", first.ID)
	b.ready()
	b.accept(first.ID)
	b.ready()
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.ready() // a cancelling turn still runs
}

func sessionOthers(b *fixture) {
	s, none, r := b.submit(inSession("s")), b.submit(), b.submit(inSession("r"))
	b.ready(s.ID, none.ID, r.ID)
	b.claimID("a", s.ID)
	b.ready(none.ID, r.ID)
}

func sessionEndReadies(b *fixture) {
	turns := b.submits(3, inSession("s"))
	for n, t := range turns {
		b.claimID("a", t.ID)
		b.finish(t.ID)
		b.ready(ids(turns[n+1 : min(n+2, len(turns))])...)
	}
}

func sessionRequeueBack(b *fixture) {
	turns := b.submits(2, inSession("s"))
	b.claimID("a", turns[0].ID)
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventBusy})
	b.ready(turns[1].ID)
}

func sessionRetryInPlace(b *fixture) {
	turns := b.submits(2, inSession("s"))
	b.claimID("a", turns[0].ID)
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventRefuse})
	b.ready(turns[0].ID)
}

func sessionRetryDelay(b *fixture) {
	turns := b.submits(2, inSession("s"))
	b.claimID("a", turns[0].ID)
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventRefuse, Delay: time.Second})
	b.ready(turns[1].ID)
	b.pass(time.Second)
	b.wake(10, turns[0].ID) // it is before the other one again
	b.ready(turns[0].ID)
}

func sessionCancelReady(b *fixture) {
	turns := b.submits(3, inSession("s"))
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.ready(turns[1].ID)
}

func sessionCancelWaiting(b *fixture) {
	turns := b.submits(3, inSession("s"))
	b.happen(turns[1].ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.ready(turns[0].ID)
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.ready(turns[2].ID)
}

func sessionLater(b *fixture) {
	later := b.submit(inSession("s"), notBefore(b.now.Add(time.Minute)))
	now := b.submit(inSession("s"))
	b.ready(now.ID)
	b.claimID("a", now.ID)
	b.pass(time.Minute)
	b.wake(10) // due, but its session is busy
	b.ready()
	b.finish(now.ID)
	b.ready(later.ID)
}

func sessionPriority(b *fixture) {
	normal := b.submit(inSession("s"))
	high := b.submit(inSession("s"), prioritised(2))
	b.ready(high.ID)
	b.claimID("a", high.ID)
	b.finish(high.ID)
	b.ready(normal.ID)
}

func sessionPriorityRunning(b *fixture) {
	running := b.submit(inSession("s"))
	b.claimID("a", running.ID)
	b.submit(inSession("s"))
	high := b.submit(inSession("s"), prioritised(2))
	b.ready()
	b.finish(running.ID)
	b.ready(high.ID)
}

func sessionQueues(b *fixture) {
	first := b.submit(inSession("s"), inQueue("agent:a"))
	second := b.submit(inSession("s"), inQueue("agent:b"))
	b.noClaim(b.offer("b"))
	b.claimID("a", first.ID)
	b.noClaim(b.offer("b"))
	b.finish(first.ID)
	b.claimID("b", second.ID)
}

func sessionWithheld(b *fixture) {
	turns := b.submits(2, inSession("s"))
	b.claimID("a", turns[0].ID)
	b.accept(turns[0].ID)
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	b.ready(turns[1].ID)
}

func sessionOtherEnds(b *fixture) {
	turns := b.submits(3, inSession("s"))
	b.happen(turns[0].ID, signalbox.Event{Kind: signalbox.EventWaitTimeout})
	b.ready(turns[1].ID)
	b.happen(turns[1].ID, signalbox.Event{Kind: signalbox.EventUndeliverable})
	b.ready(turns[2].ID)
}

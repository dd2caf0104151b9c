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

func bindRules() []rule {
	return []rule{
		{"a bind names the agent of the session", bindNames},
		{"waiting tasks of the session move to the agent's queue", bindMoves},
		{"tasks in an agent's own queue stay there", bindLeaves},
		{"a moved task has a new revision and its old place", bindRevision},
		{"a move by a bind writes no entry of its own", bindEntries},
		{"a session the agent made is the task's from then on", bindNew},
		{"a session that turns out to be running makes no turn ready", bindRunning},
		{"a later bind gives the session to the other agent", bindAgain},
		{"an agent cannot take a session of another by naming it", bindTheft},
		{"a submission follows the session if it says so", bindFollow},
		{"there is nothing to follow in an unbound session", bindFollowNothing},
		{"a bind at the end counts", bindAtEnd},
	}
}

// bind runs the first turn of session s on an agent up to its acceptance.
func (b *fixture) bind(agent, session string) signalbox.Task {
	b.Helper()
	t := b.submit(inSession(session), inQueue(signalbox.AgentQueue(agent)))
	b.claimID(agent, t.ID)
	return b.acceptIn(t.ID, session)
}

func (b *fixture) acceptIn(id, session string) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventAccept, SessionID: session})
}

func bindNames(b *fixture) {
	_, err := b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
	t := b.submit(inSession("s"))
	b.claim("a")
	b.pass(time.Second)
	b.acceptIn(t.ID, "s")
	got, err := b.Session(b.ctx, "s")
	b.must(err)
	b.same("session", got, signalbox.Session{
		ID: "s", Agent: "a", Source: signalbox.SourceAPI, Title: "task 1", State: signalbox.SessionActive, Turns: 1,
		CreatedAt: b.now, LastUsed: b.now,
	})
}

func bindMoves(b *fixture) {
	first := b.submit(inSession("s"))
	work, pool := b.submit(inSession("s")), b.submit(inSession("s"), inQueue("pool:k"))
	other := b.submit(inSession("r"))
	b.claimID("a", first.ID)
	b.acceptIn(first.ID, "s")
	b.same("queue", b.task(work.ID).Queue, "agent:a")
	b.same("queue", b.task(pool.ID).Queue, "agent:a")
	b.same("queue of another session", b.task(other.ID).Queue, "work")
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("queues", counts.Queues, map[string]int{"agent:a": 2, "work": 1})
	b.finish(first.ID)
	b.claimID("b", other.ID)
	b.noClaim(b.offer("b"))
	b.claimID("a", work.ID)
}

func bindLeaves(b *fixture) {
	first := b.submit(inSession("s"))
	own := b.submit(inSession("s"), inQueue("agent:b"))
	b.claimID("a", first.ID)
	b.acceptIn(first.ID, "s")
	b.same("queue", b.task(own.ID).Queue, "agent:b")
	b.same("revision", b.task(own.ID).Rev, int64(1))
}

func bindRevision(b *fixture) {
	first, second := b.submit(inSession("s")), b.submit(inSession("s"))
	cancel := b.change(second, signalbox.Event{Kind: signalbox.EventCancel})
	b.claimID("a", first.ID)
	b.acceptIn(first.ID, "s")
	want := second
	want.Queue, want.Rev = "agent:a", 2
	b.same("moved task", b.task(second.ID), want)
	_, err := b.Apply(b.ctx, cancel, b.now)
	if err == nil {
		b.Fatal("a change made before the move was stored, and undid it")
	}
	b.same("moved task", b.task(second.ID), want)
}

func bindEntries(b *fixture) {
	first := b.submit(inSession("s"))
	b.submit(inSession("s"))
	b.claimID("a", first.ID)
	b.acceptIn(first.ID, "s")
	b.same("entries", kinds(b.journal()), []signalbox.EventKind{"submit", "submit", "claim", "accept"})
}

func bindNew(b *fixture) {
	first := b.submit()
	b.claimID("a", first.ID)
	b.same("session", b.acceptIn(first.ID, "made").SessionID, "made")
	second := b.submit(inSession("made"))
	b.ready()
	b.finish(first.ID)
	b.ready(second.ID)
}

func bindRunning(b *fixture) {
	first := b.submit()
	waiting := b.submit(inSession("s"))
	b.claimID("a", first.ID)
	b.ready(waiting.ID)
	b.acceptIn(first.ID, "s")
	b.ready() // a turn of its session runs
	b.same("queue", b.task(waiting.ID).Queue, "agent:a")
	b.finish(first.ID)
	b.ready(waiting.ID)
}

func bindAgain(b *fixture) {
	b.finish(b.bind("a", "s").ID)
	b.pass(time.Minute)
	b.bind("b", "s")
	got, err := b.Session(b.ctx, "s")
	b.must(err)
	b.same("session", got, signalbox.Session{
		ID: "s", Agent: "b", Source: signalbox.SourceAPI, Title: "task 1", State: signalbox.SessionActive, Turns: 2,
		CreatedAt: start, LastUsed: b.now,
	})
}

func bindTheft(b *fixture) {
	b.finish(b.bind("a", "s").ID)
	was := b.session("s")
	thief, late := b.submit(), b.submit(inQueue("agent:b"))
	b.claimID("b", thief.ID)
	b.pass(time.Minute)
	b.same("session of the task", b.acceptIn(thief.ID, "s").SessionID, "")
	b.same("session", b.session("s"), was)
	next := b.submit(inSession("s"), followSession)
	b.same("queue of the next turn", next.Queue, "agent:a")
	b.ready(late.ID, next.ID) // no turn of the session is in flight
	b.finish(thief.ID)
	b.claimID("b", late.ID)
	b.happen(late.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, SessionID: "s"})
	b.same("session of the task at its end", b.task(late.ID).SessionID, "")
	b.same("session at the end", b.session("s"), was)
}

func bindFollow(b *fixture) {
	b.bind("a", "s")
	b.same("queue", b.submit(inSession("s"), followSession).Queue, "agent:a")
	b.same("queue", b.submit(inSession("s"), inQueue("agent:b"), followSession).Queue, "agent:a")
	b.same("queue without asking", b.submit(inSession("s")).Queue, "work")
	b.same("queue of the entry", b.journal()[3].Queue, "agent:a")
}

func bindFollowNothing(b *fixture) {
	b.same("queue", b.submit(inSession("s"), followSession).Queue, "work")
	b.same("queue", b.submit(followSession).Queue, "work")
}

func bindAtEnd(b *fixture) {
	first := b.submit()
	b.claimID("a", first.ID)
	waiting := b.submit(inSession("s"))
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, SessionID: "s"})
	got, err := b.Session(b.ctx, "s")
	b.must(err)
	b.same("agent", got.Agent, "a")
	b.same("queue", b.task(waiting.ID).Queue, "agent:a")
	b.ready(waiting.ID)
}

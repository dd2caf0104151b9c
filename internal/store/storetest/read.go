package storetest

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func readRules() []rule {
	return []rule{
		{"an unknown id is not found", readUnknown},
		{"a task is found by its idempotency key", readByKey},
		{"counts equal the rows", readCounts},
		{"rows are in the order that was asked for", readTasks},
		{"a whole task equals its parts", readWhole},
		{"in flight are listed in the order of their claims", readInFlight},
		{"overdue are listed longest overdue first", readOverdue},
		{"a session's tasks are listed by order", readSessionTasks},
		{"durations are those of the newest completed tasks of the agent", readDurations},
		{"a run that the clock made negative took no time", readDurationsNegative},
		{"find goes by beginnings and endings, newest first", findParts},
		{"find takes every character as it is", findLiteral},
		{"find finds beginnings however old, endings among the newest", findOld},
		{"a limit of nothing gives nothing", readLimitZero},
		{"info names the store", readInfo},
	}
}

func readUnknown(b *fixture) {
	_, err := b.Task(b.ctx, "queue-x")
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Request(b.ctx, "queue-x")
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Result(b.ctx, "")
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Position(b.ctx, "queue-x")
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Session(b.ctx, "s")
	b.refused(err, signalbox.CodeNotFound)
}

func readCounts(b *fixture) {
	none, err := b.Counts(b.ctx)
	b.must(err)
	b.same("counts of nothing", none, store.Counts{})
	b.submits(3)
	b.pass(-time.Hour)
	b.submit(inQueue("agent:a"), capped(signalbox.LimitChat("a"), 3))
	b.submit(inQueue("pool:k"), notBefore(b.now.Add(time.Hour)))
	b.accept(b.claimID("b", id(1)).ID)
	b.claimID("c", id(2))
	got, err := b.Counts(b.ctx)
	b.must(err)
	b.same("counts", got, store.Counts{
		Queues:   map[string]int{"work": 1, "agent:a": 1, "pool:k": 1},
		Limits:   map[string]int{"work": 2, "chat:a": 1},
		Pending:  3,
		InFlight: map[signalbox.State]int{signalbox.Dispatching: 1, signalbox.Working: 1},
		Oldest:   start.Add(-time.Hour),
	})
	lengths, err := b.Lengths(b.ctx, "pool:k", "nowhere", "work", "agent:a", "pool:k")
	b.must(err)
	b.same("lengths", lengths, []int{1, 0, 1, 1, 1})
	lengths, err = b.Lengths(b.ctx)
	b.must(err)
	b.same("lengths of no queue", len(lengths), 0)
}

func readTasks(b *fixture) {
	b.submits(3)
	b.accept(b.claimID("a", id(1)).ID)
	rows, err := b.Tasks(b.ctx, []string{id(3), "queue-x", id(2), id(1)})
	b.must(err)
	b.same("rows", rows, []signalbox.Task{b.task(id(3)), b.task(id(2)), b.task(id(1))})
	rows, err = b.Tasks(b.ctx, nil)
	b.must(err)
	b.same("rows of no task", len(rows), 0)
}

func readWhole(b *fixture) {
	b.submits(3)
	b.whole(id(3)) // third in its queue
	working := b.accept(b.claimID("a", id(1)).ID)
	b.must(b.KeepStale(b.ctx, working.ID, aStale(working.Fence)))
	b.whole(working.ID)
	b.finish(working.ID)
	b.whole(working.ID)
	_, err := b.Whole(b.ctx, "queue-x")
	b.refused(err, signalbox.CodeNotFound)
}

// whole compares Whole of a task with the separate reads.
func (b *fixture) whole(id string) {
	b.Helper()
	var want store.Whole
	var err error
	want.Task = b.task(id)
	want.Request, err = b.Request(b.ctx, id)
	b.must(err)
	want.Result, err = b.Result(b.ctx, id)
	b.must(err)
	want.Stales, err = b.Stales(b.ctx, id)
	b.must(err)
	want.Position, err = b.Position(b.ctx, id)
	b.must(err)
	got, err := b.Whole(b.ctx, id)
	b.must(err)
	b.same("the whole of "+id, got, want)
}

func readInFlight(b *fixture) {
	b.submits(3)
	b.submit(inQueue("agent:c"))
	last := b.claimed(store.ClaimRequest{Agent: "c", Slots: 1, Queues: []string{"agent:c"}, Now: b.now, Expires: b.now})
	b.claim("a")
	b.claim("b")
	b.accept(id(1))
	got, err := b.InFlight(b.ctx)
	b.must(err)
	b.same("in flight", ids(got), []string{last.ID, id(1), id(2)})
	b.same("row", got[1], b.task(id(1)))
}

func (b *fixture) overdue(limit int) []string {
	b.Helper()
	list, err := b.Overdue(b.ctx, b.now, limit)
	b.must(err)
	return ids(list)
}

func readOverdue(b *fixture) {
	b.submit(waitUntil(start.Add(2 * time.Second)))
	b.submit(waitUntil(start.Add(time.Second)))
	b.submit(waitUntil(start.Add(time.Second)), inSession("s"))
	b.submit(waitUntil(start.Add(time.Minute)))
	b.submit()
	b.same("overdue", b.overdue(10), []string(nil))
	b.pass(time.Second)
	b.same("overdue", b.overdue(10), []string{id(2), id(3)})
	b.pass(time.Second)
	b.same("overdue", b.overdue(10), []string{id(2), id(3), id(1)})
	b.same("overdue", b.overdue(2), []string{id(2), id(3)})
	b.claimID("a", id(1))
	b.happen(id(2), signalbox.Event{Kind: signalbox.EventWaitTimeout})
	b.same("overdue", b.overdue(10), []string{id(3)})
}

func readSessionTasks(b *fixture) {
	b.submits(2, inSession("s"))
	b.submit(inSession("s"), prioritised(5))
	b.submit(inSession("r"))
	b.submit()
	b.claimID("a", id(3))
	b.finish(id(3))
	b.submit(inSession("s"), prioritised(5))
	b.claimID("a", id(6))
	list := func(session string, limit int) []string {
		got, err := b.SessionTasks(b.ctx, session, limit)
		b.must(err)
		return ids(got)
	}
	b.same("tasks of s", list("s", 10), []string{id(6), id(1), id(2)})
	b.same("tasks of s", list("s", 2), []string{id(6), id(1)})
	b.same("tasks of no session", list("", 10), []string(nil))
	b.same("tasks of an unknown session", list("x", 10), []string(nil))
}

func readDurations(b *fixture) {
	for n := range 4 {
		t := b.submit()
		b.claimID("a", t.ID)
		b.accept(t.ID)
		b.pass(time.Duration(n+1) * time.Second)
		b.finish(t.ID)
	}
	b.submit()
	b.run("b")
	failed := b.submit()
	b.claim("a")
	b.happen(failed.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonAgentError})
	took := func(agent string, limit int) []time.Duration {
		got, err := b.Durations(b.ctx, agent, limit)
		b.must(err)
		return got
	}
	b.same("durations", took("a", 3), []time.Duration{4 * time.Second, 3 * time.Second, 2 * time.Second})
	b.same("durations", len(took("a", 100)), 4)
	b.same("durations", took("b", 100), []time.Duration{0})
	b.same("durations", len(took("x", 100)), 0)
}

func readDurationsNegative(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.accept(t.ID)
	c := b.change(b.task(t.ID), signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted})
	c.Task.EndedAt = b.now.Add(-time.Hour)
	_, err := b.Apply(b.ctx, c, b.now)
	b.must(err)
	got, err := b.Durations(b.ctx, "a", 1)
	b.must(err)
	b.same("durations", got, []time.Duration{0})
}

func named(name string) option { return func(s *store.Submission) { s.Task.ID = name } }

func (b *fixture) found(part string, limit int) []string {
	b.Helper()
	got, err := b.Find(b.ctx, part, limit)
	b.must(err)
	return got
}

func findParts(b *fixture) {
	for _, name := range []string{"queue-aa1", "queue-ab2", "queue-ba1", "queue-aa1x"} {
		b.submit(named(name))
	}
	b.run("a")
	b.same("beginning", b.found("queue-a", 10), []string{"queue-aa1x", "queue-ab2", "queue-aa1"})
	b.same("ending", b.found("a1", 10), []string{"queue-ba1", "queue-aa1"})
	b.same("both, once", b.found("queue-aa1", 10), []string{"queue-aa1x", "queue-aa1"})
	b.same("limit", b.found("queue-a", 2), []string{"queue-aa1x", "queue-ab2"})
	b.same("limit across both", b.found("a1", 1), []string{"queue-ba1"})
	b.same("middle", b.found("ueue", 10), []string(nil))
	b.same("anything", len(b.found("", 10)), 4)
}

func findLiteral(b *fixture) {
	for _, name := range []string{"queue-a_b", "queue-axb", "queue-A%", "queue-[a]", `queue-\`, "queue-*"} {
		b.submit(named(name))
	}
	for _, part := range []string{"a_b", "A%", "[a]", `\`, "*"} {
		b.same("ending "+part, b.found(part, 10), []string{"queue-" + part})
		b.same("beginning "+part, b.found("queue-"+part, 10), []string{"queue-" + part})
	}
	for _, part := range []string{"%", "queue-%", "_", "QUEUE-", "a%", "?", "queue-\x00", "\xff"} {
		want := []string(nil)
		if part == "%" {
			want = []string{"queue-A%"}
		}
		b.same("part "+part, b.found(part, 10), want)
	}
}

func findOld(b *fixture) {
	if testing.Short() {
		b.Skip("needs more than 10,000 tasks")
	}
	b.submit(named("queue-oldest-end"))
	b.many(9_999)
	b.same("ending among the newest", b.found("oldest-end", 10), []string{"queue-oldest-end"})
	b.submit()
	b.same("ending beyond the newest", b.found("oldest-end", 10), []string(nil))
	b.same("beginning", b.found("queue-oldest", 10), []string{"queue-oldest-end"})
	p, err := b.Position(b.ctx, id(b.n))
	b.must(err)
	if !p.Approximate || p.N <= store.MaxExactPosition {
		b.Fatalf("the position behind 10,000 tasks is %+v", p)
	}
}

// many submits n tasks concurrently, so that a store can commit them together. The store chooses their order.
func (b *fixture) many(n int, options ...option) {
	b.Helper()
	var subs []store.Submission
	for range n {
		subs = append(subs, b.submission(options...))
	}
	const side = 64
	for _, err := range together(side, func(lane int) error {
		for i := lane; i < n; i += side {
			if _, err := b.Submit(b.ctx, subs[i]); err != nil {
				return err
			}
		}
		return nil
	}) {
		b.must(err)
	}
}

func readLimitZero(b *fixture) {
	b.submit(waitUntil(b.now), inSession("s"))
	b.submit()
	b.run("a")
	for _, limit := range []int{0, -1} {
		found := b.found("queue", limit)
		waiting, err := b.Waiting(b.ctx, "", store.Cursor{}, limit)
		b.must(err)
		sessions, err := b.SessionTasks(b.ctx, "s", limit)
		b.must(err)
		took, err := b.Durations(b.ctx, "a", limit)
		b.must(err)
		entries, err := b.Journal(b.ctx, 0, limit)
		b.must(err)
		n := len(found) + len(waiting) + len(sessions) + len(took) + len(entries) + len(b.overdue(limit))
		b.same("results", n, 0)
		b.same("pruned", b.prune(b.now.Add(time.Hour), limit), 0)
	}
}

func readInfo(b *fixture) {
	info := b.Info()
	if info.Kind == "" || info.ID == "" || info.Durability == "" || info.Grade == "" {
		b.Fatalf("info %+v leaves something open", info)
	}
	b.same("info", b.Info(), info)
}

func readByKey(b *fixture) {
	first := b.submit(keyed("k1", "h"))
	b.submit()
	got, err := b.ByKey(b.ctx, "k1")
	b.must(err)
	b.same("found", got, first)
	ended := b.happen(first.ID, signalbox.Event{Kind: signalbox.EventCancel})
	got, err = b.ByKey(b.ctx, "k1")
	b.must(err)
	b.same("found when it has ended", got, ended)
	for _, unknown := range []string{"", "k", "k11", "K1"} {
		_, err := b.ByKey(b.ctx, unknown)
		b.refused(err, signalbox.CodeNotFound)
	}
}

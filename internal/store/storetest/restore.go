package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func restoreRules() []rule {
	return []rule{
		{"an ended task comes back completely", restoreEnded},
		{"a waiting task is ordered by its enqueueing", restoreOrder},
		{"a waiting task comes with its request and environment", restoreWaiting},
		{"a later time and a running session hold it back", restoreBlocked},
		{"its id and its key are in use from then on", restoreTaken},
		{"a task that had been parked keeps its parking data and continues", restoreParked},
		{"tasks in flight or parked are refused", restoreInFlight},
		{"limits are not checked, but the task counts", restoreLimit},
	}
}

// other is a task from another store, which ran to its end there.
func (b *fixture) other(options ...option) store.Restored {
	b.Helper()
	code := 3
	s := b.submission(options...)
	t := s.Task
	t.Seq, t.Rev, t.Place, t.EnqueuedAt = 4711, 9, 815, b.now.Add(-time.Hour)
	t.State, t.Reason, t.Message, t.EndedAt = signalbox.Completed, signalbox.ReasonCompleted, "done", b.now.Add(-time.Minute)
	t.StartedAt, t.DispatchedAt, t.Agent, t.Fence, t.TaskID = b.now.Add(-3*time.Minute), b.now.Add(-4*time.Minute), "a", 99, "t1"
	t.Claims, t.Attempts = 2, 1
	return store.Restored{Task: t, Request: s.Request, Result: &signalbox.Result{Output: "out", Tail: "tail", ExitCode: &code}, Now: b.now}
}

// waits is other for a task that still waits, since a time.
func (b *fixture) waits(since time.Duration, options ...option) store.Restored {
	b.Helper()
	s := b.submission(options...)
	s.Task.EnqueuedAt = b.now.Add(-since)
	return store.Restored{Task: s.Task, Request: s.Request, Now: b.now}
}

func (b *fixture) restore(r store.Restored) signalbox.Task {
	b.Helper()
	t, err := b.Restore(b.ctx, r)
	b.must(err)
	return t
}

func restoreEnded(b *fixture) {
	b.submit()
	r := b.other(keyed("k", "h"))
	got := b.restore(r)
	want := r.Task
	want.Seq, want.Rev, want.Place = 2, 1, 2
	b.same("answer", got, want)
	b.same("row", b.task(want.ID), want)
	request, err := b.Request(b.ctx, want.ID)
	b.must(err)
	b.same("request", request, r.Request)
	result, err := b.Result(b.ctx, want.ID)
	b.must(err)
	b.same("result", result, *r.Result)
	took, err := b.Durations(b.ctx, "a", 10)
	b.must(err)
	b.same("durations", took, []time.Duration{2 * time.Minute})
	page, err := b.History(b.ctx, store.HistoryQuery{Limit: 10})
	b.must(err)
	b.same("history", ids(page.Tasks), []string{want.ID})
	entries := b.journal()
	b.same("entry", entries[1], signalbox.Entry{
		Seq: 2, At: b.now, Kind: signalbox.EventRestored, QueueID: want.ID, State: signalbox.Completed, Reason: signalbox.ReasonCompleted,
		Queue: signalbox.QueueWork, Agent: "a", Source: signalbox.SourceAPI,
	})
	b.same("slots", b.slots(), []signalbox.Slot(nil))
}

func restoreOrder(b *fixture) {
	first := b.restore(b.waits(2 * time.Hour))
	second := b.restore(b.waits(time.Hour))
	late := b.restore(b.waits(3 * time.Hour)) // it was enqueued later and overtakes none
	b.same("its time", late.EnqueuedAt, second.EnqueuedAt)
	new := b.submit()
	for _, want := range []string{first.ID, second.ID, late.ID, new.ID} {
		b.claimID("a", want)
		b.accept(want)
		b.finish(want)
	}
}

func restoreWaiting(b *fixture) {
	r := b.waits(time.Hour, withEnv("sealed"))
	t := b.restore(r)
	b.ready(t.ID)
	got, err := b.Claim(b.ctx, b.offer("a"))
	b.must(err)
	b.same("request", got.Request, r.Request)
	b.same("entry", b.journal()[0], signalbox.Entry{
		Seq: 1, At: b.now, Kind: signalbox.EventSubmit, QueueID: t.ID, State: signalbox.Pending, Queue: signalbox.QueueWork, Source: signalbox.SourceAPI,
	})
}

func restoreBlocked(b *fixture) {
	b.restore(b.waits(time.Hour, notBefore(b.now.Add(time.Hour))))
	turn := b.submit(inSession("s"))
	b.restore(b.waits(time.Hour, inSession("s")))
	b.ready(turn.ID)
}

func restoreTaken(b *fixture) {
	r := b.other(keyed("k", "h"))
	b.restore(r)
	before := everything(b)
	_, err := b.Restore(b.ctx, r)
	b.refused(err, signalbox.CodeConflict)
	again := b.other(keyed("k", "h"))
	_, err = b.Restore(b.ctx, again)
	b.refused(err, signalbox.CodeConflict)
	b.same("what is stored", everything(b), before)
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "h")))
	b.must(err)
	b.same("replay", []any{got.Replayed, got.Task.ID}, []any{true, r.Task.ID})
}

func restoreInFlight(b *fixture) {
	for _, state := range []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling, signalbox.Parked} {
		r := b.waits(time.Hour)
		r.Task.State = state
		_, err := b.Restore(b.ctx, r)
		b.refused(err, signalbox.CodeConflict)
	}
	r := b.waits(time.Hour)
	r.Result = &signalbox.Result{}
	_, err := b.Restore(b.ctx, r)
	b.refused(err, signalbox.CodeValidation)
	r = b.other()
	r.Task.EndedAt = time.Time{}
	_, err = b.Restore(b.ctx, r)
	b.refused(err, signalbox.CodeValidation)
	b.same("journal", b.journal(), []signalbox.Entry(nil))
}

func restoreParked(b *fixture) {
	r := b.waits(time.Hour, inSession("s"), inQueue("agent:a"))
	r.Task.Parking = &signalbox.Parking{Gate: closedMax, At: b.now, Count: 3, Next: "go on", Began: true}
	b.restore(r)
	b.same("claimed", *b.claim("a").Parking, *r.Task.Parking)
	b.same("parked", b.parked("", ""), []string(nil))
}

func restoreLimit(b *fixture) {
	b.submit(capped("l", 1))
	b.restore(b.waits(time.Hour, capped("l", 1)))
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("limit", counts.Limits, map[string]int{"l": 2})
	_, err = b.Submit(b.ctx, b.submission(capped("l", 2)))
	b.refused(err, signalbox.CodeQueueFull)
}

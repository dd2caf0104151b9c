package storetest

import (
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func submitRules() []rule {
	return []rule{
		{"the row is stored as given, with what the store sets", submitStores},
		{"the answer is the row as stored", submitAnswers},
		{"seq and place grow by one", submitNumbers},
		{"the answer says how many wait under its limit", submitDepth},
		{"an id is used once", submitTwice},
		{"a task due later is not ready", submitLater},
		{"a task due now or before is ready", submitDue},
		{"requeued and moved tasks keep their seq", submitSeqStays},
	}
}

func submitStores(b *fixture) {
	thinking := true
	s := b.submission(inQueue("pool:coder"), inSession("s-1"), prioritised(3), withEnv("sealed"), keyed("key", "hash"),
		waitUntil(start.Add(time.Hour)), notBefore(start.Add(time.Minute)))
	s.Task.RetryOf, s.Task.SourceJob, s.Task.MaxAttempts = "queue-older", "nightly", 7
	s.Task.Mode, s.Task.Owner, s.Task.OwnerEmail = signalbox.ModeBypass, "user:ann", "ann@example.com"
	s.Task.ParentID, s.Task.Depth, s.Task.Waits, s.Task.QueuedAs = "queue-parent", 8, true, 3
	s.Request.AllowedTools, s.Request.SystemPrompt = []string{"Read", ""}, "be brief"
	s.Request.Model, s.Request.Tier, s.Request.TimeoutSeconds = "large", "best", 90
	s.Request.Project, s.Request.Thinking = &signalbox.Project{Name: "p", Path: "/p"}, &thinking
	_, err := b.Submit(b.ctx, s)
	b.must(err)
	want := s.Task
	want.Seq, want.Rev, want.Place, want.EnqueuedAt = 1, 1, 1, b.now
	b.same("task", b.task(s.Task.ID), want)
	request, err := b.Request(b.ctx, s.Task.ID)
	b.must(err)
	b.same("request", request, s.Request)
	result, err := b.Result(b.ctx, s.Task.ID)
	b.must(err)
	b.same("result", result, signalbox.Result{})
}

func submitAnswers(b *fixture) {
	got, err := b.Submit(b.ctx, b.submission(inSession("s")))
	b.must(err)
	b.same("answer", got.Task, b.task(got.Task.ID))
	if got.Replayed || got.Position.N > 1 {
		b.Fatalf("the answer is %+v", got)
	}
	if !got.Task.Ready {
		b.Fatal("the first task of a session is not ready")
	}
}

func submitNumbers(b *fixture) {
	for n := int64(1); n <= 3; n++ {
		t := b.submit(inQueue("pool:p" + strings.Repeat("x", int(n))))
		b.same("seq and place", [2]int64{t.Seq, t.Place}, [2]int64{n, n})
	}
	full := b.submission(capped(signalbox.LimitWork, 1))
	_, err := b.Submit(b.ctx, full)
	b.refused(err, signalbox.CodeQueueFull)
	b.same("seq after a refusal", b.submit().Seq, int64(4))
}

func submitDepth(b *fixture) {
	depth := func(options ...option) int {
		got, err := b.Submit(b.ctx, b.submission(options...))
		b.must(err)
		return got.Depth
	}
	again := b.submission(capped(signalbox.LimitWork, 9), keyed("key", "hash"))
	got, err := b.Submit(b.ctx, again)
	b.must(err)
	b.same("depths", []int{got.Depth, depth(), depth(capped("lane:a", 2)), depth(capped("lane:a", 2)), depth()}, []int{1, 2, 1, 2, 3})
	b.claimID("a", got.Task.ID)
	b.same("depth after a claim", depth(), 3)
	replayed, err := b.Submit(b.ctx, again)
	b.must(err)
	b.same("depth of a replay", replayed.Depth, 0)
}

func submitTwice(b *fixture) {
	s := b.submission()
	_, err := b.Submit(b.ctx, s)
	b.must(err)
	s.Request.Prompt = "another"
	_, err = b.Submit(b.ctx, s)
	b.refused(err, signalbox.CodeConflict)
	request, err := b.Request(b.ctx, s.Task.ID)
	b.must(err)
	b.same("prompt", request.Prompt, "do task 1")
	b.same("journal entries", len(b.journal()), 1)
}

func submitLater(b *fixture) {
	b.submit(notBefore(b.now.Add(time.Millisecond)))
	b.ready()
	b.noClaim(b.offer("a"))
}

func submitDue(b *fixture) {
	now := b.submit(notBefore(b.now))
	past := b.submit(notBefore(b.now.Add(-time.Hour)))
	b.ready(now.ID, past.ID)
}

func submitSeqStays(b *fixture) {
	t := b.submit()
	b.submits(2)
	b.claimID("a", t.ID)
	back := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventBusy})
	b.same("seq and place of a requeued task", [2]int64{back.Seq, back.Place}, [2]int64{1, 4})
	moved := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventMove, Queue: "pool:k"})
	b.same("seq and place of a moved task", [2]int64{moved.Seq, moved.Place}, [2]int64{1, 4})
}

func limitRules() []rule {
	return []rule{
		{"the cap counts pending tasks of the limit whatever their queue", limitAcrossQueues},
		{"another limit is another count", limitIsNotQueue},
		{"cap 0 is no limit", limitNone},
		{"a refused submit leaves nothing behind", limitNoEffect},
		{"a task in flight or ended makes room", limitRoom},
		{"a requeue is never refused and counts", limitRequeue},
		{"64 at once against a cap of 10 give exactly 10", limitRace},
	}
}

func limitAcrossQueues(b *fixture) {
	b.submit(inQueue("work"), capped("work", 2))
	b.submit(inQueue("agent:a"), capped("work", 2))
	_, err := b.Submit(b.ctx, b.submission(inQueue("pool:k"), capped("work", 2)))
	b.refused(err, signalbox.CodeQueueFull)
}

func limitIsNotQueue(b *fixture) {
	b.submit(inQueue("agent:a"), capped("work", 1))
	b.submit(inQueue("agent:a"), capped(signalbox.LimitChat("a"), 1))
	_, err := b.Submit(b.ctx, b.submission(inQueue("agent:a"), capped(signalbox.LimitChat("a"), 1)))
	b.refused(err, signalbox.CodeQueueFull)
	b.submit(inQueue("agent:a"), capped(signalbox.LimitChat("b"), 1))
}

func limitNone(b *fixture) { b.submits(120, capped("work", 0)) }

func limitNoEffect(b *fixture) {
	b.submit()
	s := b.submission(capped("work", 1), keyed("key", "hash"), inSession("s"))
	_, err := b.Submit(b.ctx, s)
	b.refused(err, signalbox.CodeQueueFull)
	_, err = b.Task(b.ctx, s.Task.ID)
	b.refused(err, signalbox.CodeNotFound)
	_, err = b.Request(b.ctx, s.Task.ID)
	b.refused(err, signalbox.CodeNotFound)
	b.same("journal entries", len(b.journal()), 1)
	again, err := b.Submit(b.ctx, b.submission(keyed("key", "other")))
	b.must(err) // the refused one did not use up the key
	if again.Replayed {
		b.Fatal("the key of a refused submit was kept")
	}
}

func limitRoom(b *fixture) {
	first := b.submit(capped("work", 1))
	b.claimID("a", first.ID)
	second := b.submit(capped("work", 1))
	b.happen(second.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.submit(capped("work", 1))
}

func limitRequeue(b *fixture) {
	first := b.submit(capped("work", 1))
	b.claimID("a", first.ID)
	b.submit(capped("work", 1))
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventBusy})
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("pending", counts.Limits["work"], 2)
	_, err = b.Submit(b.ctx, b.submission(capped("work", 2)))
	b.refused(err, signalbox.CodeQueueFull)
}

// together makes n concurrent calls and returns their errors.
func together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			errs[i] = call(i)
		})
	}
	ready.Wait()
	close(gate)
	done.Wait()
	return errs
}

func limitRace(b *fixture) {
	const n, limit = 64, 10
	var subs []store.Submission
	for range n {
		subs = append(subs, b.submission(capped("work", limit)))
	}
	stored := 0
	for _, err := range together(n, func(i int) error { _, err := b.Submit(b.ctx, subs[i]); return err }) {
		if err == nil {
			stored++
			continue
		}
		b.refused(err, signalbox.CodeQueueFull)
	}
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("stored, counted and noted", [3]int{stored, counts.Pending, len(b.journal())}, [3]int{limit, limit, limit})
}

func idempotencyRules() []rule {
	return []rule{
		{"the same key and hash return the existing task", keyReplays},
		{"the same key with another hash is refused", keyOtherBody},
		{"a replay shows the task as it is now, ended too", keyReplaysEnded},
		{"a replay comes before the limit", keyBeforeLimit},
		{"an empty key is not a key", keyNone},
		{"64 at once with one key make one task", keyRace},
	}
}

func keyReplays(b *fixture) {
	first := b.submit(keyed("k", "h"))
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "h"), inQueue("pool:x")))
	b.must(err)
	b.same("replay", got, store.Submitted{Task: first, Replayed: true})
	b.same("journal entries", len(b.journal()), 1)
}

func keyOtherBody(b *fixture) {
	b.submit(keyed("k", "h"))
	s := b.submission(keyed("k", "H"))
	_, err := b.Submit(b.ctx, s)
	b.refused(err, signalbox.CodeIdempotency)
	_, err = b.Task(b.ctx, s.Task.ID)
	b.refused(err, signalbox.CodeNotFound)
	b.submit(keyed("K", "h")) // keys are case-sensitive
}

func keyReplaysEnded(b *fixture) {
	b.submit(keyed("k", "h"))
	done := b.run("a")
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "h")))
	b.must(err)
	b.same("replay", got, store.Submitted{Task: done, Replayed: true})
}

func keyBeforeLimit(b *fixture) {
	first := b.submit(keyed("k", "h"), capped("work", 1))
	got, err := b.Submit(b.ctx, b.submission(keyed("k", "h"), capped("work", 1)))
	b.must(err)
	b.same("replay", got, store.Submitted{Task: first, Replayed: true})
	_, err = b.Submit(b.ctx, b.submission(keyed("k", "H"), capped("work", 1)))
	b.refused(err, signalbox.CodeIdempotency)
}

func keyNone(b *fixture) {
	b.submits(3, keyed("", "h"))
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("pending", counts.Pending, 3)
}

func keyRace(b *fixture) {
	const n = 64
	var subs []store.Submission
	for range n {
		subs = append(subs, b.submission(keyed("k", "h")))
	}
	got := make([]store.Submitted, n)
	for _, err := range together(n, func(i int) (err error) { got[i], err = b.Submit(b.ctx, subs[i]); return err }) {
		b.must(err)
	}
	first := 0
	for _, g := range got {
		b.same("id", g.Task.ID, got[0].Task.ID)
		if !g.Replayed {
			first++
		}
	}
	b.same("tasks made and noted", [2]int{first, len(b.journal())}, [2]int{1, 1})
}

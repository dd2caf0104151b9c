package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func applyRules() []rule {
	return []rule{
		{"a limit that fired is kept until the end, and is its reason", applyStop},
		{"the answer is the row as stored, one revision on", applyAnswers},
		{"a change of an older revision is stale and has no effect", applyStale},
		{"a change of a later revision is stale too", applyFuture},
		{"a change of an unknown task is not found", applyUnknown},
		{"one of many changes of one revision wins", applyRace},
		{"the end frees the slot", applyFrees},
		{"a slot with another fence is not freed", applyRightFence},
		{"withholding marks the row and keeps it", applyWithholds},
		{"a slot is taken by Claim only", applyNoTake},
		{"the result is stored with the end", applyResult},
		{"a change without a result keeps the one there is", applyKeepsResult},
		{"the environment is erased at the end", applyErasesEnv},
		{"the environment survives a requeue", applyKeepsEnv},
		{"what the store sets is not taken from the caller", applyOwnFields},
		{"a delayed retry is not ready before its time", applyDelay},
		{"an edit replaces the request, keeps the environment and moves to another queue", applyEdit},
		{"an edit or a claim of one revision wins", applyEditRace},
		{"every way to end leaves nothing in flight", applyEveryEnd},
	}
}

func applyAnswers(b *fixture) {
	t := b.submit()
	claimed := b.claim("a")
	b.pass(time.Second)
	got := b.accept(t.ID)
	want := claimed
	want.State, want.Rev, want.TaskID, want.StartedAt = signalbox.Working, 3, "task-"+t.ID, b.now
	b.same("answer", got, want)
	b.same("stored", b.task(t.ID), want)
}

func applyStale(b *fixture) {
	t := b.submit(withEnv("sealed"))
	old := b.change(t, signalbox.Event{Kind: signalbox.EventCancel})
	b.claim("a")
	before, slots, notes := b.task(t.ID), b.slots(), len(b.journal())
	old.Result = &signalbox.Result{Output: "stale"}
	_, err := b.Apply(b.ctx, old, b.now)
	if err != store.ErrStale {
		b.Fatalf("got %v, want ErrStale", err)
	}
	b.same("task", b.task(t.ID), before)
	b.same("slots", b.slots(), slots)
	b.same("journal entries", len(b.journal()), notes)
	result, err := b.Result(b.ctx, t.ID)
	b.must(err)
	b.same("result", result, signalbox.Result{})
	request, err := b.Request(b.ctx, t.ID)
	b.must(err)
	b.same("env", string(request.SealedEnv), "sealed")
}

func applyFuture(b *fixture) {
	t := b.submit()
	c := b.change(t, signalbox.Event{Kind: signalbox.EventCancel})
	c.Task.Rev++
	_, err := b.Apply(b.ctx, c, b.now)
	if err != store.ErrStale {
		b.Fatalf("got %v, want ErrStale", err)
	}
}

func applyUnknown(b *fixture) {
	t := b.submission().Task
	t.Rev = 1
	_, err := b.Apply(b.ctx, b.change(t, signalbox.Event{Kind: signalbox.EventCancel}), b.now)
	b.refused(err, signalbox.CodeNotFound)
	b.same("journal entries", len(b.journal()), 0)
}

func applyRace(b *fixture) {
	b.submit()
	t := b.claim("a")
	c := b.change(t, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted})
	won := 0
	for _, err := range together(16, func(int) error { _, err := b.Apply(b.ctx, c, start); return err }) {
		switch err {
		case nil:
			won++
		case store.ErrStale:
		default:
			b.Fatal(err)
		}
	}
	b.same("winners and entries", [2]int{won, len(b.journal())}, [2]int{1, 3})
}

func applyFrees(b *fixture) {
	b.submits(2)
	t := b.claim("a")
	b.finish(t.ID)
	b.same("slots", b.slots(), []signalbox.Slot(nil))
	b.claim("a")
}

// A change keeps the fence that it was made with: if the slot row has another one, the slot is not the task's
// to free or to mark.
func applyRightFence(b *fixture) {
	b.submits(2)
	first := b.claim("a")
	b.accept(first.ID)
	b.happen(first.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	freed, err := b.FreeSlot(b.ctx, "a", first.Slot, first.Fence)
	b.must(err)
	b.same("freed", freed, true)
	second := b.claim("a")
	b.same("slot", second.Slot, first.Slot)
	for _, action := range []signalbox.SlotAction{signalbox.SlotFree, signalbox.SlotWithhold} {
		again := signalbox.Change{Task: b.task(first.ID), Slot: action, Entry: signalbox.Entry{At: b.now, QueueID: first.ID}}
		_, err = b.Apply(b.ctx, again, b.now)
		b.must(err)
		b.same("slots", b.slots(), []signalbox.Slot{{Agent: "a", TaskID: second.ID, Fence: second.Fence, Expires: b.now.Add(10 * time.Minute)}})
	}
}

func applyWithholds(b *fixture) {
	b.submit(onLostRequeue)
	t := b.claim("a")
	b.accept(t.ID)
	back := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	b.same("state", back.State, signalbox.Pending)
	withheld := signalbox.Slot{Agent: "a", TaskID: t.ID, Fence: t.Fence, Expires: b.now.Add(10 * time.Minute), Withheld: true}
	b.same("slots", b.slots(), []signalbox.Slot{withheld})
	again := b.claim("b") // the same task on another agent: two rows, one of them withheld
	b.same("task", again.ID, t.ID)
	b.finish(t.ID)
	b.same("slots", b.slots(), []signalbox.Slot{withheld})
}

func applyNoTake(b *fixture) {
	t := b.submit()
	c := b.change(t, signalbox.Event{Kind: signalbox.EventClaim, Fence: 7, Agent: "a"})
	_, err := b.Apply(b.ctx, c, b.now)
	b.refused(err, signalbox.CodeConflict)
	b.same("task", b.task(t.ID), t)
}

func applyResult(b *fixture) {
	b.submit()
	t := b.claim("a")
	code := 3
	want := signalbox.Result{
		Output: "out", Tail: "tail", TailSeq: 9, Truncated: true, ExitCode: &code, InputTokens: 1, OutputTokens: 2,
		CostUSD: 0.25, DurationSeconds: 1.5, ErrorType: "max_turns",
	}
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonExitNonzero, Result: &want})
	got, err := b.Result(b.ctx, t.ID)
	b.must(err)
	b.same("result", got, want)
}

func applyKeepsResult(b *fixture) {
	t := b.submit()
	b.claim("a")
	c := b.change(b.task(t.ID), signalbox.Event{Kind: signalbox.EventAccept})
	c.Result = &signalbox.Result{Output: "so far"}
	_, err := b.Apply(b.ctx, c, b.now)
	b.must(err)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventCancel})
	got, err := b.Result(b.ctx, t.ID)
	b.must(err)
	b.same("result", got, signalbox.Result{Output: "so far"})
}

func applyErasesEnv(b *fixture) {
	t := b.submit(withEnv("sealed"))
	other := b.submit(withEnv("other"))
	b.run("a")
	request, err := b.Request(b.ctx, t.ID)
	b.must(err)
	b.same("request", request, signalbox.Request{Prompt: "do task 1"})
	b.same("has env", b.task(t.ID).HasEnv, false)
	request, err = b.Request(b.ctx, other.ID)
	b.must(err)
	b.same("env of another task", string(request.SealedEnv), "other")
}

func applyKeepsEnv(b *fixture) {
	t := b.submit(withEnv("sealed"))
	b.claim("a")
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventRefuse})
	got, err := b.Claim(b.ctx, b.offer("a"))
	b.must(err)
	b.same("env", string(got.Request.SealedEnv), "sealed")
}

func applyOwnFields(b *fixture) {
	t := b.submit(inSession("s"), keyed("k", "h"))
	b.submit(inSession("s"))
	c := b.change(t, signalbox.Event{Kind: signalbox.EventMove, Queue: "pool:k"})
	c.Task.IdempotencyKey = "another"
	c.Task.Seq, c.Task.Place, c.Task.EnqueuedAt, c.Task.Ready = 99, 99, b.now.Add(time.Hour), false
	got, err := b.Apply(b.ctx, c, b.now)
	b.must(err)
	want := t
	want.Queue, want.Rev = "pool:k", 2
	b.same("task", got, want)
}

func applyDelay(b *fixture) {
	t := b.submit()
	b.claim("a")
	again := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventRefuse, Delay: time.Second})
	b.same("ready", again.Ready, false)
	b.noClaim(b.offer("a"))
	b.same("slots", b.slots(), []signalbox.Slot(nil))
}

func applyEveryEnd(b *fixture) {
	flight := func(kind signalbox.EventKind, reason signalbox.Reason) {
		b.Helper()
		t := b.submit()
		b.claimID("a", t.ID)
		b.accept(t.ID)
		b.happen(t.ID, signalbox.Event{Kind: kind, Reason: reason})
	}
	flight(signalbox.EventRelease, "")
	flight(signalbox.EventLost, signalbox.ReasonInterrupted)
	flight(signalbox.EventFinish, signalbox.ReasonRunTimeout)
	b.happen(b.submit().ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.happen(b.submit().ID, signalbox.Event{Kind: signalbox.EventWaitTimeout})
	b.happen(b.submit().ID, signalbox.Event{Kind: signalbox.EventUndeliverable})
	rejected := b.submit()
	b.claimID("a", rejected.ID)
	b.happen(rejected.ID, signalbox.Event{Kind: signalbox.EventReject})
	counts, err := b.Counts(b.ctx)
	b.must(err)
	b.same("counts", counts, store.Counts{})
}

func applyStop(b *fixture) {
	t := b.submit()
	b.claim("a")
	b.accept(t.ID)
	stopped := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventStop, Reason: signalbox.ReasonRunTimeout, Message: "ran 60 s, timeout_seconds is 60"})
	b.same("stored", b.task(t.ID), stopped)
	b.same("why", [2]any{stopped.State, stopped.StopReason}, [2]any{signalbox.Cancelling, signalbox.ReasonRunTimeout})
	ended := b.happen(t.ID, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCancelled})
	b.same("stored", b.task(t.ID), ended)
	b.same("end", [3]any{ended.State, ended.Reason, ended.Message},
		[3]any{signalbox.Timeout, signalbox.ReasonRunTimeout, "ran 60 s, timeout_seconds is 60"})
}

func applyEdit(b *fixture) {
	t := b.submit(withEnv("sealed"))
	r, err := b.Request(b.ctx, t.ID)
	b.must(err)
	r.Prompt, r.Queue = "do something else", "pool:k"
	priority := 2
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventEdit, By: "me", Edit: &signalbox.Edit{Rev: t.Rev, Prompt: r.Prompt, Request: &r, Priority: &priority, Bias: time.Minute}})
	want := t
	want.Rev, want.Queue, want.Preview, want.Priority, want.Bias = 2, "pool:k", "do something else", 2, time.Minute
	want.RequestSize, want.EditedAt, want.EditedBy = r.Size(), b.now, "me"
	b.same("stored", b.task(t.ID), want)
	b.noClaim(b.offer("a"))
	offer := b.offer("a")
	offer.Queues = []string{"pool:k"}
	got, err := b.Claim(b.ctx, offer)
	b.must(err)
	b.same("what the claim is given", got.Request, r)
	log := b.journal()
	b.same("entry", log[len(log)-2].Message, "changed: prompt, priority")
	b.finish(t.ID)
	r, err = b.Request(b.ctx, t.ID)
	b.must(err)
	b.same("prompt after the end", r.Prompt, "do something else")
	b.same("environment after the end", string(r.SealedEnv), "")
}

func applyEditRace(b *fixture) {
	for range 20 {
		t := b.submit()
		r := signalbox.Request{Prompt: "edited", Queue: t.Queue}
		edit := b.change(t, signalbox.Event{Kind: signalbox.EventEdit, Edit: &signalbox.Edit{Rev: t.Rev, Prompt: r.Prompt, Request: &r}})
		edited := make(chan error, 1)
		go func() {
			_, err := b.Apply(b.ctx, edit, b.now)
			edited <- err
		}()
		got, err := b.Claim(b.ctx, b.offer("a"))
		b.must(err)
		want := t.Preview
		if err = <-edited; err == nil {
			want = "edited"
		} else if err != store.ErrStale {
			b.Fatal(err)
		}
		b.same("preview of what was claimed", got.Task.Preview, want)
		b.same("given what its row says", got.Request.Prompt == "edited", want == "edited")
		b.finish(t.ID)
	}
}

package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestCancelInEachState(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 9)
	cancel := func(id string) signalbox.Task {
		t.Helper()
		got, err := b.Cancel(t.Context(), id, "me")
		b.must(err)
		return got
	}

	pending := b.submit(engine.NewTask{})
	if got := cancel(pending.ID); got.State != signalbox.Cancelled || got.Message != "cancelled by me" {
		t.Errorf("pending: %+v", got)
	}

	// While dispatching a cancel is sticky: after any reply of the agent the task ends as cancelled.
	for name, reply := range map[string]func(signalbox.Task) (signalbox.Task, error){
		"busy":   func(t signalbox.Task) (signalbox.Task, error) { return b.Busy(b.t.Context(), t, "") },
		"refuse": func(t signalbox.Task) (signalbox.Task, error) { return b.Refuse(b.t.Context(), t, "") },
		"unsent": func(t signalbox.Task) (signalbox.Task, error) { return b.Unsent(b.t.Context(), t, "") },
		"reject": func(t signalbox.Task) (signalbox.Task, error) { return b.Reject(b.t.Context(), t, "no") },
		"lost": func(t signalbox.Task) (signalbox.Task, error) {
			return b.Lose(b.t.Context(), t, signalbox.ReasonLost, "silent", false, nil)
		},
	} {
		b.submit(engine.NewTask{})
		task := b.claim(a).Task
		if got := cancel(task.ID); got.State != signalbox.Dispatching || !got.CancelRequested {
			t.Errorf("dispatching: %+v", got)
		}
		got, err := reply(task)
		b.must(err)
		if got.State != signalbox.Cancelled {
			t.Errorf("%s after a cancel: %s", name, got.State)
		}
	}
	b.submit(engine.NewTask{})
	task := b.claim(a).Task
	cancel(task.ID)
	got, err := b.Accept(t.Context(), task, "task-1", "")
	b.must(err)
	if got.State != signalbox.Cancelling {
		t.Errorf("accepted after a cancel: %s", got.State)
	}

	b.submit(engine.NewTask{})
	working := b.work(a)
	for range 2 { // twice is not an error
		if got := cancel(working.ID); got.State != signalbox.Cancelling {
			t.Errorf("working: %s", got.State)
		}
	}
	if got := b.finish(working, signalbox.ReasonCompleted); got.State != signalbox.Completed {
		t.Errorf("the agent said completed first: %s", got.State)
	}
	before, err := b.Cancel(t.Context(), working.ID, "me")
	wantCode(t, err, signalbox.CodeAlreadyEnded, "")
	if before.State != signalbox.Completed || !strings.Contains(err.Error(), "completed") {
		t.Errorf("%+v, %v", before, err)
	}
	_, err = b.Cancel(t.Context(), "queue-00000000000000000000000000", "me")
	wantCode(t, err, signalbox.CodeNotFound, "")
}

func TestRetry(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "claude", 1)
	yes := true
	first := b.submit(engine.NewTask{
		Prompt: "p", Model: "m", Tier: "t", TimeoutSeconds: 60, Kind: "claude", Priority: 3, OnLost: signalbox.LostRequeue,
		Project: &signalbox.Project{Path: "/x"}, Thinking: &yes, SourceJob: "job", Env: map[string]string{"A": "1"},
	})
	_, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{})
	wantCode(t, err, signalbox.CodeConflict, "")
	b.finish(b.work(a), signalbox.ReasonAgentError)
	_, err = b.Retry(t.Context(), first.ID, engine.RetryEdit{})
	wantCode(t, err, signalbox.CodeValidation, "env")
	_, err = b.Retry(t.Context(), "queue-00000000000000000000000000", engine.RetryEdit{})
	wantCode(t, err, signalbox.CodeNotFound, "")

	r, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{Env: map[string]string{"A": "2"}, Prompt: "q"})
	b.must(err)
	if got := r.Task; got.ID == first.ID || got.RetryOf != first.ID || got.Queue != "pool:claude" || got.Priority != 3 || got.OnLost != signalbox.LostRequeue || got.SourceJob != "job" || got.Attempts != 0 {
		t.Errorf("%+v", got)
	}
	c := b.claim(a)
	if q := c.Request; q.Prompt != "q" || q.Model != "m" || q.Tier != "t" || q.TimeoutSeconds != 60 || q.Project.Path != "/x" || !*q.Thinking || c.Env["A"] != "2" {
		t.Errorf("%+v", q)
	}
	if old := b.task(first.ID); old.State != signalbox.Failed {
		t.Errorf("the first task became %s", old.State)
	}
	again, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{Env: map[string]string{}, IdempotencyKey: "k"})
	b.must(err)
	same, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{Env: map[string]string{}, IdempotencyKey: "k"})
	b.must(err)
	if same.Task.ID != again.Task.ID || !same.Replayed {
		t.Errorf("%+v", same)
	}
}

func TestRetryOfASession(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	b.submit(engine.NewTask{SessionID: "s", Session: signalbox.SessionPrefer})
	done := b.run(a, time.Second)
	r, err := b.Retry(t.Context(), done.ID, engine.RetryEdit{})
	b.must(err)
	if r.Task.SessionID != "s" || r.Task.SessionMode != signalbox.SessionPrefer {
		t.Errorf("%+v", r.Task)
	}
	// A task that got its session from the agent is retried without it.
	b.run(a, time.Second)
	b.submit(engine.NewTask{})
	c := b.claim(a)
	got, err := b.Accept(t.Context(), c.Task, "t", "made-by-agent")
	b.must(err)
	b.finish(got, signalbox.ReasonAgentError)
	r, err = b.Retry(t.Context(), got.ID, engine.RetryEdit{})
	b.must(err)
	if r.Task.SessionID != "" {
		t.Errorf("%+v", r.Task)
	}
}

func TestRetryOfAChat(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 2)
	begins := chat("coder", "begin anew")
	begins.NewSession, begins.Overflow = true, signalbox.OverflowPersist
	first := b.submit(begins)
	b.finish(b.work(a), signalbox.ReasonAgentError)
	r, err := b.Retry(t.Context(), first.ID, engine.RetryEdit{})
	b.must(err)
	if got := r.Task; got.Mode != signalbox.ModeChat || got.Limit != signalbox.LimitWork || got.SessionID == "" || got.SessionID == first.SessionID {
		t.Errorf("the retry is no chat in the backlog with a conversation of its own: %+v", got)
	}

	// An agent that runs several executions must name the calling one.
	b.work(a)
	b.submit(begins)
	second := b.work(a)
	by := agentPrincipal("coder")
	_, err = b.Retry(t.Context(), first.ID, engine.RetryEdit{By: by})
	wantCode(t, err, signalbox.CodeValidation, "X-Signalbox-Execution")
	r, err = b.Retry(t.Context(), first.ID, engine.RetryEdit{By: by, CallerID: second.ID})
	b.must(err)
	if r.Task.ParentID != second.ID {
		t.Errorf("the parent is %q, want %s", r.Task.ParentID, second.ID)
	}
}

func TestRelease(t *testing.T) {
	b := newFixture(t)
	a, other := b.agent("coder", "demo", 4), b.agent("other", "demo", 1)
	for range 5 {
		b.submit(engine.NewTask{})
	}
	dispatching, working, cancelling, lost := b.claim(a).Task, b.work(a), b.work(a), b.work(a)
	kept := b.work(other)
	_, err := b.Cancel(t.Context(), cancelling.ID, "me")
	b.must(err)
	_, err = b.Lose(t.Context(), lost, signalbox.ReasonLost, "silent", true, nil)
	b.must(err)
	ids, err := b.ReleaseLane(t.Context(), "coder", "me")
	b.must(err)
	if len(ids) != 4 || b.slotsInUse() != 1 {
		t.Errorf("%v, %d slots in use", ids, b.slotsInUse())
	}
	for id, want := range map[string]signalbox.Reason{
		dispatching.ID: signalbox.ReasonReleased, working.ID: signalbox.ReasonReleased, cancelling.ID: signalbox.ReasonCancelled, lost.ID: signalbox.ReasonLost,
	} {
		if got := b.task(id); got.Reason != want || got.Message == "" {
			t.Errorf("%s ended as %s (%s), want %s", id, got.Reason, got.Message, want)
		}
	}
	if b.task(kept.ID).State != signalbox.Working {
		t.Error("another agent's task was released")
	}
	_, err = b.Finish(t.Context(), working, engine.Outcome{Reason: signalbox.ReasonCompleted})
	wantCode(t, err, signalbox.CodeAlreadyEnded, "")
	ids, err = b.ReleaseLane(t.Context(), "coder", "me")
	if err != nil || len(ids) != 0 {
		t.Errorf("released twice: %v, %v", ids, err)
	}
	_, err = b.ReleaseLane(t.Context(), "nobody", "me")
	wantCode(t, err, signalbox.CodeNotFound, "agent")
}

func TestClearLane(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	running := b.submit(engine.NewTask{Agent: "coder"})
	b.work(a)
	waiting := b.submit(engine.NewTask{Agent: "coder"})
	elsewhere := b.submit(engine.NewTask{})
	n, err := b.ClearLane(t.Context(), "coder", "me")
	b.must(err)
	if n != 1 || b.task(waiting.ID).State != signalbox.Cancelled || b.task(running.ID).State != signalbox.Working || b.task(elsewhere.ID).State != signalbox.Pending {
		t.Errorf("%d cleared", n)
	}
	_, err = b.ClearLane(t.Context(), "nobody", "me")
	wantCode(t, err, signalbox.CodeNotFound, "agent")
}

// A task that is claimed while its lane is being cleared is not cancelled.
func TestClearLaneSkipsATaskClaimedMeanwhile(t *testing.T) {
	b := newFixture(t)
	b.agent("coder", "demo", 1)
	first, second := b.submit(engine.NewTask{Agent: "coder"}), b.submit(engine.NewTask{Agent: "coder"})
	b.Observe(func(a *engine.Applied) {
		if a.Kind != signalbox.EventCancel {
			return
		}
		got, err := b.store.Claim(t.Context(), store.ClaimRequest{Agent: "coder", Slots: 1, Queues: []string{"agent:coder"}, Now: b.clock(), Expires: b.clock()})
		if err != nil || got.Task.ID != second.ID {
			t.Errorf("claimed %s, %v", got.Task.ID, err)
		}
	})
	n, err := b.ClearLane(t.Context(), "coder", "me")
	b.must(err)
	taken := b.task(second.ID)
	if n != 1 || b.task(first.ID).State != signalbox.Cancelled || taken.State != signalbox.Dispatching || taken.CancelRequested {
		t.Errorf("%d cleared; the other is %s, to be cancelled: %t", n, taken.State, taken.CancelRequested)
	}
}

// Fences: an execution that lost its slot changes nothing.
func TestStaleExecutionIsRefused(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{}).ID
	stale := b.claim(a).Task
	_, err := b.Busy(t.Context(), stale, "")
	b.must(err)
	now := b.work(a)
	if now.Fence <= stale.Fence {
		t.Fatalf("fence %d after %d", now.Fence, stale.Fence)
	}
	for name, say := range map[string]func() (signalbox.Task, error){
		"accept": func() (signalbox.Task, error) { return b.Accept(t.Context(), stale, "x", "") },
		"finish": func() (signalbox.Task, error) {
			return b.Finish(t.Context(), stale, engine.Outcome{Reason: signalbox.ReasonCompleted})
		},
		"refuse": func() (signalbox.Task, error) { return b.Refuse(t.Context(), stale, "") },
		"lose": func() (signalbox.Task, error) {
			return b.Lose(t.Context(), stale, signalbox.ReasonLost, "", false, nil)
		},
	} {
		if _, err := say(); signalbox.CodeOf(err) != signalbox.CodeStaleFence {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.task(id); got.State != signalbox.Working || got.Fence != now.Fence {
		t.Errorf("%+v", got)
	}
	again, err := b.Accept(t.Context(), now, "task-1", "") // a repeated answer
	if err != nil || again.Rev != now.Rev {
		t.Errorf("a repeated accept: rev %d after %d, %v", again.Rev, now.Rev, err)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryFixture(t)
		a := b.agent("coder", "demo", 1)
		id := b.submit(engine.NewTask{}).ID
		got, err := b.Wait(t.Context(), id, 30*time.Second, engine.Ended)
		if err != nil || got.State != signalbox.Pending {
			t.Fatalf("the wait was over: %s, %v", got.State, err)
		}
		begun := time.Now()
		done := make(chan signalbox.Task)
		go func() {
			got, _ := b.Wait(t.Context(), id, time.Hour, engine.Ended)
			done <- got
		}()
		time.Sleep(time.Minute)
		b.run(a, 0)
		if got := <-done; got.State != signalbox.Completed || time.Since(begun) != time.Minute {
			t.Errorf("%s after %s", got.State, time.Since(begun))
		}
		// A change by another engine is found by the backstop.
		id = b.submit(engine.NewTask{}).ID
		other := engine.New(b.store, engine.Options{Sealer: newSealer(t), Now: b.clock})
		go func() {
			got, _ := b.Wait(t.Context(), id, time.Hour, engine.Ended)
			done <- got
		}()
		synctest.Wait()
		_, err = other.Cancel(t.Context(), id, "another")
		b.must(err)
		begun = time.Now()
		if got := <-done; got.State != signalbox.Cancelled || time.Since(begun) > 10*time.Second {
			t.Errorf("%s after %s", got.State, time.Since(begun))
		}
		_, err = b.Wait(t.Context(), "queue-00000000000000000000000000", time.Hour, engine.Ended)
		wantCode(t, err, signalbox.CodeNotFound, "")
	})
}

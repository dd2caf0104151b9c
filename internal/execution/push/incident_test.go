package push_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// The recorded incidents of the execution-queue's own system. Each must be impossible here.

// checked is a store that checks its invariants after each write of a task or a slot. Other journal entries
// wait meanwhile.
type checked struct {
	store.Store
	t  *testing.T
	mu sync.Mutex
}

func (c *checked) check() {
	if err := invariant.Check(context.Background(), c.Store); err != nil {
		c.t.Errorf("after a write: %v", err)
	}
}

func (c *checked) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.check()
	return c.Store.Submit(ctx, s)
}

func (c *checked) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.check()
	return c.Store.Claim(ctx, r)
}

func (c *checked) Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.check()
	return c.Store.Apply(ctx, change, now)
}

func (c *checked) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.check()
	return c.Store.FreeSlot(ctx, agent, slot, fence)
}

func (c *checked) Note(ctx context.Context, entry signalbox.Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Store.Note(ctx, entry)
}

func (c *checked) PutAgent(ctx context.Context, a signalbox.Agent, entry signalbox.Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Store.PutAgent(ctx, a, entry)
}

// Incident: a slot was freed while the row said running. Here both are one write, in whatever way a run ends.
func TestIncidentSlotFreedWhileRowSaysRunning(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		h := newFixture(t, shortTimeouts, fast, func(h *fixture, _ *engine.Options) {
			h.store = &checked{Store: h.store, t: t}
			h.opts.FollowWait = 50 * time.Millisecond
		})
		a := h.agent(Options{Plain: plain, NeverBusy: true})
		h.start()
		run := func() string {
			id := h.submit(engine.NewTask{TimeoutSeconds: 3600})
			h.untilState(id, signalbox.Working)
			return id
		}
		atAgent := func() string { e := a.Executions(); return e[len(e)-1].TaskID }
		id := run()
		a.Finish(atAgent(), End{})
		h.ends(id, signalbox.ReasonCompleted)
		id = run()
		h.cancel(id)
		h.ends(id, signalbox.ReasonCancelled)
		id = run()
		a.Forget(false)
		h.ends(id, signalbox.ReasonLost)
		id = run()
		h.release("fake")
		h.ends(id, signalbox.ReasonReleased)
		id = run()
		h.silent(a)
		h.ends(id, signalbox.ReasonLost)
		a.Speak()
		a.Script(Offer, Say(500, nil), Busy(nil), Say(400, nil))
		h.ends(h.submit(engine.NewTask{}), signalbox.ReasonRejected)
	}
}

// Incident: the reclaim of a slot was deferred for ever while its agent was unreachable. Here the lease
// decides: the task ends or moves without the agent, and its slot can be released.
func TestIncidentReclaimDeferredWhileAgentUnreachable(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := newFixture(t, fast)
		gone := h.agent(Options{Name: "gone", Plain: plain})
		h.start()
		stays := h.submit(engine.NewTask{})
		h.untilState(stays, signalbox.Working)
		gone.Down()
		h.await("it is down", func() bool { return !h.live("gone").Up })
		h.clock.silenceFor(ttl)
		h.ends(stays, signalbox.ReasonLost)
		slots, _ := h.store.Slots(t.Context())
		if want := map[bool]int{true: 1}[plain]; len(slots) != want {
			t.Errorf("plain %v: slots %+v", plain, slots)
		}
		if plain {
			h.release("gone")
			if slots, _ = h.store.Slots(t.Context()); len(slots) != 0 {
				t.Errorf("a release of an unreachable agent left %+v", slots)
			}
		}
		h.agent(Options{Name: "here", Auto: true})
		h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted)
	}
}

// Incident: a fixed time to live of 20 minutes killed long runs that worked. Here it is a time of silence.
func TestIncidentFixedTTLKillsHonestLongRun(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		h.start()
		id := h.submit(engine.NewTask{})
		h.untilState(id, signalbox.Working)
		run := a.Executions()[0].TaskID
		for range 10 {
			h.clock.silenceFor(ttl - time.Minute)
			before := h.live("fake").LastProgress
			a.Print(run, "still at it\n")
			h.await("it is heard", func() bool { return h.live("fake").LastProgress.After(before) })
			time.Sleep(2 * time.Millisecond) // so that the next progress has another time
		}
		if got := h.task(id); got.State != signalbox.Working {
			t.Fatalf("after 90 minutes of work it is %s: %s", got.State, got.Message)
		}
		a.Finish(run, End{})
		h.ends(id, signalbox.ReasonCompleted)
	}
}

// Incident: a stall was labelled a timeout.
func TestIncidentStallLabelledTimeout(t *testing.T) {
	h := newFixture(t, stallLimit(5*time.Minute))
	h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 3600})
	h.untilState(id, signalbox.Working)
	h.clock.silenceFor(5 * time.Minute)
	got := h.ends(id, signalbox.ReasonStalled)
	if got.State != signalbox.Failed || !strings.Contains(got.Message, "stall limit") || strings.Contains(got.Message, "timeout") {
		t.Errorf("it ended %s with %q", got.State, got.Message)
	}
}

// Incident: the smaller of two timeouts counted, silently. Here the requested timeout counts, whatever the
// lease is, and the message names it.
func TestIncidentSilentMinOfTimeouts(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{TimeoutSeconds: 1200}) // longer than the lease of 600 s
	h.untilState(id, signalbox.Working)
	if got := a.Requests(Offer)[0].Task.TimeoutSeconds; got != 1200 {
		t.Errorf("the agent was told %d s", got)
	}
	for range 3 {
		h.clock.silenceFor(400 * time.Second)
		h.beats(a, id, time.Time{})
	}
	if got := h.task(id); got.State != signalbox.Working {
		t.Fatalf("it is %s within its timeout: %s", got.State, got.Message)
	}
	h.clock.silenceFor(31 * time.Second)
	if got := h.ends(id, signalbox.ReasonRunTimeout); !strings.Contains(got.Message, "1200s (timeout_seconds)") {
		t.Errorf("message %q", got.Message)
	}
}

// Incident: a cancelled run was recorded as a success because its process had ended.
func TestIncidentCancelledRecordedAsSuccess(t *testing.T) {
	zero := 0
	cut := &api.AgentError{Type: "cancelled", Message: "cancelled while it ran"}
	for name, said := range map[string]End{
		"cancelled":              {State: "cancelled", Output: "half of it"},
		"with an exit code of 0": {State: "cancelled", Exit: &zero},
		"failed as cancelled":    {State: "failed", Error: cut},
		"completed as cancelled": {State: "completed", Output: "half of it", Error: cut},
	} {
		h := newFixture(t)
		a := h.agent(Options{IgnoresCancel: true})
		h.start()
		id := h.submit(engine.NewTask{})
		h.untilState(id, signalbox.Working)
		h.cancel(id)
		a.AwaitRequest(Cancel, 1)
		a.Finish(id, said)
		if got := h.ends(id, signalbox.ReasonCancelled); got.State != signalbox.Cancelled {
			t.Errorf("%s: it is %s", name, got.State)
		}
	}
}

// Incident: a task failed and a moment later succeeded. Here the first end is final, and later reports are
// kept aside.
func TestIncidentFailedThenSuccessFlicker(t *testing.T) {
	h := newFixture(t, fast)
	a := h.agent(Options{IgnoresCancel: true, Slots: 2})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	h.release("fake")
	failed := h.ends(id, signalbox.ReasonReleased)
	a.AwaitRequest(Cancel, 1)
	a.Finish(id, End{Output: "a success after all"})
	if got := h.stale(id, 1)[0]; got.State != "completed" || got.Result.Output != "a success after all" {
		t.Errorf("kept %+v", got)
	}
	if got := h.task(id); got != failed {
		t.Errorf("it was %+v and is %+v", failed, got)
	}
	ends := 0
	for _, e := range h.journal() {
		if e.QueueID == id && e.State.Terminal() {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("it ended %d times", ends)
	}
}

// Incident: the time that a task waited in a second, hidden queue counted as run time. Here a run begins when
// its agent accepts it.
func TestIncidentWaitCountedAsRunTime(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	h.start()
	first := h.submit(engine.NewTask{})
	h.untilState(first, signalbox.Working)
	id := h.submit(engine.NewTask{TimeoutSeconds: 60})
	h.clock.jumpWall(time.Hour)
	h.clock.silenceFor(ttl / 2)
	a.Finish(first, End{})
	h.ends(first, signalbox.ReasonCompleted)
	h.untilState(id, signalbox.Working)
	a.Finish(id, End{})
	got := h.ends(id, signalbox.ReasonCompleted)
	if ran := got.EndedAt.Sub(got.StartedAt); ran > time.Minute || got.StartedAt.Sub(got.CreatedAt) < time.Hour {
		t.Errorf("it waited %s and ran %s", got.StartedAt.Sub(got.CreatedAt), ran)
	}
}

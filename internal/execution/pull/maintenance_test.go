package pull_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// An agent that does not report on its task for the slot lease loses it, but not earlier: another director
// may have heard from it.
func TestSilentRunIsLostAfterSlotLease(t *testing.T) {
	h := newFixture(t, brisk)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
	run := a.begins()
	a.accepts(run)
	for range 4 { // it sends heartbeats
		h.pass(ttl / 2)
		a.claim(0)
		h.must(h.lanes.LoseSilent(t.Context()))
	}
	if row := h.task(id); row.State != signalbox.Working {
		t.Fatalf("%+v", row)
	}
	h.pass(ttl + time.Second)
	row := h.reaches(id, signalbox.Pending)
	if row.Attempts != 1 || row.LastError == "" {
		t.Errorf("%+v", row)
	}
	_, err := a.report(id, completed(run, "late"))
	refusedWith(t, err, signalbox.CodeStaleFence)
	stales, err := h.store.Stales(t.Context(), id)
	if err != nil || len(stales) != 1 {
		t.Errorf("%+v, %v", stales, err)
	}
}

// A task that its agent never accepted is requeued when the lease has expired.
func TestSilentOfferIsRequeued(t *testing.T) {
	h := newFixture(t, brisk)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	a.begins()
	h.pass(ttl + time.Second)
	if row := h.reaches(id, signalbox.Pending); row.NoAnswers != 1 {
		t.Errorf("%+v", row)
	}
}

// A change by another director may be published later than its row is read: an execution that has started is
// not taken for one that has not.
func TestLateReportOfClaim(t *testing.T) {
	h := newFixture(t, brisk)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	a.accepts(run)
	row := h.reaches(id, signalbox.Working)
	h.lanes.Hear(engine.Applied{
		Kind: signalbox.EventClaim, From: signalbox.Pending, Foreign: true, Partial: true,
		Task: signalbox.Task{ID: id, State: signalbox.Dispatching, Queue: row.Queue, Agent: row.Agent, Fence: row.Fence},
	})
	h.pass(ttl + time.Second)
	if row := h.reaches(id, signalbox.Failed); row.Reason != signalbox.ReasonLost {
		t.Errorf("%+v", row)
	}
}

// A new director gives the agents of the previous one time to report.
func TestDirectorTakesOverRuns(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	a.accepts(run)
	h.lanes.Stop()
	last := newFixtureLater(t, h.store, 5*ttl, brisk) // no director was running for a long time
	h.must(last.lanes.LoseSilent(t.Context()))
	if row := h.task(id); row.State != signalbox.Working {
		t.Fatalf("%+v", row)
	}
	a.h = last
	a.completes(run, "all the same")
	h.reaches(id, signalbox.Completed)
}

// A silent agent is down; one that announces its stop is down at once, and tasks that did not reach it are
// requeued.
func TestStoppingAgent(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 2)
	id, lost := h.submit(engine.NewTask{}), h.submit(engine.NewTask{})
	a.begins()
	if got := a.claim(0); got.Task == nil || got.Task.QueueID != lost {
		t.Fatalf("%+v", got)
	}
	if live, _ := h.lanes.LiveAgent("far"); !live.Up || live.InUse != 2 {
		t.Errorf("%+v", live)
	}
	stop, ok, err := h.lanes.Heartbeat(t.Context(), "far", api.Heartbeat{State: "stopping", Instance: a.c.Instance, Runs: a.c.Runs})
	if !ok || err != nil || len(stop) != 0 {
		t.Errorf("%v %v %v", stop, ok, err)
	}
	if live, _ := h.lanes.LiveAgent("far"); live.Up {
		t.Errorf("%+v", live)
	}
	if row := h.task(lost); row.State != signalbox.Pending || row.Attempts != 0 {
		t.Errorf("%+v", row)
	}
	if row := h.task(id); row.State != signalbox.Dispatching {
		t.Errorf("%+v", row)
	}
	a.claim(0) // it is back
	if live, _ := h.lanes.LiveAgent("far"); !live.Up {
		t.Errorf("%+v", live)
	}
}

func TestSilentAgentIsDown(t *testing.T) {
	h := newFixture(t, brisk)
	a := h.agent("far", 1)
	a.claim(0)
	if there, ok := h.lanes.Answers("far"); !there || !ok {
		t.Error("it was heard a moment ago")
	}
	h.pass(pull.DefaultSilence)
	testkit.Wait(h.t, "it is down", func() bool { live, _ := h.lanes.LiveAgent("far"); return !live.Up })
	if there, _ := h.lanes.Answers("far"); there {
		t.Error("it answers")
	}
}

// Tasks of its sessions are handled when it has been gone for the session grace.
func TestSessionGraceOfPullAgent(t *testing.T) {
	h := newFixture(t, brisk)
	h.agent("far", 1)
	h.must(h.store.PutSession(t.Context(), signalbox.Session{}, signalbox.Session{ID: "talk", Agent: "far", State: signalbox.SessionActive}, signalbox.Entry{Kind: signalbox.EventSession}))
	id := h.submit(engine.NewTask{SessionID: "talk", Session: signalbox.SessionPrefer})
	if row := h.task(id); row.Queue != signalbox.AgentQueue("far") {
		t.Fatalf("%+v", row)
	}
	testkit.Wait(h.t, "the agent is known", func() bool { _, known := h.lanes.LiveAgent("far"); return known })
	gone, _ := h.lanes.LiveAgent("far")
	if grace := gone.StrandedAt.Sub(gone.DownSince); grace != execution.DefaultSessionGrace || gone.DownSince.After(h.engine.Now()) {
		t.Errorf("gone since %s, dealt with at %s", gone.DownSince, gone.StrandedAt)
	}
	h.pass(2 * time.Minute)
	testkit.Wait(h.t, "it is for all", func() bool { return h.task(id).Queue == signalbox.QueueWork })
}

// Limits are measured by the agent's own clock.
func TestLimitsOfPulledRuns(t *testing.T) {
	h := newFixture(t, noTick, func(o *pull.Options, _ *engine.Options) { o.StallLimit = time.Minute })
	a := h.agent("far", 2)
	long, silent := h.submit(engine.NewTask{TimeoutSeconds: 10}), h.submit(engine.NewTask{})
	a.accepts(a.begins())
	a.accepts(a.begins())
	a.c.Runs[0].RanMS, a.c.Runs[1].RanMS, a.c.Runs[1].SilentMS = 39_000, 61_000, 59_000
	if got := a.claim(0); len(got.Stop) != 0 {
		t.Errorf("%+v", got)
	}
	a.c.Runs[0].RanMS, a.c.Runs[1].SilentMS = 40_000, 60_000
	if got := a.claim(0); len(got.Stop) != 2 {
		t.Errorf("%+v", got)
	}
	for id, reason := range map[string]signalbox.Reason{long: signalbox.ReasonRunTimeout, silent: signalbox.ReasonStalled} {
		if row := h.task(id); row.State != signalbox.Cancelling || row.StopReason != reason {
			t.Errorf("%+v", row)
		}
	}
}

// TestWedgedPulledRun: pull agents report progress, so the slot lease bounds the time without any, except for
// a run that waits for a call.
func TestWedgedPulledRun(t *testing.T) {
	h := newFixture(t, noTick, func(o *pull.Options, _ *engine.Options) { o.StallLimit = signalbox.StallByProgress })
	calling := true
	h.engine.SetToolCalls(func(string) bool { return calling }, func(string) []signalbox.ToolCall { return nil })
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{TimeoutSeconds: 7200})
	a.accepts(a.begins())
	ttl := h.engine.Options().ExecutionTTL.Milliseconds()
	a.c.Runs[0].RanMS, a.c.Runs[0].SilentMS = 2*ttl, ttl
	if got := a.claim(0); len(got.Stop) != 0 {
		t.Errorf("it waits for its call: %+v", got)
	}
	calling = false
	if got := a.claim(0); len(got.Stop) != 0 {
		t.Errorf("it waited for its call a moment ago: %+v", got)
	}
	h.pass(h.engine.Options().ExecutionTTL)
	a.c.Runs[0].SilentMS = ttl - 1
	if got := a.claim(0); len(got.Stop) != 0 {
		t.Errorf("it printed later: %+v", got)
	}
	a.c.Runs[0].SilentMS = 2 * ttl
	if got := a.claim(0); len(got.Stop) != 1 {
		t.Errorf("%+v", got)
	}
	if row := h.task(id); row.StopReason != signalbox.ReasonStalled {
		t.Errorf("%+v", row)
	}
}

// Directors share when they last heard of pull agents.
func TestLastSeenIsSharedWithOtherDirectors(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 3)
	other := newFixtureOver(t, h.store, noTick)
	a.c.IsolatedSlots = 2
	a.claim(0)
	news := h.lanes.Heard()
	if len(news) != 1 || len(h.lanes.Heard()) != 0 {
		t.Fatalf("%+v", news)
	}
	other.lanes.HeardElsewhere(news)
	if live, _ := other.lanes.LiveAgent("far"); !live.Up || live.Slots != 3 || live.IsolatedSlots != 2 {
		t.Errorf("%+v", live)
	}
	h.pass(time.Second)
	_, _, err := h.lanes.Heartbeat(t.Context(), "far", api.Heartbeat{State: "stopping", Instance: a.c.Instance})
	h.must(err)
	other.lanes.HeardElsewhere(h.lanes.Heard())
	if live, _ := other.lanes.LiveAgent("far"); live.Up {
		t.Errorf("%+v", live)
	}
	other.lanes.HeardElsewhere(news) // an older report changes nothing
	if live, _ := other.lanes.LiveAgent("far"); live.Up {
		t.Errorf("%+v", live)
	}
}

package push_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The faults that were seen in the work-queue's own system. Each must be impossible here.

// Fault 1: only the first pending task is considered, so a busy or vanished session agent stalls all tasks
// behind it.
func TestFault01NoHeadOfLineBlocking(t *testing.T) {
	h := newFixture(t, noTick)
	gone := h.agent(Options{Name: "gone"})
	h.start()
	turn := h.submit(engine.NewTask{Agent: "gone", SessionID: "talk"})
	h.untilState(turn, signalbox.Working)
	gone.Finish(turn, End{})
	h.ends(turn, signalbox.ReasonCompleted)
	gone.Silence()
	blocked := h.submit(engine.NewTask{Prompt: "next turn", SessionID: "talk"})
	h.agent(Options{Name: "here", Auto: true})
	behind := h.submit(engine.NewTask{Prompt: "behind it"})
	// The silent agent may take it first; then the other one gets the next.
	third := h.submit(engine.NewTask{Prompt: "and behind that"})
	h.await("a task behind the blocked one ends", func() bool {
		return h.task(behind).State.Terminal() || h.task(third).State.Terminal()
	})
	if got := h.task(blocked); got.State.Terminal() || got.Queue != "agent:gone" {
		t.Errorf("the turn of a silent agent's session is %s in %s", got.State, got.Queue)
	}
}

// Fault 2: a stale idle cache without a reservation dispatches twice to one agent, and a reload by creation
// time undoes the order after a 409.
func TestFault02NoDoubleDispatchFromStaleIdleCache(t *testing.T) {
	for _, o := range []Options{{NeverBusy: true, Plain: true}, {NeverBusy: true}} {
		h := newFixture(t, noTick)
		a := h.agent(o)
		h.start()
		h.untilUp("fake")
		var ids []string
		for range 10 {
			ids = append(ids, h.submit(engine.NewTask{}))
		}
		for i, id := range ids {
			e := a.AwaitStart(i + 1)
			h.untilState(id, signalbox.Working)
			a.Finish(e.TaskID, End{})
			h.ends(id, signalbox.ReasonCompleted)
		}
		if o := a.Overlaps(); len(o) > 0 {
			t.Errorf("double dispatch: %v", o)
		}
	}
}

func TestFault02BackOfQueueSurvivesRestart(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	foreign := a.RunForeign("something else")
	a.Script(Status, Say(200, api.AgentStatus{Type: "agent", AgentKind: "demo", State: "idle", Slots: 1, Fencing: true, LongPoll: true}))
	first := h.submit(engine.NewTask{Prompt: "first"})
	second := h.submit(engine.NewTask{Prompt: "second"})
	h.start()
	h.until(first, "refused as busy", func(t signalbox.Task) bool { return t.LastError != "" && t.State == signalbox.Pending })
	h.restart()
	a.Finish(foreign, End{})
	if e := a.AwaitStart(2); e.QueueID != second {
		t.Errorf("after the restart the task at the back came first")
	}
}

// Fault 2: after a 409 the agent gets no offer until it reports idle, and the queue is not offered task by
// task meanwhile.
func TestFault02BusyAgentIsNotOfferedUntilIdle(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		h.start()
		h.untilUp("fake")
		done := h.submit(engine.NewTask{Prompt: "makes it ours"})
		h.untilState(done, signalbox.Working)
		a.Finish(done, End{})
		h.ends(done, signalbox.ReasonCompleted)
		foreign := a.RunForeign("by hand")
		id := h.submit(engine.NewTask{})
		h.await("the agent is held", func() bool { return h.live("fake").Held })
		seen := len(a.Requests(Status))
		a.AwaitRequest(Status, seen+5) // it reports five more times that it works
		if n := len(a.Requests(Offer)); n > 2 {
			t.Errorf("plain %v: a busy agent was offered the task %d times", plain, n-1)
		}
		a.Finish(foreign, End{})
		h.untilState(id, signalbox.Working)
	}
}

// The agent stays held while its refusal cannot be stored: the refused run, which is still in its lane, is
// not taken for what the agent runs.
func TestFault02BusyAgentIsHeldWhileRefusalIsStored(t *testing.T) {
	for _, plain := range []bool{true, false} {
		var f *failing
		h := newFixture(t, func(h *fixture, _ *engine.Options) { f = h.failing() })
		a := h.agent(Options{Plain: plain})
		h.start()
		h.untilUp("fake")
		a.Script(Offer, func(x *Exchange) {
			x.Agent.RunForeign("by hand")
			f.down.Store(true)
			Busy(nil)(x)
		})
		id := h.submit(engine.NewTask{})
		a.AwaitRequest(Offer, 1)
		seen := len(a.Requests(Status))
		a.AwaitRequest(Status, seen+3)
		f.down.Store(false)
		h.until(id, "sent back", func(t signalbox.Task) bool { return t.State == signalbox.Pending })
		seen = len(a.Requests(Status))
		a.AwaitRequest(Status, seen+3)
		if n := len(a.Requests(Offer)); n != 1 {
			t.Errorf("plain %v: a busy agent was offered the task %d times", plain, n)
		}
		a.Finish(a.Executions()[0].TaskID, End{})
		h.untilState(id, signalbox.Working)
	}
}

// Fault 3: a task that its agent lost is polled for ever as working.
func TestFault03LostTaskIsNotPolledForEver(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain})
		id := h.submit(engine.NewTask{})
		h.start()
		h.untilState(id, signalbox.Working)
		a.Forget(false)
		if !plain {
			a.Restart(false)
		}
		got := h.ends(id, signalbox.ReasonLost)
		if !strings.Contains(got.Message, "no longer knows") {
			t.Errorf("message %q", got.Message)
		}
	}
}

// Fault 4: a cancel while dispatching leaves the agent running, and the cancelled task runs again after a
// restart.
func TestFault04CancelWhileDispatchingStopsAgent(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	sign := make(chan struct{})
	a.Script(Offer, After(sign, Well()))
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitRequest(Offer, 1)
	if got := h.cancel(id); got.State != signalbox.Dispatching || !got.CancelRequested {
		t.Fatalf("a cancel while dispatching made it %s", got.State)
	}
	close(sign)
	h.ends(id, signalbox.ReasonCancelled)
	if e := a.AwaitStart(1); e.State != "cancelled" {
		t.Errorf("the agent's run is %s", e.State)
	}
	h.restart()
	h.untilUp("fake")
	next := h.submit(engine.NewTask{})
	h.untilState(next, signalbox.Working)
	if n := len(a.Executions()); n != 2 {
		t.Errorf("%d executions: the cancelled task ran again", n)
	}
}

// Fault 5: recovery requeues all dispatched tasks without asking the agent.
func TestFault05RecoveryAsksAgentBeforeRequeue(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	// The director ends while the offer is in flight: the task runs, although no row says so.
	a.Script(Offer, Taking(Hang()))
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitStart(1)
	if got := h.task(id); got.State != signalbox.Dispatching {
		t.Fatalf("the task is %s", got.State)
	}
	h.restart()
	h.untilState(id, signalbox.Working)
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
	if n := len(a.Executions()); n != 1 {
		t.Errorf("%d executions", n)
	}
}

// Fault 6: 4xx is retried, and 409s use up attempts.
func TestFault06BusyCostsNoAttemptAnd4xxFailsAtOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	a := h.agent(Options{})
	for range 2 { // a third one in a row would back off the agent: TestRefusingAgentIsBackedOff
		a.Script(Offer, Busy(nil))
	}
	a.Script(Offer, Say(400, api.AgentRefusal{Error: "validation_error", Message: "no"}))
	id := h.submit(engine.NewTask{})
	h.start()
	got := h.ends(id, signalbox.ReasonRejected)
	if got.Attempts != 1 || got.Claims != 3 {
		t.Errorf("%d attempts and %d claims, want 1, the rejected one, and 3", got.Attempts, got.Claims)
	}
}

// Fault 7: terminal tasks vanish, together with their result.
func TestFault07OutcomeStaysReadable(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	a.Print(id, "step 1\n")
	a.Print(id, "step 2\n")
	a.Finish(id, End{Output: "the answer"})
	h.ends(id, signalbox.ReasonCompleted)
	h.restart()
	r, err := h.store.Result(context.Background(), id)
	if err != nil || r.Output != "the answer" || r.Tail != "step 1\nstep 2\n" {
		t.Errorf("result %+v, %v", r, err)
	}
}

// A problem that an agent reports is shown at once, without values of the task's env, until it is solved.
func TestTroubleOfRunIsReported(t *testing.T) {
	t.Parallel()
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.Probe, h.opts.FollowWait = time.Hour, 50*time.Millisecond })
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{Env: map[string]string{"KEY": "secret-value"}})
	h.start()
	h.untilState(id, signalbox.Working)
	trouble := func(want string) {
		t.Helper()
		h.until(id, "trouble "+want, func(task signalbox.Task) bool { return h.engine.Trouble(&task) == want })
	}
	a.Trouble(id, "the model's API answers 401 for secret-value")
	trouble("the model's API answers 401 for ***")
	a.Trouble(id, "")
	trouble("")
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
}

// failing is a store whose writes can be made to fail.
type failing struct {
	store.Store
	down  atomic.Bool
	tries atomic.Int64
	stale atomic.Int64 // number of KeepStale calls that fail
}

func (f *failing) KeepStale(ctx context.Context, id string, s signalbox.Stale) error {
	if f.stale.Add(-1) >= 0 {
		return signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")
	}
	f.stale.Store(0)
	return f.Store.KeepStale(ctx, id, s)
}

func (f *failing) fail() error {
	f.tries.Add(1)
	if f.down.Load() {
		return signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")
	}
	return nil
}

func (f *failing) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	if err := f.fail(); err != nil {
		return store.Submitted{}, err
	}
	return f.Store.Submit(ctx, s)
}

func (f *failing) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	if err := f.fail(); err != nil {
		return store.Claimed{}, err
	}
	return f.Store.Claim(ctx, c)
}

func (f *failing) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	if err := f.fail(); err != nil {
		return signalbox.Task{}, err
	}
	return f.Store.Apply(ctx, c, now)
}

func (h *fixture) failing() *failing {
	f := &failing{Store: h.store}
	h.store = f
	return f
}

// Fault 8: a failed write is acknowledged.
func TestFault08NothingIsAcknowledgedUnstored(t *testing.T) {
	var f *failing
	h := newFixture(t, noTick, func(h *fixture, _ *engine.Options) { f = h.failing() })
	a := h.agent(Options{})
	h.start()
	h.untilUp("fake")
	f.down.Store(true)
	_, err := h.engine.Submit(context.Background(), engine.NewTask{Prompt: "lost?"})
	if signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Fatalf("a submit that was not stored answers %v", err)
	}
	f.down.Store(false)
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	if _, err := func() (signalbox.Task, error) {
		f.down.Store(true)
		return h.engine.Cancel(context.Background(), id, "tester")
	}(); err == nil {
		t.Error("a cancel that was not stored is acknowledged")
	}
	if len(a.Requests(Cancel)) > 0 {
		t.Error("the agent was told of a cancel that was not stored")
	}
	// What the agent reports while the store is down is kept until it can be stored.
	tries := f.tries.Load()
	a.Finish(id, End{Output: "the answer"})
	h.await("settling is tried again", func() bool { return f.tries.Load() >= tries+2 })
	f.down.Store(false)
	h.ends(id, signalbox.ReasonCompleted)
	if r, _ := h.store.Result(context.Background(), id); r.Output != "the answer" {
		t.Errorf("output %q", r.Output)
	}
}

// claimless is a store whose claims can be made to fail.
type claimless struct {
	store.Store
	down  atomic.Bool
	tries atomic.Int64
}

func (c *claimless) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	c.tries.Add(1)
	if c.down.Load() {
		return store.Claimed{}, signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")
	}
	return c.Store.Claim(ctx, r)
}

// A failed claim is retried without a tick.
func TestFailedClaimIsRetried(t *testing.T) {
	var c *claimless
	h := newFixture(t, noTick, func(h *fixture, _ *engine.Options) {
		c = &claimless{Store: h.store}
		h.store = c
	})
	h.agent(Options{Auto: true})
	h.start()
	h.untilUp("fake")
	c.down.Store(true)
	id := h.submit(engine.NewTask{})
	h.await("a claim fails", func() bool { return c.tries.Load() > 0 && strings.Contains(h.log.String(), "claim failed") })
	c.down.Store(false)
	h.ends(id, signalbox.ReasonCompleted)
}

// Fault 9: env secrets are exposed. Here they reach the agent and nothing else.
func TestFault09EnvStaysOutOfLogsAndJournal(t *testing.T) {
	const secret, end = "hunter2-is-my-password", "-password"
	env := map[string]string{"PASSWORD": secret}
	for n := range 5 { // the secret starts with these, and its end must not remain when they are masked
		env[fmt.Sprint("PART_", n)] = secret[:7+n]
	}
	h := newFixture(t, fast)
	a := h.agent(Options{})
	a.Script(Offer, Say(500, api.AgentRefusal{Message: "no room for " + secret}), Busy(nil))
	id := h.submit(engine.NewTask{Env: env})
	h.start()
	h.untilState(id, signalbox.Working)
	if got := a.Requests(Offer)[2].Task.Env["PASSWORD"]; got != secret {
		t.Errorf("the agent got env %q", got)
	}
	a.Finish(id, End{State: "failed", Error: &api.AgentError{Type: "claude_error", Message: "cannot log in with " + secret}})
	got := h.ends(id, signalbox.ReasonAgentError)
	if strings.Contains(h.log.String(), end) {
		t.Errorf("the log names the secret:\n%s", h.log)
	}
	for _, e := range h.journal() {
		if strings.Contains(e.Message, end) {
			t.Errorf("the journal names the secret: %+v", e)
		}
	}
	if strings.Contains(got.Message+got.LastError, end) || got.HasEnv {
		t.Errorf("the row names the secret: %+v", got)
	}
	if r, _ := h.store.Request(context.Background(), id); len(r.SealedEnv) > 0 {
		t.Error("the env of an ended task was not erased")
	}
}

// Fault 10: after a lost response the caller runs the task a second time.
func TestFault10LostResponseRunsOnce(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := newFixture(t)
		a := h.agent(Options{Plain: plain, NeverBusy: true})
		a.Script(Offer, Taking(Reset()))
		id := h.submit(engine.NewTask{})
		h.start()
		h.untilState(id, signalbox.Working)
		a.Finish(a.AwaitStart(1).TaskID, End{})
		if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 {
			t.Errorf("plain %v: %d attempts", plain, got.Attempts)
		}
		if n := len(a.Executions()); n != 1 {
			t.Errorf("plain %v: %d executions", plain, n)
		}
	}
}

// Fault 13: the transition table is never called. Here every journal entry is one of its transitions.
func TestFault13EveryChangeIsATransition(t *testing.T) {
	h := newFixture(t, fast)
	a := h.agent(Options{})
	a.Script(Offer, Busy(nil), Say(500, nil))
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	h.cancel(id)
	h.ends(id, signalbox.ReasonCancelled)
	next := map[signalbox.State]map[signalbox.EventKind]signalbox.State{
		"":                    {signalbox.EventSubmit: signalbox.Pending},
		signalbox.Pending:     {signalbox.EventClaim: signalbox.Dispatching},
		signalbox.Dispatching: {signalbox.EventBusy: signalbox.Pending, signalbox.EventRefuse: signalbox.Pending, signalbox.EventAccept: signalbox.Working},
		signalbox.Working:     {signalbox.EventCancel: signalbox.Cancelling},
		signalbox.Cancelling:  {signalbox.EventFinish: signalbox.Cancelled},
	}
	var state signalbox.State
	steps := 0
	for _, e := range h.journal() {
		if e.QueueID != id {
			continue
		}
		if want := next[state][e.Kind]; want != e.State {
			t.Errorf("%s in state %q led to %q, want %q", e.Kind, state, e.State, want)
		}
		state = e.State
		steps++
	}
	if steps != 9 {
		t.Errorf("%d steps in the journal, want 9", steps)
	}
}

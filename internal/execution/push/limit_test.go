package push_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// limited is the end of a run at a limit of its provider that resets at that time; zero: unknown.
func limited(resets time.Time) End {
	l := &api.AgentLimit{Window: "five_hour", Source: "event", Text: "5-hour limit reached", Began: true}
	if !resets.IsZero() {
		l.ResetsAt = &resets
	}
	return End{State: "failed", Error: &api.AgentError{Type: "usage_limit", Message: "limit reached"}, Limit: l}
}

func (h *fixture) account(name string) signalbox.Account {
	h.t.Helper()
	all, err := h.engine.Accounts(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	return signalbox.Account{}
}

func (h *fixture) untilAccount(name string, s signalbox.AccountState) {
	h.t.Helper()
	h.await("account "+name+" is "+string(s), func() bool { return h.account(name).State == s })
}

// untilTold waits until the agents have reported their account.
func (h *fixture) untilTold(agents ...string) {
	h.t.Helper()
	for _, name := range agents {
		h.untilUp(name)
		h.await(name+" has told of its account", func() bool { return h.live(name).Account != "" && h.account(h.live(name).Account).Name != "" })
	}
}

func (h *fixture) change(ev signalbox.AccountEvent) {
	h.t.Helper()
	if _, _, err := h.engine.SetAccount(h.t.Context(), ev); err != nil {
		h.t.Fatal(err)
	}
}

func started(agents ...*Agent) (n int) {
	for _, a := range agents {
		n += len(a.Executions())
	}
	return n
}

// A run that meets a limit is parked, and its account is closed for all agents that spend it. When the limit
// has reset, one run goes first, in its conversation; the others follow once the provider has answered it.
func TestALimitClosesTheAccountOfAllItsAgents(t *testing.T) {
	h := newFixture(t)
	a, b := h.agent(Options{Name: "a", Account: "shared"}), h.agent(Options{Name: "b", Account: "shared"})
	other := h.agent(Options{Name: "other", Account: "another", Auto: true})
	h.start()
	h.untilTold("a", "b", "other")
	first := h.submit(engine.NewTask{Agent: "a"})
	a.AwaitStart(1)
	h.untilState(first, signalbox.Working)
	reset := h.clock.now().Add(time.Hour)
	a.Finish(a.AwaitStart(1).TaskID, limited(reset))
	parked := h.untilState(first, signalbox.Parked)
	if p := parked.Parking; parked.Attempts != 0 || p.Kind != signalbox.GateAccount || p.Name != "shared" || p.Count != 1 || !p.Began || parked.Queue != "agent:a" {
		t.Errorf("parked as %+v of %+v", p, parked)
	}
	closed := h.account("shared")
	if closed.State != signalbox.AccountClosed || closed.Until.Before(reset) || closed.Until.After(reset.Add(2*time.Second)) || closed.Window != "five_hour" {
		t.Fatalf("the account is %+v, the limit resets %s", closed, reset)
	}
	behind := []string{h.submit(engine.NewTask{Agent: "a"}), h.submit(engine.NewTask{Agent: "b"}), h.submit(engine.NewTask{Agent: "b"})}
	h.ends(h.submit(engine.NewTask{Agent: "other"}), signalbox.ReasonCompleted)
	w, err := h.engine.Why(t.Context(), behind[1])
	if err != nil || !strings.Contains(w.Summary, "Account shared is closed until "+closed.Until.Format(time.RFC3339)) {
		t.Errorf("why: %q, %v", w.Summary, err)
	}
	if n := started(a, b); n != 1 {
		t.Fatalf("%d runs were started at a closed account", n-1)
	}
	if err := h.engine.Pause(t.Context(), "agent:b", "", "me", time.Time{}); err != nil { // otherwise its tasks may go first
		t.Fatal(err)
	}
	h.clock.jumpWall(time.Hour + 3*time.Second)
	h.untilAccount("shared", signalbox.AccountTrying)
	h.await("one run goes first", func() bool { return started(a, b) == 2 })
	h.untilState(first, signalbox.Working)
	if err := h.engine.Resume(t.Context(), "agent:b", "me"); err != nil {
		t.Fatal(err)
	}
	if got := a.Executions()[1]; got.QueueID != first || got.Resume == nil || !got.Resume.Began || got.Session != a.Executions()[0].Answered {
		t.Errorf("the run that goes first is %+v of %s, after %+v", got, first, a.Executions()[0])
	}
	for _, id := range behind {
		if s := h.task(id).State; s != signalbox.Pending {
			t.Errorf("%s is %s while the account is being tried", id, s)
		}
	}
	a.ProviderAnswers()
	h.untilAccount("shared", signalbox.AccountOpen)
	b.AwaitStart(1)
	for i := range 2 {
		b.Finish(b.AwaitStart(i+1).TaskID, End{})
	}
	a.Finish(a.Executions()[1].TaskID, End{})
	h.ends(first, signalbox.ReasonCompleted)
	a.Finish(a.AwaitStart(3).TaskID, End{})
	for _, id := range behind {
		if task := h.ends(id, signalbox.ReasonCompleted); task.Parking != nil {
			t.Errorf("%s was parked: %+v", id, task.Parking)
		}
	}
	if len(other.Executions()) != 1 {
		t.Errorf("the agent of another account ran %d tasks", len(other.Executions()))
	}
}

// A probe that meets the limit again closes the account again; if no reset is reported, for longer each time.
func TestAProbeMeetsTheLimitAgain(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Account: "shared", Slots: 2})
	h.start()
	h.untilTold("a")
	id := h.submit(engine.NewTask{Agent: "a"})
	for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		a.Finish(a.AwaitStart(i+1).TaskID, limited(time.Time{}))
		h.until(id, "parked again", func(t signalbox.Task) bool { return t.State == signalbox.Parked && t.Parking.Count == i+1 })
		got := h.account("shared")
		if wait := got.Until.Sub(got.Since); wait < want || wait > want+2*time.Second || got.State != signalbox.AccountClosed {
			t.Errorf("limit %d closes it for %s (%s), want %s", i+1, wait, got.State, want)
		}
		h.clock.jumpWall(want + 3*time.Second)
	}
	a.Finish(a.AwaitStart(4).TaskID, End{})
	if task := h.ends(id, signalbox.ReasonCompleted); task.Attempts != 0 || task.Parking.Count != 3 {
		t.Errorf("ended as %+v", task)
	}
	h.untilAccount("shared", signalbox.AccountOpen) // by the end of the probe, although the provider's answer was not reported
}

// A director that dies while an account is closed loses nothing: the next one starts the probe.
func TestARestartAtAClosedAccount(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Account: "shared"})
	h.start()
	h.untilTold("a")
	first, second := h.submit(engine.NewTask{Agent: "a"}), h.submit(engine.NewTask{Agent: "a"})
	a.Finish(a.AwaitStart(1).TaskID, limited(h.clock.now().Add(time.Hour)))
	h.untilState(first, signalbox.Parked)
	h.restart()
	h.untilTold("a")
	if n := started(a); n != 1 {
		t.Errorf("%d runs were started at a closed account", n-1)
	}
	h.clock.jumpWall(time.Hour + 3*time.Second)
	if got := a.AwaitStart(2); got.QueueID != first {
		t.Errorf("%s goes first, want %s", got.QueueID, first)
	}
	h.untilState(first, signalbox.Working)
	h.restart() // during the probe
	a.Finish(a.AwaitStart(2).TaskID, End{})
	h.ends(first, signalbox.ReasonCompleted)
	a.Finish(a.AwaitStart(3).TaskID, End{})
	h.ends(second, signalbox.ReasonCompleted)
}

// An overloaded provider closes no account: only the run waits for a short while.
func TestOverloadParksTheRunAlone(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Account: "shared"})
	h.start()
	h.untilTold("a")
	first, second := h.submit(engine.NewTask{Agent: "a"}), h.submit(engine.NewTask{Agent: "a"})
	a.Finish(a.AwaitStart(1).TaskID, End{State: "failed", Error: &api.AgentError{Type: "overloaded", Message: "529"}, Limit: &api.AgentLimit{Source: "event", Text: "529 overloaded_error"}})
	if p := h.untilState(first, signalbox.Parked).Parking; p.Kind != signalbox.GateTime || p.Until.IsZero() || p.Began {
		t.Errorf("parked as %+v", p)
	}
	a.Finish(a.AwaitStart(2).TaskID, End{})
	h.ends(second, signalbox.ReasonCompleted)
	h.clock.jumpWall(20 * time.Second)
	a.Finish(a.AwaitStart(3).TaskID, End{})
	h.ends(first, signalbox.ReasonCompleted)
}

// A refused login waits for a person, who opens the account; tasks that wait at it can be cancelled.
func TestARefusedLoginWaitsForAPerson(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Account: "shared"})
	h.start()
	h.untilTold("a")
	first, second := h.submit(engine.NewTask{Agent: "a"}), h.submit(engine.NewTask{Agent: "a"})
	a.Finish(a.AwaitStart(1).TaskID, End{State: "failed", Error: &api.AgentError{Type: "login_refused", Message: "401"}, Limit: &api.AgentLimit{Source: "event", Text: "OAuth token has expired"}})
	h.untilState(first, signalbox.Parked)
	h.untilAccount("shared", signalbox.AccountSignedOut)
	h.clock.jumpWall(10 * 24 * time.Hour)
	if ended := h.cancel(first); ended.State != signalbox.Cancelled {
		t.Errorf("cancelled, it is %s", ended.State)
	}
	h.change(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "shared", Source: "tester"})
	a.Finish(a.AwaitStart(2).TaskID, End{})
	h.ends(second, signalbox.ReasonCompleted)
}

// A person can close an account for any time: the answer of a run in flight does not open it.
func TestAPersonClosesAnAccount(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Account: "shared"})
	h.start()
	h.untilTold("a")
	first := h.submit(engine.NewTask{Agent: "a"})
	a.AwaitStart(1)
	h.change(signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "shared", Source: "tester", Reason: "the release"})
	a.ProviderAnswers()
	second := h.submit(engine.NewTask{Agent: "a"})
	a.Finish(a.AwaitStart(1).TaskID, End{})
	h.ends(first, signalbox.ReasonCompleted)
	if s := h.account("shared").State; s != signalbox.AccountClosed || started(a) != 1 {
		t.Errorf("the account is %s, %d runs", s, started(a))
	}
	h.change(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "shared", Source: "tester"})
	a.Finish(a.AwaitStart(2).TaskID, End{})
	h.ends(second, signalbox.ReasonCompleted)
}

// An isolated run has no conversation to continue: it ends with the reason; its account is closed all the
// same.
func TestAnIsolatedRunAtALimitEnds(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Account: "shared", Isolated: 1})
	h.start()
	h.untilTold("a")
	id := h.submit(engine.NewTask{Agent: "a", Mode: signalbox.ModeBypass})
	a.Finish(a.AwaitStart(1).TaskID, limited(h.clock.now().Add(time.Hour)))
	h.ends(id, signalbox.ReasonAgentError)
	h.untilAccount("shared", signalbox.AccountClosed)
}

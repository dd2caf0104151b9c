package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

func (b *fixture) why(id string) engine.Why {
	b.t.Helper()
	w, err := b.Why(b.t.Context(), id)
	b.must(err)
	return w
}

// gate returns the gate of that name, and fails unless it has the wanted state and its text contains says.
func (b *fixture) gate(id, name string, open bool, says string) engine.Gate {
	b.t.Helper()
	w := b.why(id)
	names := []string{}
	for _, g := range w.Gates {
		names = append(names, g.Name)
		if g.Name != name {
			continue
		}
		if g.OK != open || !strings.Contains(g.Text+" "+g.Detail, says) {
			b.t.Errorf("%+v, want open=%v and %q", g, open, says)
		}
		return g
	}
	b.t.Fatalf("no gate %s among %v", name, names)
	return engine.Gate{}
}

func TestWhyGatesInOrder(t *testing.T) {
	b := newFixture(t)
	id := b.submit(engine.NewTask{}).ID
	w := b.why(id)
	var names []string
	for _, g := range w.Gates {
		names = append(names, g.Name)
	}
	if got := strings.Join(names, " "); got != "due queue_open session_free agent_connected agent_free position" {
		t.Errorf("%s", got)
	}
	_, err := b.Why(t.Context(), "queue-00000000000000000000000000")
	wantCode(t, err, signalbox.CodeNotFound, "")
}

func TestWhyDue(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{NotBefore: b.Now().Add(time.Hour)}).ID
	if g := b.gate(id, "due", false, "1h0m0s"); g.Cure == "" {
		t.Error("no cure")
	}
	b.pass(time.Hour)
	b.gate(id, "due", true, "Task is due")
	_, _, err := b.Wake(t.Context())
	b.must(err)
	_, err = b.Refuse(t.Context(), b.claim(a).Task, "connection refused")
	b.must(err)
	b.gate(id, "due", false, "attempt 1 of 3 failed: connection refused")
}

func TestWhyPaused(t *testing.T) {
	b := newFixture(t)
	id := b.submit(engine.NewTask{}).ID
	b.gate(id, "queue_open", true, "not paused")
	b.must(b.Pause(t.Context(), "pool:claude", "", "me", time.Time{}))
	b.gate(id, "queue_open", true, "not paused")
	b.must(b.Pause(t.Context(), "work", "upgrade", "me", time.Time{}))
	b.pass(time.Minute)
	if g := b.gate(id, "queue_open", false, "by me for 1m0s"); g.Cure != "signalbox resume work" || g.Detail != "upgrade" {
		t.Errorf("%+v", g)
	}
	b.must(b.Resume(t.Context(), "work", "me"))
	b.must(b.Pause(t.Context(), "", "", "", time.Time{}))
	if g := b.gate(id, "queue_open", false, "every queue"); g.Cure != "signalbox resume" {
		t.Errorf("%+v", g)
	}
}

// An agent whose own queue is paused claims from no queue, and tasks that it could have claimed say so, with
// the cure.
func TestWhyDrained(t *testing.T) {
	b := newFixture(t)
	b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{}).ID
	b.must(b.Pause(t.Context(), "agent:coder", "upgrade", "ann", time.Time{}))
	b.pass(time.Minute)
	g := b.gate(id, "agent_free", false, "coder is paused by ann for 1m0s (upgrade): it takes from no queue")
	if g.Cure != "signalbox resume agent:coder" {
		t.Errorf("%+v", g)
	}
	b.gate(id, "queue_open", true, "not paused")
	b.gate(b.submit(engine.NewTask{Agent: "coder"}).ID, "queue_open", false, "agent:coder, by ann")
	if s := b.why(id).Summary; s != "It waits: "+g.Text+"." {
		t.Errorf("%s", s)
	}

	other := b.agent("other", "demo", 1)
	b.gate(id, "agent_free", true, "Agent other is free")
	b.see(engine.LiveAgent{Agent: other, Up: true, InUse: 1})
	b.gate(id, "agent_free", false, "coder is paused by ann") // besides other reasons
	b.must(b.Pause(t.Context(), "agent:other", "", "", b.Now().Add(time.Minute)))
	g = b.gate(id, "agent_free", false, "coder is paused by ann for 1m0s (upgrade); other is paused by someone for 0s")
	if g.Text != "All 2 connected agents are paused: they take from no queue" || g.Cure != "signalbox resume agent:coder" {
		t.Errorf("%+v", g)
	}
	b.pass(time.Minute) // the pause of other is over, although its row still exists
	b.gate(id, "agent_free", false, "no free slot")
	b.see(engine.LiveAgent{Agent: other, Up: true})
	b.gate(id, "agent_free", true, "Agent other is free")
	b.must(b.Resume(t.Context(), "agent:coder", "ann"))
	b.see(engine.LiveAgent{Agent: other})
	b.gate(id, "agent_free", true, "Agent coder is free")
}

// The bypass has its own queue, which a drain does not affect.
func TestWhyDrainLeavesTheBypassAlone(t *testing.T) {
	b := newFixture(t)
	b.talker("coder", 1)
	n := chat("coder", "beside the queue")
	n.Mode = signalbox.ModeBypass
	b.must(b.Pause(t.Context(), "agent:coder", "", "ann", time.Time{}))
	id := b.submit(n).ID
	b.gate(id, "agent_free", true, "Agent coder is free")
}

func TestWhySession(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 2)
	first := b.submit(engine.NewTask{SessionID: "s"}).ID
	second := b.submit(engine.NewTask{SessionID: "s"}).ID
	b.gate(first, "session_free", true, "")
	if g := b.gate(second, "session_free", false, first); g.TaskID != first || !strings.Contains(g.Cure, first) {
		t.Errorf("%+v", g)
	}
	task := b.work(a)
	b.gate(second, "session_free", false, "working")
	b.finish(task, signalbox.ReasonCompleted)
	b.gate(second, "session_free", true, "")
	b.gate(b.submit(engine.NewTask{}).ID, "session_free", true, "no session")
}

func TestWhyAgents(t *testing.T) {
	b := newFixture(t)
	id := b.submit(engine.NewTask{Kind: "claude"}).ID
	if g := b.gate(id, "agent_connected", false, "No agent serves pool:claude"); g.Cure == "" {
		t.Error("no cure")
	}
	b.gate(id, "agent_free", false, "No connected agent")
	b.agent("demo-1", "demo", 1) // serves another pool
	b.gate(id, "agent_connected", false, "No agent serves")
	a := b.agent("coder", "claude", 1)
	b.gate(id, "agent_connected", true, "1 of 1 agents")
	b.gate(id, "agent_free", true, "Agent coder is free")
	b.see(engine.LiveAgent{Agent: a, Message: "connection refused"})
	if g := b.gate(id, "agent_connected", false, "coder (connection refused)"); g.Cure == "" {
		t.Error("no cure")
	}
	b.see(engine.LiveAgent{Agent: a, Up: true, Held: true, Message: "said busy"})
	if g := b.gate(id, "agent_free", false, "coder: said busy"); g.Text != "Offers are withheld" || g.Cure == "" {
		t.Errorf("%+v", g)
	}
	b.see(engine.LiveAgent{Agent: a, Up: true})
	other := b.submit(engine.NewTask{Kind: "claude"}).ID
	b.work(a)
	b.see(engine.LiveAgent{Agent: a, Up: true, InUse: 1})
	b.pass(3 * time.Minute)
	if g := b.gate(other, "agent_free", false, "coder has been running "+id+" for 3m0s"); g.TaskID != id || g.Agent != "coder" || !strings.Contains(g.Cure, id) {
		t.Errorf("%+v", g)
	}
	b.agent("coder-2", "claude", 1)
	b.see(engine.LiveAgent{Agent: signalbox.Agent{Name: "coder-2", Kind: "claude", Slots: 1}, Up: true, InUse: 1})
	b.gate(other, "agent_free", false, "All 2 connected agents are busy")
	named := b.submit(engine.NewTask{Agent: "coder"}).ID
	if g := b.gate(named, "agent_connected", true, "Agent coder is connected"); g.Agent != "coder" {
		t.Errorf("%+v", g)
	}
}

func TestWhyPosition(t *testing.T) {
	b := newFixture(t)
	first, second := b.submit(engine.NewTask{}).ID, b.submit(engine.NewTask{}).ID
	b.gate(first, "position", true, "next to be taken")
	if g := b.gate(second, "position", false, "1 task is before it"); g.Cure == "" {
		t.Error("no cure")
	}
	if s := b.why(first).Summary; !strings.HasPrefix(s, "It waits: No agent serves work") {
		t.Errorf("%s", s)
	}
	b.agent("coder", "demo", 1)
	if s := b.why(first).Summary; s != "It starts at once." {
		t.Errorf("%s", s)
	}
}

func TestWhyOfATaskThatNoLongerWaits(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{}).ID
	task := b.claim(a).Task
	says := func(want string) {
		t.Helper()
		if w := b.why(id); len(w.Gates) != 0 || !strings.Contains(w.Summary, want) {
			t.Errorf("%q, want %q", w.Summary, want)
		}
	}
	says("handed to agent coder")
	task, err := b.Accept(t.Context(), task, "t", "")
	b.must(err)
	says("running on agent coder for 0s.")
	_, err = b.Cancel(t.Context(), id, "")
	b.must(err)
	says("signalbox release coder")
	b.finish(task, signalbox.ReasonCancelled)
	says("It has ended: cancelled")
}

// Regression: a task of a disconnected agent was only said to be running.
func TestWhySaysThatTheAgentOfARunningTaskIsGone(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{}).ID
	b.work(a)
	b.see(engine.LiveAgent{Agent: a, Message: "connection refused", InUse: 1})
	const gone = "the agent is not connected (connection refused)"
	if s := b.why(id).Summary; !strings.Contains(s, "running on agent coder") || !strings.Contains(s, gone) {
		t.Errorf("%s", s)
	}
	_, err := b.Cancel(t.Context(), id, "")
	b.must(err)
	if s := b.why(id).Summary; !strings.Contains(s, "has not confirmed") || !strings.Contains(s, gone) {
		t.Errorf("%s", s)
	}
}

// An estimate needs five runs; it is a range of whole rounds before the task.
func TestETA(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	eta := func(id string) *engine.ETA { return b.why(id).ETA }
	for i := range 5 {
		id := b.submit(engine.NewTask{}).ID
		if got := eta(id); got != nil {
			t.Errorf("an estimate from %d runs: %+v", i, got)
		}
		b.run(a, time.Duration(i+1)*time.Minute)
		b.pass(2 * time.Second) // stats are cached for a second
	}
	b.see(engine.LiveAgent{Agent: a, Up: true, InUse: 1})
	b.pass(2 * time.Second)
	first, second := b.submit(engine.NewTask{}).ID, b.submit(engine.NewTask{}).ID
	// The quartiles of 1 to 5 minutes are 2 and 4.
	if got := eta(first); got == nil || got.Low != 0 || got.High != 4*time.Minute || got.Runs != 5 {
		t.Errorf("%+v", got)
	}
	if got := eta(second); got == nil || got.Low != 2*time.Minute || got.High != 8*time.Minute {
		t.Errorf("%+v", got)
	}
	due := b.submit(engine.NewTask{NotBefore: b.Now().Add(time.Hour)}).ID
	if got := eta(due); got == nil || got.Low != time.Hour || got.High != time.Hour {
		t.Errorf("%+v", got)
	}
	b.see(engine.LiveAgent{Agent: a, Up: true})
	b.pass(2 * time.Second)
	if got := eta(first); got == nil || got.High != 0 {
		t.Errorf("beside a free slot: %+v", got)
	}
	b.see(engine.LiveAgent{Agent: a})
	b.pass(2 * time.Second)
	if got := eta(first); got != nil {
		t.Errorf("with the agent gone: %+v", got)
	}
	a.Account = "team"
	b.see(engine.LiveAgent{Agent: a, Up: true})
	for kind, there := range map[signalbox.AccountEventKind]bool{signalbox.AccountClosedByPerson: false, signalbox.AccountOpened: true} {
		if _, err := b.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: kind, Account: "team"}); err != nil {
			t.Fatal(err)
		}
		b.pass(2 * time.Second)
		if w := b.why(first); (w.ETA != nil) != there || there == strings.Contains(w.NoETA, "account") {
			t.Errorf("after %s of its account: %+v, %q", kind, w.ETA, w.NoETA)
		}
	}
}

// Regression: the 16th task of a queue got "in about 14–19 s" while the run before it had taken minutes
// instead of a second. An estimate from usual times says nothing about a run that has outlasted them.
func TestNoETAWhileARunHasOutlastedItsUsualTime(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	for range 5 {
		b.submit(engine.NewTask{})
		b.run(a, 10*time.Second)
	}
	b.submit(engine.NewTask{})
	running := b.work(a)
	b.see(engine.LiveAgent{Agent: a, Up: true, InUse: 1})
	waiting := b.submit(engine.NewTask{}).ID
	b.pass(9 * time.Second)
	if got := b.why(waiting); got.ETA == nil || got.NoETA != "" {
		t.Errorf("within its usual time: %+v", got)
	}
	b.pass(2 * time.Second)
	if got := b.why(waiting); got.ETA != nil || got.NoETA != "what runs now has outlasted its usual time" {
		t.Errorf("an estimate beside %s, which has outlasted its usual time: %+v, %q", running.ID, got.ETA, got.NoETA)
	}
	other := b.agent("writer", "demo", 1)
	b.see(engine.LiveAgent{Agent: other, Up: true, InUse: 1})
	b.pass(2 * time.Second)
	if got := b.why(waiting); got.ETA == nil {
		t.Errorf("another agent can take it: %q", got.NoETA)
	}
}

// Regression: an estimate was shown for tasks of a paused queue, which are not started.
func TestNoETAWhilePaused(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	for range 5 {
		b.submit(engine.NewTask{})
		b.run(a, time.Minute)
	}
	id := b.submit(engine.NewTask{}).ID
	for _, queue := range []string{"work", ""} {
		b.must(b.Pause(t.Context(), queue, "", "me", time.Time{}))
		b.pass(2 * time.Second) // stats are cached for a second
		if got := b.why(id).ETA; got != nil {
			t.Errorf("with %q paused: %+v", queue, got)
		}
		b.must(b.Resume(t.Context(), queue, "me"))
		b.pass(2 * time.Second)
		if b.why(id).ETA == nil {
			t.Errorf("no estimate after %q was resumed", queue)
		}
	}
}

// A drained agent starts nothing: if all are drained there is no estimate, else its slots and runs are
// ignored.
func TestNoETAFromDrainedAgents(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	for range 5 {
		b.submit(engine.NewTask{})
		b.run(a, time.Minute)
	}
	id := b.submit(engine.NewTask{}).ID
	b.must(b.Pause(t.Context(), "agent:coder", "", "ann", b.Now().Add(time.Hour)))
	b.pass(2 * time.Second) // stats are cached for a second
	if got := b.why(id).ETA; got != nil {
		t.Errorf("with its only agent drained: %+v", got)
	}
	b.agent("other", "demo", 1) // no run of it is known
	b.pass(2 * time.Second)
	if got := b.why(id).ETA; got != nil {
		t.Errorf("from the runs of a drained agent: %+v", got)
	}
	b.pass(time.Hour)
	if b.why(id).ETA == nil {
		t.Error("no estimate after the pause was over")
	}
}

// A new engine computes its estimates from the store.
func TestETASurvivesARestart(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	for range 6 {
		b.submit(engine.NewTask{})
		b.run(a, time.Minute)
	}
	next := engine.New(b.store, engine.Options{Sealer: newSealer(t), Now: b.clock})
	next.SetLive(b)
	r, err := next.Submit(t.Context(), engine.NewTask{Prompt: "p"})
	b.must(err)
	if r.ETA == nil || r.ETA.Runs != 6 {
		t.Errorf("%+v", r.ETA)
	}
}

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// talker adds an agent that keeps its conversations and runs isolated tasks.
func (b *fixture) talker(name string, slots int) signalbox.Agent {
	a := b.agent(name, "claude", slots)
	b.see(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	return a
}

func chat(agent, prompt string) engine.NewTask {
	return engine.NewTask{Prompt: prompt, Agent: agent, Mode: signalbox.ModeChat, Source: signalbox.SourceUser}
}

func (b *fixture) refusedAs(code signalbox.Code, n engine.NewTask) error {
	b.t.Helper()
	got, err := b.Submit(b.t.Context(), n)
	if signalbox.CodeOf(err) != code {
		b.t.Fatalf("submit gave %+v, %v; want %s", got.Task, err, code)
	}
	return err
}

func TestChatReceiptTellsItsPosition(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	first := b.submit(chat("coder", "one"))
	if got := first.QueueStatus(); got != "running" || first.Limit != "chat:coder" || first.Queue != "agent:coder" {
		t.Fatalf("the first chat is %q under %s in %s", got, first.Limit, first.Queue)
	}
	b.work(a)
	for _, want := range []string{"queued:1", "queued:2", "queued:3"} {
		if c := b.submit(chat("coder", want)); c.QueueStatus() != want {
			t.Errorf("got %q, want %q", c.QueueStatus(), want)
		}
	}
	err := b.refusedAs(signalbox.CodeQueueFull, chat("coder", "one too many"))
	if want := "Agent 'coder' is busy with 3 queued requests. Please try again later."; err.Error() != want {
		t.Errorf("the refusal says %q, want %q", err, want)
	}
}

func TestOverflowPolicies(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	reject := chat("coder", "now or never")
	reject.Overflow = signalbox.OverflowReject
	b.submit(reject)
	b.work(a)
	b.refusedAs(signalbox.CodeAgentBusy, reject)

	wait := b.submit(chat("coder", "for a while"))
	if got := wait.WaitUntil.Sub(wait.CreatedAt); got != engine.DefaultWaitTimeout {
		t.Errorf("a chat waits %s, want %s", got, engine.DefaultWaitTimeout)
	}
	for range engine.DefaultMaxChats - 1 {
		b.submit(chat("coder", "fills the line"))
	}
	persist := chat("coder", "for as long as it takes")
	persist.Overflow = signalbox.OverflowPersist
	kept := b.submit(persist)
	if kept.Limit != signalbox.LimitWork || !kept.WaitUntil.IsZero() || kept.Mode != signalbox.ModeChat {
		t.Errorf("the backlog holds %s until %v under %s", kept.ID, kept.WaitUntil, kept.Limit)
	}

	b.pass(engine.DefaultWaitTimeout + time.Second)
	n, err := b.EndOverdue(t.Context())
	b.must(err)
	if n != engine.DefaultMaxChats {
		t.Errorf("%d chats ended, want %d: those of the line, not that of the backlog", n, engine.DefaultMaxChats)
	}
	if row := b.task(wait.ID); row.State != signalbox.Timeout || row.Reason != signalbox.ReasonWaitTimeout {
		t.Errorf("the chat that waited ended %s (%s)", row.State, row.Reason)
	}
}

func TestOverflowRejectChecksAllAgents(t *testing.T) {
	b := newFixture(t)
	one := b.agent("one", "claude", 1)
	n := engine.NewTask{Prompt: "x", Overflow: signalbox.OverflowReject}
	b.submit(n)
	b.refusedAs(signalbox.CodeAgentBusy, n) // the first task waits for the only slot
	b.work(one)
	b.refusedAs(signalbox.CodeAgentBusy, n)
	b.agent("two", "codex", 1)
	b.submit(n)
}

// A call that needs a drained agent at once is refused with the reason, and the receipt of one that may wait
// says that it waits.
func TestChatsWithADrainedAgent(t *testing.T) {
	b := newFixture(t)
	b.talker("coder", 1)
	b.must(b.Pause(t.Context(), "agent:coder", "", "ann", time.Time{}))
	now := chat("coder", "now or never")
	now.Overflow = signalbox.OverflowReject
	anybody := engine.NewTask{Prompt: "x", Overflow: signalbox.OverflowReject}
	for _, n := range []engine.NewTask{now, anybody} {
		err := b.refusedAs(signalbox.CodeAgentBusy, n)
		for _, part := range []string{"agent coder is paused and takes from no queue", "signalbox resume agent:coder", "0 waiting"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
	if c := b.submit(chat("coder", "later")); c.QueueStatus() != "queued:1" {
		t.Errorf("a chat that waits is %q", c.QueueStatus())
	}
	b.talker("other", 1)
	b.submit(anybody) // it can start there
	b.must(b.Resume(t.Context(), "agent:coder", "ann"))
	b.claim(b.agent("coder", "claude", 1))
}

func TestChatWithADisconnectedAgent(t *testing.T) {
	b := newFixture(t)
	b.refusedAs(signalbox.CodeNotFound, chat("nobody", "hello"))
	a := b.talker("coder", 1)
	b.see(engine.LiveAgent{Agent: a, Message: "connection refused"})
	err := b.refusedAs(signalbox.CodeAgentDown, chat("coder", "hello"))
	if !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("the refusal names neither cause nor cure: %v", err)
	}
	late := chat("coder", "later")
	late.Overflow = signalbox.OverflowPersist
	b.submit(late)
}

func TestChatContinuesTheCurrentSession(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	first := b.submit(chat("coder", "my name is One"))
	if first.SessionID == "" {
		t.Fatal("a chat has no session")
	}
	second := b.submit(chat("coder", "who am I"))
	if second.SessionID != first.SessionID || second.Ready {
		t.Errorf("the second chat is in %s (ready %v), the first in %s", second.SessionID, second.Ready, first.SessionID)
	}
	fresh := chat("coder", "begin anew")
	fresh.NewSession = true
	third := b.submit(fresh)
	if third.SessionID == first.SessionID {
		t.Error("new_session went on with the old one")
	}
	if current, err := b.CurrentSession(t.Context(), "coder"); err != nil || current != third.SessionID {
		t.Errorf("the current session is %q, %v; want %q", current, err, third.SessionID)
	}
	b.talker("other", 1)
	if c := b.submit(chat("other", "hello")); c.SessionID == third.SessionID {
		t.Error("two agents share a conversation")
	}

	run := b.work(a)
	_, err := b.ArchiveSession(t.Context(), run.SessionID, "someone")
	if signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("a session with a turn under way was archived: %v", err)
	}
}

func TestArchiveAndRestore(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	b.submit(chat("coder", "hello"))
	run := b.work(a)
	b.finish(run, signalbox.ReasonCompleted)
	s, err := b.ArchiveSession(t.Context(), run.SessionID, "someone")
	b.must(err)
	if s.State != signalbox.SessionArchived || s.Current || s.Turns != 1 || s.Title != "hello" || s.Source != signalbox.SourceUser {
		t.Errorf("archived: %+v", s)
	}
	named := chat("coder", "again")
	named.SessionID = s.ID
	b.refusedAs(signalbox.CodeConflict, named)
	if c := b.submit(chat("coder", "again")); c.SessionID == s.ID {
		t.Error("a chat went on with an archived session")
	}
	s, err = b.RestoreSession(t.Context(), s.ID, "someone")
	b.must(err)
	if current, _ := b.CurrentSession(t.Context(), "coder"); current != s.ID {
		t.Errorf("the current session is %s after %s was restored", current, s.ID)
	}
}

func TestSessionsAreReconciledWithTheAgent(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	b.submit(chat("coder", "hello"))
	run := b.work(a)
	b.finish(run, signalbox.ReasonCompleted)
	found := signalbox.Session{ID: "begun-by-hand", LastUsed: b.clock()}
	later := b.clock().Add(time.Second)
	b.must(b.ReconcileSessions(t.Context(), "coder", nil, b.clock()))
	if s, err := b.Read().Session(t.Context(), run.SessionID); err != nil || s.State != signalbox.SessionActive {
		t.Errorf("a session that was used since the agent was asked is %s, %v", s.State, err)
	}
	b.must(b.ReconcileSessions(t.Context(), "coder", []signalbox.Session{found}, later))

	old, err := b.Read().Session(t.Context(), run.SessionID)
	b.must(err)
	if old.State != signalbox.SessionGone || old.Current {
		t.Errorf("a session that the agent lost is %s, current %v", old.State, old.Current)
	}
	adopted, err := b.Read().Session(t.Context(), "begun-by-hand")
	b.must(err)
	if adopted.Agent != "coder" || adopted.State != signalbox.SessionActive {
		t.Errorf("a session that the agent has is %+v", adopted)
	}
	gone := chat("coder", "go on")
	gone.SessionID = run.SessionID
	b.refusedAs(signalbox.CodeConflict, gone)
	if c := b.submit(chat("coder", "go on")); c.SessionID == run.SessionID {
		t.Error("a chat went on with a conversation that is gone")
	}
	b.must(b.ReconcileSessions(t.Context(), "coder", []signalbox.Session{found, {ID: run.SessionID}}, later))
	if old, _ = b.Read().Session(t.Context(), run.SessionID); old.State != signalbox.SessionActive {
		t.Errorf("a session that came back is %s", old.State)
	}
}

func bypass(agent string) engine.NewTask {
	return engine.NewTask{Prompt: "aside", Agent: agent, Mode: signalbox.ModeBypass, Source: signalbox.SourceUser}
}

func TestBypassHasItsOwnCap(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	b.submit(chat("coder", "holds the slot"))
	b.work(a)
	for range 2 {
		n := b.submit(bypass("coder"))
		if n.Queue != "bypass:coder" || n.QueueStatus() != "running" {
			t.Errorf("a bypass task is %q in %s", n.QueueStatus(), n.Queue)
		}
		c, found, err := b.ClaimBypass(t.Context(), a, 2, 0)
		if err != nil || !found || !signalbox.Isolated(c.Task.Slot) {
			t.Fatalf("claimed %v in slot %d: %v", found, c.Task.Slot, err)
		}
		if c.Request.TimeoutSeconds != engine.DefaultBypassTimeout {
			t.Errorf("its run is limited to %d s", c.Request.TimeoutSeconds)
		}
	}
	b.refusedAs(signalbox.CodeAgentBusy, bypass("coder"))
	plain := b.agent("plain", "codex", 1)
	b.refusedAs(signalbox.CodeUnsupported, bypass(plain.Name))

	lane, err := b.Lane(t.Context(), "coder")
	b.must(err)
	if !lane.Busy() || len(lane.Running) != 1 || len(lane.Isolated) != 2 {
		t.Errorf("the lane runs %d and %d isolated", len(lane.Running), len(lane.Isolated))
	}
}

// A withheld bypass slot of a silent agent does not take a normal slot.
func TestLostBypassTaskLeavesTheLaneFree(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	lose := func(c engine.Claimed) {
		t.Helper()
		_, err := b.Lose(t.Context(), c.Task, signalbox.ReasonLost, "silent", true, nil)
		b.must(err)
	}
	busy := func() bool {
		t.Helper()
		lane, err := b.Lane(t.Context(), "coder")
		b.must(err)
		return lane.Busy()
	}
	b.submit(bypass("coder"))
	c, _, err := b.ClaimBypass(t.Context(), a, 2, 0)
	b.must(err)
	if lose(c); busy() {
		t.Error("the lane is busy with a slot of the bypass")
	}
	b.submit(chat("coder", "hello"))
	if lose(b.claim(a)); !busy() {
		t.Error("the lane is free though its only slot is withheld")
	}
}

func TestSourcePriorityIsAnOption(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) {
		o.SourcePriority = map[signalbox.Source]int{signalbox.SourceUser: 2, signalbox.SourceScheduler: 1}
	})
	user := b.submit(engine.NewTask{Prompt: "x", Source: signalbox.SourceUser})
	job := b.submit(engine.NewTask{Prompt: "x", Source: signalbox.SourceScheduler})
	given := b.submit(engine.NewTask{Prompt: "x", Source: signalbox.SourceUser, Priority: -3})
	agent := b.submit(engine.NewTask{Prompt: "x", Source: signalbox.SourceUser, By: signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: "a"}})
	for _, tt := range []struct {
		task signalbox.Task
		want int
	}{{user, 2}, {job, 1}, {given, -3}, {agent, 0}} {
		if tt.task.Priority != tt.want || tt.task.Bias != time.Duration(tt.want)*engine.DefaultAgeStep {
			t.Errorf("a task of %s has priority %d, want %d", tt.task.Source, tt.task.Priority, tt.want)
		}
	}
	// Ageing: a task that has waited longer than the priority is worth is first anyway.
	a := b.agent("one", "claude", 1)
	b.pass(10 * time.Minute)
	b.submit(engine.NewTask{Prompt: "late", Source: signalbox.SourceUser})
	order := []string{}
	for range 5 {
		c, found, err := b.Claim(t.Context(), a, 0)
		if err != nil || !found {
			t.Fatal(found, err)
		}
		order = append(order, c.Task.ID)
		_, err = b.Finish(t.Context(), c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted})
		b.must(err)
	}
	if order[0] != user.ID || order[1] != job.ID || order[2] != agent.ID || order[3] != given.ID {
		t.Errorf("they were taken in the order %v", order)
	}
}

func TestFleetCeiling(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.Fleet = 1 })
	one, two := b.agent("one", "claude", 1), b.agent("two", "claude", 1)
	b.submit(engine.NewTask{Prompt: "x"})
	waits := b.submit(engine.NewTask{Prompt: "y"})
	run := b.work(one)
	b.see(engine.LiveAgent{Agent: one, Up: true, InUse: 1})
	if _, found, err := b.Claim(t.Context(), two, 0); found || err != nil {
		t.Fatalf("claimed beyond the ceiling: %v %v", found, err)
	}
	why, err := b.Why(t.Context(), waits.ID)
	b.must(err)
	if !strings.Contains(why.Summary, "ceiling: 1 of 1") {
		t.Errorf("why says %q", why.Summary)
	}
	_, err = b.Finish(t.Context(), run, engine.Outcome{Reason: signalbox.ReasonCompleted})
	b.must(err)
	if _, found, err := b.Claim(t.Context(), two, 0); !found || err != nil {
		t.Fatalf("not claimed under the ceiling: %v %v", found, err)
	}
}

func TestIdempotencyKeysAreScopedByOwner(t *testing.T) {
	b := newFixture(t)
	n := engine.NewTask{Prompt: "x", IdempotencyKey: "k"}
	mine, theirs := n, n
	mine.By = signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "one"}
	theirs.By = signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "two"}
	first, second, nobody := b.submit(mine), b.submit(theirs), b.submit(n)
	if first.ID == second.ID || first.ID == nobody.ID {
		t.Error("a key of one principal found the task of another")
	}
	if again := b.submit(mine); again.ID != first.ID {
		t.Error("the same key of the same principal made another task")
	}
	if first.Owner != "user:one" || nobody.Owner != "" {
		t.Errorf("owners %q and %q", first.Owner, nobody.Owner)
	}
}

func TestLimitsOfAPrincipal(t *testing.T) {
	b := newFixture(t)
	mine, theirs := b.talker("mine", 1), b.talker("theirs", 1)
	by := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "one", Agents: []string{"mine"}, Scopes: []signalbox.Scope{signalbox.ScopeRead}} // otherwise it may not continue sessions of others
	own, other, anywhere := chat("mine", "x"), chat("theirs", "x"), engine.NewTask{Prompt: "x"}
	own.By, other.By, anywhere.By = by, by, by
	held := b.submit(own)
	b.work(mine)
	b.refusedAs(signalbox.CodeNotFound, other)
	b.refusedAs(signalbox.CodeForbidden, anywhere)

	elsewhere := b.submit(chat("theirs", "hello"))
	b.work(theirs)
	turn := anywhere
	turn.SessionID = elsewhere.SessionID
	b.refusedAs(signalbox.CodeForbidden, turn)
	foreign := own
	foreign.SessionID = elsewhere.SessionID
	if err := b.refusedAs(signalbox.CodeValidation, foreign); strings.Contains(err.Error(), "theirs") {
		t.Errorf("it is told which agent has a session: %v", err)
	}
	turn.SessionID, turn.Session = held.SessionID, signalbox.SessionPrefer
	b.refusedAs(signalbox.CodeForbidden, turn) // it could move to any agent
	turn.Session = signalbox.SessionRequire
	if task := b.submit(turn); task.Queue != "agent:mine" {
		t.Errorf("a turn of the session waits in %s", task.Queue)
	}
}

// A replayed key returns its task, even if the same call would be refused now: after a restart no agent has
// been heard from yet.
func TestReplayIsAnsweredThoughItWouldBeRefusedNow(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	n := chat("coder", "hello")
	n.IdempotencyKey = "key"
	first := b.submit(n)
	b.see(engine.LiveAgent{Agent: a, Message: "not heard from yet"})
	again, err := b.Submit(t.Context(), n)
	if err != nil || again.Task.ID != first.ID || !again.Replayed {
		t.Errorf("the same call again: %+v, %v; want %s", again.Task, err, first.ID)
	}
	n.IdempotencyKey = "another key"
	b.refusedAs(signalbox.CodeAgentDown, n)
	n.IdempotencyKey, n.Prompt = "key", "something else"
	b.refusedAs(signalbox.CodeIdempotency, n)
}

// A release of a lane spares isolated executions, except those that were asked to stop and did not.
func TestReleaseLeavesIsolatedExecutionsAlone(t *testing.T) {
	b := newFixture(t)
	a := b.talker("coder", 1)
	b.submit(chat("coder", "stuck"))
	stuck := b.work(a)
	goes, stays := b.submit(bypass("coder")), b.submit(bypass("coder"))
	for range 2 {
		c, found, err := b.ClaimBypass(t.Context(), a, 2, 0)
		if err != nil || !found {
			t.Fatal(found, err)
		}
		_, err = b.Accept(t.Context(), c.Task, "theirs-"+c.Task.ID, "")
		b.must(err)
	}
	_, err := b.Cancel(t.Context(), goes.ID, "someone")
	b.must(err)
	ids, err := b.ReleaseLane(t.Context(), "coder", "someone")
	b.must(err)
	if len(ids) != 2 || !slices.Contains(ids, stuck.ID) || !slices.Contains(ids, goes.ID) {
		t.Errorf("released %v", ids)
	}
	if row := b.task(stays.ID); row.State != signalbox.Working {
		t.Errorf("an isolated execution that nobody asked to stop is %s", row.State)
	}
}

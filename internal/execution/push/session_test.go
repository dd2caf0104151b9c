package push_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

func chat() engine.NewTask {
	return engine.NewTask{Agent: "fake", Mode: signalbox.ModeChat, Overflow: signalbox.OverflowWait, Source: signalbox.SourceUser}
}

func (h *fixture) current(agent string) string {
	h.t.Helper()
	id, err := h.engine.CurrentSession(h.t.Context(), agent)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// A chat with an agent that starts sessions under the id it is given continues the session that the director
// chose.
func TestChatsShareASession(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Auto: true, Sessions: true})
	h.start()
	h.untilUp("fake")
	for range 2 {
		h.ends(h.submit(chat()), signalbox.ReasonCompleted)
	}
	runs := a.Executions()
	if runs[0].Session == "" || runs[0].Session != runs[1].Session || h.current("fake") != runs[0].Session {
		t.Errorf("the chats ran in %q and %q, the current session is %q", runs[0].Session, runs[1].Session, h.current("fake"))
	}
}

// A chat with an agent that chooses ids itself continues the session that the agent last answered, even if
// that gets a new id each time, and even if the chat was waiting when the first session had none.
func TestPlainAgentChatsContinueItsSession(t *testing.T) {
	for _, renames := range []bool{false, true} {
		h := newFixture(t)
		a := h.agent(Options{Plain: true, Renames: renames})
		h.start()
		h.untilUp("fake")
		first := h.submit(chat())
		h.untilState(first, signalbox.Working)
		second := h.submit(chat())
		said := ""
		for i, id := range []string{first, second, h.submit(chat())} {
			e := a.AwaitStart(i + 1)
			h.untilState(id, signalbox.Working)
			if got := a.Requests(Offer)[i].Task.SessionID; got != said {
				t.Errorf("renames %v: chat %d was offered in session %q, want %q", renames, i, got, said)
			}
			said = e.Answered
			h.await("what it answered is the current session", func() bool { return h.current("fake") == said })
			a.Finish(e.TaskID, End{})
			h.ends(id, signalbox.ReasonCompleted)
		}
		anew := chat()
		anew.NewSession = true
		h.untilState(h.submit(anew), signalbox.Working)
		if got := a.Requests(Offer)[3].Task.SessionID; got != "" {
			t.Errorf("a chat that begins a conversation was offered in session %q", got)
		}
		s, err := h.store.Session(t.Context(), said)
		if err != nil || s.Agent != "fake" || s.State != signalbox.SessionActive || s.Source != signalbox.SourceUser {
			t.Errorf("renames %v: the session is %+v, %v", renames, s, err)
		}
	}
}

// A chat that named no session does not change a session that was archived.
func TestArchivedSessionStaysArchived(t *testing.T) {
	h := newFixture(t)
	h.agent(Options{Auto: true, Plain: true})
	h.start()
	h.untilUp("fake")
	id := h.submit(chat())
	h.ends(id, signalbox.ReasonCompleted)
	h.await("the session is known", func() bool { return h.current("fake") != "" })
	session := h.current("fake")
	if _, err := h.engine.ArchiveSession(t.Context(), session, "tester"); err != nil {
		t.Fatal(err)
	}
	if err := h.engine.AdoptSession(t.Context(), h.task(id), session); err != nil {
		t.Fatal(err)
	}
	if got := h.current("fake"); got != "" {
		t.Errorf("an archived session became the current one: %q", got)
	}
}

func (h *fixture) sessionState(id string) signalbox.SessionState {
	s, _ := h.store.Session(h.t.Context(), id)
	return s.State
}

// When an agent comes up its sessions are reconciled with the stored ones: after our start, after it was
// down, after it moved.
func TestSessionsAreReconciledWhenAgentStarts(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Auto: true, Sessions: true})
	h.start()
	h.untilUp("fake")
	h.ends(h.submit(chat()), signalbox.ReasonCompleted)
	used := h.current("fake")
	ways := map[string]func(){
		"it was away": func() {
			a.Down()
			h.await("it is down", func() bool { return !h.live("fake").Up })
			a.Up()
		},
		"it moved":            func() { a.Move(); h.put(a.Row(), "") },
		"the director is new": func() { h.restart() },
	}
	for way, comesUp := range ways {
		a.SetSessions("by-hand")
		h.clock.jumpWall(time.Second) // a session used at the moment of the request is not taken for gone
		comesUp()
		h.await(way+": what it lost is gone", func() bool { return h.sessionState(used) == signalbox.SessionGone })
		h.await(way+": what it has is known", func() bool { return h.sessionState("by-hand") == signalbox.SessionActive })
		a.SetSessions("by-hand", used)
		a.Down()
		h.await("it is down", func() bool { return !h.live("fake").Up })
		a.Up()
		h.await(way+": what is back is active", func() bool { return h.sessionState(used) == signalbox.SessionActive })
	}
}

// If the list cannot be read, nothing changes and nothing is delayed, and it is requested again when the
// agent comes up next. One request is in flight at a time.
func TestSessionsThatCannotBeListed(t *testing.T) {
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Auto: true, Sessions: true})
	h.start()
	h.untilUp("fake")
	a.AwaitRequest(Sessions, 1) // it is requested when the agent comes up, and not again before it has been down
	h.ends(h.submit(chat()), signalbox.ReasonCompleted)
	used := h.current("fake")
	a.SetSessions()
	var under, most atomic.Int64
	counted := func(step Step) Step {
		return func(x *Exchange) {
			if x.R.Context().Err() == nil { // otherwise the agent goes down, and the transport has asked once more
				most.Store(max(most.Load(), under.Add(1)))
				defer under.Add(-1)
			}
			step(x)
		}
	}
	long := api.AgentSessions{Sessions: make([]api.AgentSession, 10_000)}
	for _, bad := range []Step{Say(500, nil), Garbage(200), Nothing(200), Say(200, struct{}{}), Hang(), Drip(200), Flood(200), Say(200, long)} {
		a.Down()
		h.await("it is down", func() bool { return !h.live("fake").Up })
		seen := len(a.Requests(Sessions))
		a.Always(Sessions, counted(bad)) // the transport repeats the request if a connection breaks
		a.Up()
		a.AwaitRequest(Sessions, seen+1)
		h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted)
		if got := h.sessionState(used); got != signalbox.SessionActive {
			t.Fatalf("a list that is none made the session %s", got)
		}
	}
	a.Down()
	h.await("it is down", func() bool { return !h.live("fake").Up })
	a.ClearScripts()
	a.Up()
	h.await("it is asked again", func() bool { return h.sessionState(used) == signalbox.SessionGone })
	if most.Load() > 1 {
		t.Errorf("%d questions were under way at once", most.Load())
	}
}

// A session that started after the request is not taken for gone.
func TestNewSessionIsNotRemovedByReconcile(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Auto: true, Sessions: true})
	sign := make(chan struct{})
	a.Script(Sessions, After(sign, Say(200, api.AgentSessions{Sessions: []api.AgentSession{{SessionID: "by-hand", LastUsed: time.Now()}}})))
	h.start()
	a.AwaitRequest(Sessions, 1)
	h.ends(h.submit(chat()), signalbox.ReasonCompleted)
	used := h.current("fake")
	close(sign)
	h.await("the list is taken in", func() bool { return h.sessionState("by-hand") == signalbox.SessionActive })
	if got := h.sessionState(used); got != signalbox.SessionActive {
		t.Errorf("it is %s", got)
	}
}

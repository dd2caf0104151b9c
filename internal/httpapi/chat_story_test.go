package httpapi_test

import (
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// askLater sends a request in the background, and stores the exchange in its place when the
// answer has arrived.
func (s *session) askLater(route, title, path, body string, edits ...apitest.Edit) (answered func()) {
	s.T.Helper()
	var sent *http.Request
	edits = append(edits, apitest.Header(requestID, "req-example"), func(r *http.Request) { sent = r })
	stored := s.NewestEvent()
	a := s.Fixture.Start("POST", path, body, edits...)
	testkit.Wait(s.T, "the chat is stored", func() bool { return s.NewestEvent() != stored })
	place := len(s.exchanges)
	s.exchanges = append(s.exchanges, exchange{route: route, title: title, request: sent, body: body})
	return func() { s.exchanges[place].answer = a.Reply() }
}

func (s *session) chatStory() {
	for _, t := range s.pending() { // tasks left by the previous story
		if _, err := s.Engine.Cancel(s.T.Context(), t.ID, ""); err != nil {
			s.T.Fatal(err)
		}
	}
	a := s.Fixture.AddAgent("writer", 1)
	s.Live.Set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2, LastHeard: s.clock.Now()})
	const path = "/api/agents/writer/chat"
	first := s.askLater("chat", "", path, `{"message":"Hello"}`)
	s.clock.Advance(time.Second)
	one := s.Accept(a)
	next := s.askLater("chat", "As a stream, by one who has to wait", path, `{"message":"Now in French, please","timeout_seconds":600}`, apitest.Header("Accept", "text/event-stream"))
	s.ask("chat", "By one who does not want to wait", path, `{"message":"Are you free?","wait_if_busy":false}`)
	s.ask("chat", "Without waiting for the end", path, `{"message":"When you have a moment"}`, apitest.Header("Prefer", "respond-async"))
	s.Do("POST", path, `{"message":"One more"}`, apitest.Header("Prefer", "respond-async"))
	s.ask("chat", "The line is full", path, `{"message":"One too many"}`)
	s.ask("lane", "", "/api/agents/writer/queue", "")
	s.bypassStory(a)
	s.clock.Advance(2 * time.Second)
	s.FinishTask(one, signalbox.ReasonCompleted, signalbox.Result{Output: "Hello! What shall I write?", CostUSD: 0.004, DurationSeconds: 1.9, InputTokens: 312, OutputTokens: 9, ToolCount: 1})
	first()
	s.clock.Advance(time.Second)
	two := s.Claim(a)
	two, err := s.Engine.Accept(s.T.Context(), two, "task-2", two.SessionID)
	if err != nil {
		s.T.Fatal(err)
	}
	s.Runs.Print(two.ID, "Translating …\n") // agents print only after they have accepted, which determines the order of the events
	s.clock.Advance(3 * time.Second)
	s.FinishTask(two, signalbox.ReasonCompleted, signalbox.Result{Output: "Bonjour !", Tail: "Translating …\n", DurationSeconds: 2.8})
	next()
	s.Runs.End(two.ID)
	s.Do("POST", "/api/agents/writer/queue/clear", "").Want(s.T, 200, nil)
	s.ask("sessions", "", "/api/sessions?agent=writer", "")
	s.ask("archiveSession", "", "/api/sessions/"+one.SessionID+"/archive", "")
	s.ask("restoreSession", "", "/api/sessions/"+one.SessionID+"/restore", "")
	s.ask("activities", "", "/api/activities?type=chat_start&state=completed", "")
	s.ask("activity", "", "/api/activities/"+two.ID, "")
}

func (s *session) bypassStory(a signalbox.Agent) {
	answered := s.askLater("bypass", "", "/api/agents/writer/task", `{"message":"Summarise CHANGES.md in a sentence","allowed_tools":["Read"]}`)
	t := s.AcceptIsolated(a)
	s.FinishTask(t, signalbox.ReasonCompleted, signalbox.Result{Output: "Two faults were mended.", Tail: "Reading CHANGES.md\nTwo faults were mended.\n", DurationSeconds: 4.2})
	answered()
	s.ask("bypass", "An agent that offers no isolated executions", "/api/agents/coder/task", `{"message":"Summarise CHANGES.md"}`)
}

func (s *session) pending() []signalbox.Task {
	s.T.Helper()
	list, err := s.Store.Waiting(s.T.Context(), "", store.Cursor{}, 100)
	if err != nil {
		s.T.Fatal(err)
	}
	return list
}

package httpapi_test

import (
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// askLater asks in the background, and keeps the exchange in its place when
// the answer is there.
func (s *session) askLater(route, title, path, body string, edits ...edit) (answered func()) {
	s.t.Helper()
	var sent *http.Request
	edits = append(edits, header(requestID, "req-example"), func(r *http.Request) { sent = r })
	stored := s.newest()
	a := s.box.ask("POST", path, body, edits...)
	for s.newest() == stored {
		time.Sleep(time.Millisecond)
	}
	place := len(s.exchanges)
	s.exchanges = append(s.exchanges, exchange{route: route, title: title, request: sent, body: body})
	return func() { s.exchanges[place].answer = a.answer() }
}

func (s *session) chatStory() {
	for _, t := range s.pending() { // what the story before left in line
		if _, err := s.engine.Cancel(s.t.Context(), t.ID, ""); err != nil {
			s.t.Fatal(err)
		}
	}
	a := s.box.agent("writer", 1)
	s.live.set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2, LastHeard: s.clock.now()})
	const path = "/api/agents/writer/chat"
	first := s.askLater("chat", "", path, `{"message":"Hello"}`)
	s.clock.pass(time.Second)
	one := s.accept(a)
	next := s.askLater("chat", "As a stream, by one who has to wait", path, `{"message":"Now in French, please","timeout_seconds":600}`, header("Accept", "text/event-stream"))
	s.ask("chat", "By one who does not want to wait", path, `{"message":"Are you free?","wait_if_busy":false}`)
	s.ask("chat", "Without waiting for the end", path, `{"message":"When you have a moment"}`, header("Prefer", "respond-async"))
	s.do("POST", path, `{"message":"One more"}`, header("Prefer", "respond-async"))
	s.ask("chat", "The line is full", path, `{"message":"One too many"}`)
	s.ask("lane", "", "/api/agents/writer/queue", "")
	s.bypassStory(a)
	s.clock.pass(2 * time.Second)
	s.finish(one, signalbox.ReasonCompleted, signalbox.Result{Output: "Hello! What shall I write?", CostUSD: 0.004, DurationSeconds: 1.9, InputTokens: 312, OutputTokens: 9, ToolCount: 1})
	first()
	s.clock.pass(time.Second)
	two := s.claim(a)
	two, err := s.engine.Accept(s.t.Context(), two, "task-2", two.SessionID)
	if err != nil {
		s.t.Fatal(err)
	}
	s.runs.print(two.ID, "Translating …\n") // no agent prints before it has said yes: the order of the events rests on that
	s.clock.pass(3 * time.Second)
	s.finish(two, signalbox.ReasonCompleted, signalbox.Result{Output: "Bonjour !", Tail: "Translating …\n", DurationSeconds: 2.8})
	next()
	s.runs.end(two.ID)
	s.do("POST", "/api/agents/writer/queue/clear", "").want(s.t, 200, nil)
	s.ask("sessions", "", "/api/sessions?agent=writer", "")
	s.ask("archiveSession", "", "/api/sessions/"+one.SessionID+"/archive", "")
	s.ask("restoreSession", "", "/api/sessions/"+one.SessionID+"/restore", "")
	s.ask("activities", "", "/api/activities?type=chat_start&state=completed", "")
	s.ask("activity", "", "/api/activities/"+two.ID, "")
}

func (s *session) bypassStory(a signalbox.Agent) {
	answered := s.askLater("bypass", "", "/api/agents/writer/task", `{"message":"Summarise CHANGES.md in a sentence","allowed_tools":["Read"]}`)
	t := s.acceptIsolated(a)
	s.finish(t, signalbox.ReasonCompleted, signalbox.Result{Output: "Two faults were mended.", Tail: "Reading CHANGES.md\nTwo faults were mended.\n", DurationSeconds: 4.2})
	answered()
	s.ask("bypass", "An agent that offers no isolated executions", "/api/agents/coder/task", `{"message":"Summarise CHANGES.md"}`)
}

func (s *session) pending() []signalbox.Task {
	s.t.Helper()
	list, err := s.store.Waiting(s.t.Context(), "", store.Cursor{}, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

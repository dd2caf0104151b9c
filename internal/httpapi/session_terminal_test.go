package httpapi_test

import (
	"bytes"
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// terminalStory requests a terminal. docs/agents.md describes the WebSocket.
func (s *session) terminalStory() {
	a, err := s.Engine.Agent(s.T.Context(), "coder")
	if err != nil {
		s.T.Fatal(err)
	}
	before := s.Live.Agents()
	s.ask("openTerminal", "An agent that is not there", "/api/agents/reviewer/terminal", "")
	s.Live.Set(engine.LiveAgent{Agent: a, Up: true, Terminal: true, LastHeard: s.clock.Now()})
	s.ask("openTerminal", "", "/api/agents/coder/terminal", "")
	made := &s.exchanges[len(s.exchanges)-1].answer // its ticket differs between runs
	var ticket api.TerminalTicket
	made.Want(s.T, http.StatusCreated, &ticket)
	made.Body = bytes.ReplaceAll(made.Body, []byte(ticket.Ticket), []byte("a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s"))
	s.ask("terminal", "Without a WebSocket", "/api/agents/coder/terminal", "")
	for _, l := range before {
		s.Live.Set(l)
	}
}

package httpapi_test

import (
	"bytes"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// terminalStory asks for a terminal. What follows on the WebSocket is no HTTP
// and stands in docs/agents.md.
func (s *session) terminalStory() {
	a, err := s.Engine.Agent(s.T.Context(), "coder")
	if err != nil {
		s.T.Fatal(err)
	}
	before := s.Live.Agents()
	s.ask("openTerminal", "An agent that is not there", "/api/agents/reviewer/terminal", "")
	s.Live.Set(engine.LiveAgent{Agent: a, Up: true, Terminal: true, LastHeard: s.clock.Now()})
	s.Server.SetTicketRandom(bytes.NewReader(bytes.Repeat([]byte{0x6b}, 32)))
	s.ask("openTerminal", "", "/api/agents/coder/terminal", "")
	s.ask("terminal", "Without a WebSocket", "/api/agents/coder/terminal", "")
	for _, l := range before {
		s.Live.Set(l)
	}
}

package api

import "time"

// TerminalTicket is the 201 answer to POST /api/agents/{name}/terminal. The
// ticket opens one terminal, once, until it expires.
type TerminalTicket struct {
	Ticket    string    `json:"ticket"`
	Agent     string    `json:"agent"`
	URL       string    `json:"url"` // path of the WebSocket
	ExpiresAt time.Time `json:"expires_at"`
}

// TerminalMessage is a text message on the WebSocket of a terminal, on the
// director and on the agent. Binary messages are the bytes of the terminal,
// in both directions. The first message to a director is auth, within 10 s.
type TerminalMessage struct {
	Type   string `json:"type"`             // to it: auth, resize. From it: ready, exit, error
	Token  string `json:"token,omitempty"`  // auth: the ticket
	Cols   int    `json:"cols,omitempty"`   // auth, resize: 1 to 1000
	Rows   int    `json:"rows,omitempty"`   // auth, resize: 1 to 1000
	Code   int    `json:"code,omitempty"`   // exit: of the program
	Reason string `json:"reason,omitempty"` // exit, error: for people
}

// AgentTerminal is a terminal that is open at an agent.
type AgentTerminal struct {
	By    string    `json:"by"` // who opened it
	Since time.Time `json:"since"`
}

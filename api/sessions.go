package api

import "time"

// AgentSessions is the answer to GET /sessions on an agent: the newest 10,000
// conversations that it could go on with.
type AgentSessions struct {
	Sessions []AgentSession `json:"sessions"`
}

// AgentSession is a conversation as its agent has it.
type AgentSession struct {
	SessionID string    `json:"session_id"`
	LastUsed  time.Time `json:"last_used_at"`
}

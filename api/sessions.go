package api

import "time"

// AgentSessions is the answer to GET /sessions on an agent: the newest 10,000
// conversations that it can continue.
type AgentSessions struct {
	Sessions []AgentSession `json:"sessions"`
}

// AgentSession is a conversation at its agent.
type AgentSession struct {
	SessionID string    `json:"session_id"`
	LastUsed  time.Time `json:"last_used_at"`
}

package api

import "time"

// Directors is the answer to GET /api/directors, by instance.
type Directors struct {
	Directors []Director `json:"directors"`
}

// Director is one of the directors over a store.
type Director struct {
	Instance  string    `json:"instance"`
	URL       string    `json:"url,omitempty"` // where the other directors reach it
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	// Alive says that its lease holds; LeaseExpires is when it ends unless it is
	// renewed. A director that is alone has no lease.
	Alive        bool       `json:"alive"`
	LeaseExpires *time.Time `json:"lease_expires_at,omitempty"`
	Draining     bool       `json:"draining,omitempty"` // it is about to stop, and takes no more agents
	// Agents are those that it dispatches to, of those that the caller may use.
	Agents []string `json:"agents"`
	This   bool     `json:"this,omitempty"` // it is the one that answers
}

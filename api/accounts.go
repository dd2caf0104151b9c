package api

import "time"

// WaitingFor is the gate that a task waits for.
type WaitingFor struct {
	Kind  string     `json:"kind"`            // account, agent, budget or time
	Name  string     `json:"name,omitempty"`  // of the account or agent, or the owner of the budget, such as user ann@example.org
	Text  string     `json:"text"`            // for example: account claude-3f0c is closed until 2026-01-31T14:00:00Z (five_hour)
	Until *time.Time `json:"until,omitempty"` // when it opens by itself, if known
	Since *time.Time `json:"since,omitempty"` // when the task was parked, the gate closed or the budget used up
}

// Gates is the answer to GET /api/gates.
type Gates struct {
	Gates []ClosedGate `json:"gates"` // first those that need a person, then those with waiting tasks
}

// ClosedGate is something that is closed now.
type ClosedGate struct {
	Kind string `json:"kind"`           // account; agent: it failed; budget: the daily budget is used up; tool: a tool queue closed by its upstream; time: tasks are parked until then
	Name string `json:"name,omitempty"` // of the account, agent or tool queue, or the owner of the budget
	// State is closed; trying: one task goes first; signed_out: a person must log in.
	State  string     `json:"state"`
	Text   string     `json:"text"` // the same in words, as in WaitingFor
	Since  *time.Time `json:"since,omitempty"`
	Until  *time.Time `json:"until,omitempty"`  // when it opens by itself, or is tried
	Source string     `json:"source,omitempty"` // as of Account
	// Waiting counts the tasks, or calls of a tool queue, that wait because it is closed. Parked
	// counts the parked tasks, which continue when it opens.
	Waiting int    `json:"waiting"`
	Parked  int    `json:"parked"`
	Cure    string `json:"cure"` // what a person can do
}

// Accounts is the answer to GET /api/accounts.
type Accounts struct {
	Accounts []Account `json:"accounts"` // by name
}

// Account is one login or key at one provider, which agents spend.
type Account struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`  // of its agents
	Login string `json:"login,omitempty"` // for people: an address, or the type of key; never the secret
	// State is open; closed: its agents claim nothing until Until; trying: that time is over, and
	// one task runs first; signed_out: its login was refused, and a person must log in.
	State string `json:"state"`
	Text  string `json:"text"` // the same in words
	// Reason is the provider's message, or who closed it. Window is the limit that is used up.
	// Source says how that is known: event, header, text, guess, or the name of a person.
	Reason  string          `json:"reason,omitempty"`
	Window  string          `json:"window,omitempty"`
	Source  string          `json:"source,omitempty"`
	Since   *time.Time      `json:"since,omitempty"`
	Until   *time.Time      `json:"until,omitempty"` // closed: when it is tried again; absent: not until someone opens it
	Windows []AccountWindow `json:"windows,omitempty"`
	HeardAt *time.Time      `json:"heard_at,omitempty"` // when windows were last reported
	Agents  []string        `json:"agents"`             // connected agents that spend it
	Waiting int             `json:"waiting"`            // tasks that wait because it is not open, without parked ones
	Parked  int             `json:"parked"`             // tasks that continue when it opens
}

// AccountClose is the body of POST /api/accounts/{name}/close.
type AccountClose struct {
	Until  *time.Time `json:"until,omitempty"`  // RFC 3339, at most 366 days from now; absent: until someone opens it
	Reason string     `json:"reason,omitempty"` // one line of at most 300 bytes, visible to others
}

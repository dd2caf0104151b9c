package api

import "time"

// WaitingFor is the gate at which a task waits.
type WaitingFor struct {
	Kind  string     `json:"kind"`            // account, budget or time
	Name  string     `json:"name,omitempty"`  // of the account, or whose budget it is, such as user ann@example.org
	Text  string     `json:"text"`            // such as: account claude-3f0c is closed until 2026-01-31T14:00:00Z (five_hour)
	Until *time.Time `json:"until,omitempty"` // when it opens by itself, as far as that is known
	Since *time.Time `json:"since,omitempty"` // when the task was parked, its account closed or the budget used up
}

// Accounts is the answer to GET /api/accounts.
type Accounts struct {
	Accounts []Account `json:"accounts"` // by name
}

// Account is what agents spend: one login or key at one provider.
type Account struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`  // of its agents
	Login string `json:"login,omitempty"` // for people: an address, or what sort of key it is; never the secret
	// State is open; closed: its agents claim nothing, until Until; trying: that is over, and
	// one task goes first; signed_out: its login was refused, and a person must log in.
	State string `json:"state"`
	Text  string `json:"text"` // the same in words
	// Reason is what the provider said, or who closed it. Window is its limit that is used
	// up. Source is how that is known: event, header, text, guess, or the name of a person.
	Reason  string          `json:"reason,omitempty"`
	Window  string          `json:"window,omitempty"`
	Source  string          `json:"source,omitempty"`
	Since   *time.Time      `json:"since,omitempty"`
	Until   *time.Time      `json:"until,omitempty"` // closed: it is tried then; absent: when someone opens it
	Windows []AccountWindow `json:"windows,omitempty"`
	HeardAt *time.Time      `json:"heard_at,omitempty"` // of windows
	Agents  []string        `json:"agents"`             // connected, that spend it
	Waiting int             `json:"waiting"`            // tasks that wait because it is not open; the parked ones apart
	Parked  int             `json:"parked"`             // tasks that go on when it is open
}

// AccountClose is the body of POST /api/accounts/{name}/close.
type AccountClose struct {
	Until  *time.Time `json:"until,omitempty"`  // RFC 3339, at most 366 days from now; absent: until someone opens it
	Reason string     `json:"reason,omitempty"` // one line of at most 300 bytes, which others see
}

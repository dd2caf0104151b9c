package api

import "time"

// Me is the answer to GET /api/me: the identity of the caller at the director.
type Me struct {
	Kind      string     `json:"kind"` // user, agent, service, or anonymous
	ID        string     `json:"id,omitempty"`
	Email     string     `json:"email,omitempty"`
	Scopes    []string   `json:"scopes"`
	Agents    []string   `json:"agents,omitempty"` // the only ones it may use; absent: all
	TokenID   string     `json:"token_id,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Open      bool       `json:"open"` // the director requires no token
}

// LoggedIn is the answer to POST /api/login and /api/login/once, which sets a
// cookie. Key is the second half of the login: the cookie is only valid together
// with it in the header Signalbox-Login.
type LoggedIn struct {
	Me
	Key string `json:"key"`
}

// ChangePassword is the body of POST /api/me/password.
type ChangePassword struct {
	Password    string `json:"password"`     // current password
	NewPassword string `json:"new_password"` // 12 to 1024 bytes
}

// LoginOnce is the body of POST /api/login/once: the code of a login link.
type LoginOnce struct {
	Code string `json:"code"`
}

// LoginLink is the 201 answer to POST /api/login/link: a path with a code in its
// fragment, with which a browser can log in once.
type LoginLink struct {
	Path      string    `json:"path"`
	ExpiresAt time.Time `json:"expires_at"`
}

// LoginRequest is the body of POST /api/login. The answer sets a cookie.
type LoginRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// Tokens is the answer to GET /api/tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// Token is a credential, without its secret.
type Token struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Kind       string     `json:"kind"`      // user, agent or service
	Principal  string     `json:"principal"` // id of the user, name of the agent or service
	Scopes     []string   `json:"scopes"`
	Agents     []string   `json:"agents,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	CreatedBy  string     `json:"created_by,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty"` // since the director was started
}

// NewToken is the body of POST /api/tokens.
type NewToken struct {
	Name             string   `json:"name"`
	User             string   `json:"user,omitempty"`               // it acts as this user
	Agent            string   `json:"agent,omitempty"`              // it acts as this agent; not with user. Neither: a service
	Scopes           []string `json:"scopes,omitempty"`             // default: submit, read and agent for an agent; those of its role for a user; required for a service
	Agents           []string `json:"agents,omitempty"`             // the only agents it may use and see
	ExpiresInSeconds int64    `json:"expires_in_seconds,omitempty"` // 0: never
}

// TokenCreated is the 201 answer to POST /api/tokens. The secret is shown only
// this once.
type TokenCreated struct {
	Token
	Secret string `json:"secret"`
}

// Users is the answer to GET /api/users.
type Users struct {
	Users []User `json:"users"`
}

// User is a person who can log in.
type User struct {
	ID        string    `json:"id"`
	Email     string    `json:"email,omitempty"`
	Role      string    `json:"role"` // admin or user
	Agents    []string  `json:"agents,omitempty"`
	Disabled  bool      `json:"disabled,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// PutUser is the body of PUT /api/users/{id}, which creates or changes a user.
// Omitted fields are not changed. Their defaults for a new user are: enabled, role
// user, all agents and no password.
type PutUser struct {
	Email    *string  `json:"email,omitempty"`    // "" removes it
	Password string   `json:"password,omitempty"` // 12 to 1024 bytes
	Role     string   `json:"role,omitempty"`     // admin or user
	Agents   []string `json:"agents,omitzero"`    // the only ones it may use; [] (not null) means all
	Disabled *bool    `json:"disabled,omitempty"` // true: no login, and its tokens are refused
}

// AuditLog is the answer to GET /api/audit.
type AuditLog struct {
	Rows []AuditRow `json:"rows"`
	Next int64      `json:"next,omitempty"` // ask with ?after=; absent at the end
}

// AuditRow is one row of the audit log. Its hash covers all its other fields;
// docs/operations.md says how.
type AuditRow struct {
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	EventType string    `json:"event_type"` // agent_queue, agent, task, queue, token, user, login, terminal, session, access
	Action    string    `json:"action"`
	Principal string    `json:"principal,omitempty"`
	UserID    string    `json:"user_id,omitempty"`
	AgentName string    `json:"agent_name,omitempty"`
	Resource  string    `json:"resource,omitempty"`
	Result    string    `json:"result"` // success, denied, failed
	IPAddress string    `json:"ip_address,omitempty"`
	UserAgent string    `json:"user_agent,omitempty"`
	Details   string    `json:"details,omitempty"` // JSON
	Severity  string    `json:"severity"`          // info, warning, critical
	Prev      string    `json:"prev"`
	Hash      string    `json:"hash"`
}

// AuditHead is the answer to GET /api/audit/head. Keep it elsewhere: signalbox audit
// verify --head then detects whether rows were removed from the end.
type AuditHead struct {
	Seq  int64      `json:"seq"`
	Hash string     `json:"hash"`
	At   *time.Time `json:"at,omitempty"`
}

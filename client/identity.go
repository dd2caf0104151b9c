package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/signalbox-ai/signalbox/api"
)

// Me returns the caller's identity at the director.
func (c *Client) Me(ctx context.Context) (api.Me, error) {
	return ask[api.Me](ctx, c, get("/api/me", nil))
}

// Login logs in with a password. The answer sets a cookie, which needs an
// Options.HTTPClient with a Jar, and contains a key that must be sent with it in
// the header Signalbox-Login. Programs should use a token instead.
// Codes: unauthorized, rate_limited.
func (c *Client) Login(ctx context.Context, user, password string) (api.LoggedIn, error) {
	return ask[api.LoggedIn](ctx, c, post("/api/login", api.LoginRequest{User: user, Password: password}))
}

// LoginLink creates a link with which the director's owner can log in once in a
// browser. Codes: forbidden for any token other than the director's own.
func (c *Client) LoginLink(ctx context.Context) (api.LoginLink, error) {
	return ask[api.LoginLink](ctx, c, post("/api/login/link", nil))
}

// ChangePassword changes the password of the user whose token or login is used.
// Codes: forbidden (the old one is wrong), rate_limited, unsupported (no user).
func (c *Client) ChangePassword(ctx context.Context, old, password string) (api.LoggedIn, error) {
	return ask[api.LoggedIn](ctx, c, post("/api/me/password", api.ChangePassword{Password: old, NewPassword: password}))
}

// Logout ends the login of the cookie.
func (c *Client) Logout(ctx context.Context) error {
	return c.do(ctx, post("/api/logout", nil), nil)
}

// Tokens returns the tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context) ([]api.Token, error) {
	out, err := ask[api.Tokens](ctx, c, get("/api/tokens", nil))
	return out.Tokens, err
}

// CreateToken creates a token. Its secret is returned only this once: after a lost
// reply, revoke the token and create another one.
func (c *Client) CreateToken(ctx context.Context, token api.NewToken) (api.TokenCreated, error) {
	return ask[api.TokenCreated](ctx, c, post("/api/tokens", token))
}

// RevokeToken revokes a token at once. Codes: not_found, conflict (it is the last
// one with the scope admin).
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, remove("/api/tokens/"+url.PathEscape(id)), nil)
}

// Users returns the people who can log in.
func (c *Client) Users(ctx context.Context) ([]api.User, error) {
	out, err := ask[api.Users](ctx, c, get("/api/users", nil))
	return out.Users, err
}

// PutUser creates or changes a user. Fields that are nil or "" are not changed.
// Email and Disabled point to the new value; Agents that are empty but not nil
// remove the limits.
func (c *Client) PutUser(ctx context.Context, id string, user api.PutUser) (api.User, error) {
	return ask[api.User](ctx, c, put("/api/users/"+url.PathEscape(id), user))
}

// RemoveUser removes a user and its tokens. Codes: not_found, conflict (the last
// admin).
func (c *Client) RemoveUser(ctx context.Context, id string) error {
	return c.do(ctx, remove("/api/users/"+url.PathEscape(id)), nil)
}

// AuditOptions select the rows that Audit returns. Empty fields do not restrict.
type AuditOptions struct {
	After     int64 // begin after this seq; with Newest: before it
	Newest    bool  // newest first
	EventType string
	Action    string
	UserID    string
	Agent     string
	Severity  string // info, warning or critical
	Since     string // RFC 3339, or an age such as 2h
	Limit     int    // of one page, 1 to 1000; 0: 100
}

// Audit returns one page of the audit log, oldest first unless Newest.
func (c *Client) Audit(ctx context.Context, opts AuditOptions) (api.AuditLog, error) {
	query := values("event_type", opts.EventType, "action", opts.Action, "user_id", opts.UserID, "agent", opts.Agent,
		"severity", opts.Severity, "since", opts.Since, "limit", number(opts.Limit))
	if opts.After > 0 {
		query.Set("after", strconv.FormatInt(opts.After, 10))
	}
	if opts.Newest {
		query.Set("newest", "true")
	}
	return ask[api.AuditLog](ctx, c, get("/api/audit", query))
}

// AllAudit iterates over all pages of Audit. An error is the last pair.
func (c *Client) AllAudit(ctx context.Context, opts AuditOptions) iter.Seq2[api.AuditRow, error] {
	return pages(opts.After, func(after int64) ([]api.AuditRow, int64, error) {
		opts.After = after
		page, err := c.Audit(ctx, opts)
		return page.Rows, page.Next, err
	})
}

// AuditHead returns the number and the hash of the newest audit row.
func (c *Client) AuditHead(ctx context.Context) (api.AuditHead, error) {
	return ask[api.AuditHead](ctx, c, get("/api/audit/head", nil))
}

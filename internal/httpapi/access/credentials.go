package access

import (
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Credentials has the handlers for tokens and users.
type Credentials struct {
	id    *identity.Keeper
	audit *AuditLog
}

func NewCredentials(id *identity.Keeper, audit *AuditLog) *Credentials {
	return &Credentials{id: id, audit: audit}
}

// Tokens is GET /api/tokens.
func (a *Credentials) Tokens(w http.ResponseWriter, _ *http.Request) error {
	out := api.Tokens{Tokens: []api.Token{}}
	for _, t := range a.id.Tokens() {
		out.Tokens = append(out.Tokens, tokenView(t))
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func tokenView(t identity.Known) api.Token {
	return api.Token{
		ID: t.ID, Name: t.Name, Kind: string(t.Kind), Principal: t.Principal, Scopes: scopeList(t.Scopes), Agents: t.Agents,
		CreatedAt: t.CreatedAt, CreatedBy: t.CreatedBy, ExpiresAt: view.Time(t.ExpiresAt), RevokedAt: view.Time(t.RevokedAt), LastUsedAt: view.Time(t.LastUsed),
	}
}

// CreateToken is POST /api/tokens.
func (a *Credentials) CreateToken(w http.ResponseWriter, r *http.Request) error {
	var req api.NewToken
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	scopes := make([]signalbox.Scope, len(req.Scopes))
	for i, s := range req.Scopes {
		scopes[i] = signalbox.Scope(s)
	}
	t, secret, err := a.id.CreateToken(r.Context(), identity.NewToken{
		Name: req.Name, User: req.User, Agent: req.Agent, Scopes: scopes, Agents: req.Agents,
		Expires: lifeOf(req.ExpiresInSeconds), By: CallerOf(r).String(),
	})
	if err != nil {
		return err
	}
	return a.audit.WriteAndAnswer(w, r, signalbox.Audit{
		EventType: "token", Action: "create", AgentName: agentOfToken(t.Token), Resource: t.ID,
		Details: signalbox.AuditDetails(map[string]any{"name": t.Name, "principal": string(t.Kind) + ":" + t.Principal, "scopes": t.Scopes, "agents": t.Agents, "expires_in_seconds": req.ExpiresInSeconds}),
	}, http.StatusCreated, api.TokenCreated{Token: tokenView(t), Secret: secret})
}

// lifeOf converts seconds to a duration. A number that is too large for a duration must
// not wrap around to a valid one.
func lifeOf(seconds int64) time.Duration {
	const most = 1 << 33 // seconds: fits in a duration, and is longer than any token's life
	return time.Duration(max(-1, min(seconds, most))) * time.Second
}

func agentOfToken(t signalbox.Token) string {
	if t.Kind == signalbox.PrincipalAgent {
		return t.Principal
	}
	return ""
}

// RevokeToken is DELETE /api/tokens/{id}.
func (a *Credentials) RevokeToken(w http.ResponseWriter, r *http.Request) error {
	t, err := a.id.RevokeToken(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.audit.WriteAndAnswer(w, r, signalbox.Audit{
		EventType: "token", Action: "revoke", AgentName: agentOfToken(t), Resource: t.ID,
		Details: signalbox.AuditDetails(map[string]any{"name": t.Name, "principal": string(t.Kind) + ":" + t.Principal}),
	}, http.StatusNoContent, nil)
}

// Users is GET /api/users.
func (a *Credentials) Users(w http.ResponseWriter, _ *http.Request) error {
	out := api.Users{Users: []api.User{}}
	for _, u := range a.id.Users() {
		out.Users = append(out.Users, userView(u))
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func userView(u signalbox.User) api.User {
	return api.User{ID: u.ID, Email: u.Email, Role: string(u.Role), Agents: u.Agents, Disabled: u.Disabled, CreatedAt: u.CreatedAt}
}

// PutUser is PUT /api/users/{id}.
func (a *Credentials) PutUser(w http.ResponseWriter, r *http.Request) error {
	var req api.PutUser
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	before := a.userWords(r.PathValue("id"))
	u, created, err := a.id.PutUser(r.Context(), identity.PutUser{
		ID: r.PathValue("id"), Email: req.Email, Password: req.Password, Role: signalbox.Role(req.Role), Agents: req.Agents, Disabled: req.Disabled,
	})
	if err != nil {
		return err
	}
	return a.audit.WriteAndAnswer(w, r, signalbox.Audit{
		EventType: "user", Action: "put", Resource: "user:" + u.ID,
		Details: signalbox.AuditDetails(map[string]any{"created": created, "before": before, "after": a.userWords(u.ID), "password_set": req.Password != ""}),
	}, http.StatusOK, userView(u))
}

// userWords is the description of a user for the audit log; nil if there is none.
func (a *Credentials) userWords(id string) map[string]any {
	for _, u := range a.id.Users() {
		if u.ID == id {
			return map[string]any{"email": u.Email, "role": u.Role, "agents": u.Agents, "disabled": u.Disabled}
		}
	}
	return nil
}

// RemoveUser is DELETE /api/users/{id}.
func (a *Credentials) RemoveUser(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := a.id.RemoveUser(r.Context(), id); err != nil {
		return err
	}
	return a.audit.WriteAndAnswer(w, r, signalbox.Audit{EventType: "user", Action: "remove", Resource: "user:" + id}, http.StatusNoContent, nil)
}

package apitest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Password is the password of every user that a test logs in.
const Password = "a right long password"

// NewWithUsers makes a director that requires tokens, with two agents: coder, which
// has a task, a session and an account of its name, and other. It returns the credentials of one caller of
// each kind by name: anon, static, each scope, coder and other (tokens of these
// agents), user, cookie, limited, expired and revoked.
func NewWithUsers(t *testing.T) (*Fixture, map[string][]Edit) {
	t.Helper()
	var plans *Schedules
	b, _ := NewWithToolTasks(t, WithToken, WithSchedules(&plans), WithPages)
	plans.ByID["sched-1"] = signalbox.Schedule{ID: "sched-1", Name: "nightly", Cron: "@daily", Agent: "coder", Prompt: "p", Enabled: true, Source: signalbox.ScheduleFromAPI}
	b.Server.Stop() // streams end after their first events
	b.AddAgent("coder", 1)
	b.AddAgent("other", 1)
	b.ReportAccount("coder", nil)
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, Bearer(Secret)).Want(t, http.StatusCreated, nil)
	CreateToolTask(b, `{}`, Bearer(Secret))
	if err := b.Store.PutSession(t.Context(), signalbox.Session{}, signalbox.Session{ID: "talk-1", Agent: "coder", State: signalbox.SessionActive}, signalbox.Entry{Kind: signalbox.EventSession}); err != nil {
		t.Fatal(err)
	}
	show := map[string][]Edit{"anon": nil, "static": {Bearer(Secret)}}
	token := func(who string, n identity.NewToken) identity.Known {
		n.Name = who
		got, secret, err := b.Identity.CreateToken(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		show[who] = []Edit{Bearer(secret)}
		return got
	}
	for _, s := range []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeCancel, signalbox.ScopeRelease, signalbox.ScopeTool, signalbox.ScopeTerminal, signalbox.ScopeSchedule, signalbox.ScopeAdmin} {
		token(string(s), identity.NewToken{Scopes: []signalbox.Scope{s}})
	}
	for _, name := range []string{"coder", "other"} {
		token(name, identity.NewToken{Agent: name})
	}
	b.AddUser(identity.PutUser{ID: "ben"})
	token("user", identity.NewToken{User: "ben"})
	b.AddUser(identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin, Password: Password})
	show["cookie"] = []Edit{b.Login("anna")}
	all := []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeCancel, signalbox.ScopeRelease, signalbox.ScopeTool, signalbox.ScopeTerminal, signalbox.ScopeSchedule}
	token("limited", identity.NewToken{Scopes: all, Agents: []string{"other"}})
	token("expired", identity.NewToken{Scopes: []signalbox.Scope{signalbox.ScopeAdmin}, Expires: time.Nanosecond})
	gone := token("revoked", identity.NewToken{Scopes: []signalbox.Scope{signalbox.ScopeAdmin}})
	if _, err := b.Identity.RevokeToken(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	return b, show
}

// AddUser adds or changes a user.
func (b *Fixture) AddUser(p identity.PutUser) {
	b.T.Helper()
	if _, _, err := b.Identity.PutUser(b.T.Context(), p); err != nil {
		b.T.Fatal(err)
	}
}

// Login logs a user in and returns its credentials.
func (b *Fixture) Login(user string) Edit {
	b.T.Helper()
	got := b.Do("POST", "/api/login", `{"user":"`+user+`","password":"`+Password+`"}`).Want(b.T, http.StatusOK, nil)
	return Cookie(got)
}

// Cookie makes a request use the login that a response started: its cookies, and the
// key that a page keeps.
func Cookie(r Reply) Edit {
	var begun api.LoggedIn
	_ = json.Unmarshal(r.Body, &begun) // without a key if the login failed
	return func(q *http.Request) {
		if begun.Key != "" {
			q.Header.Set("Signalbox-Login", begun.Key)
		}
		for _, c := range r.Cookies() {
			q.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
}

// AddToken creates a token and returns its secret.
func (b *Fixture) AddToken(n identity.NewToken) string {
	b.T.Helper()
	_, secret, err := b.Identity.CreateToken(b.T.Context(), n)
	if err != nil {
		b.T.Fatal(err)
	}
	return secret
}

// Secret is the static token of WithToken, which has every scope.
const Secret = "correct-horse-battery-staple"

// Bearer makes a request use a token.
func Bearer(token string) Edit { return Header("Authorization", "Bearer "+token) }

// AuditRows returns the audit log and checks its chain.
func (b *Fixture) AuditRows() []signalbox.Audit {
	b.T.Helper()
	var log api.AuditLog
	b.Do("GET", "/api/audit?limit=1000", "", Bearer(Secret)).Want(b.T, http.StatusOK, &log)
	var rows []signalbox.Audit
	for i := range log.Rows {
		rows = append(rows, signalbox.Audit(log.Rows[i]))
		var prev *signalbox.Audit
		if i > 0 {
			prev = &rows[i-1]
		}
		if err := signalbox.CheckAudit(prev, &rows[i]); err != nil {
			b.T.Fatal(err)
		}
	}
	return rows
}

// LastAudit returns the newest audit row.
func (b *Fixture) LastAudit() signalbox.Audit {
	b.T.Helper()
	rows := b.AuditRows()
	if len(rows) == 0 {
		b.T.Fatal("nothing was recorded")
	}
	return rows[len(rows)-1]
}

// WithToken makes a director require a token; Secret is one.
func WithToken(o *Options) { o.Config.Token = Secret }

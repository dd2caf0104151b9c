package access_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// A director without an admin is open, says so, and closes with the first.
func TestTheFirstAdminClosesTheDirector(t *testing.T) {
	b := apitest.New(t)
	var me api.Me
	b.Do("GET", "/api/me", "").Want(t, http.StatusOK, &me)
	if me.Kind != "anonymous" || !me.Open || !slices.Contains(me.Scopes, "admin") {
		t.Errorf("%+v", me)
	}
	// A token still identifies its caller, and must be valid.
	agent := b.AddToken(identity.NewToken{Name: "coder", Agent: "coder"})
	b.Do("GET", "/api/me", "", apitest.Bearer(agent)).Want(t, http.StatusOK, &me)
	if me.Kind != "agent" || me.ID != "coder" || !slices.Equal(me.Scopes, []string{"read", "submit", "tool", "agent"}) {
		t.Errorf("%+v", me)
	}
	b.Do("POST", "/api/queue/pause", "{}", apitest.Bearer(agent)).Want(t, http.StatusForbidden, nil)
	b.Do("GET", "/api/me", "", apitest.Bearer(agent+"x")).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	b.Do("GET", "/api/me", "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: "old"}) }).Want(t, http.StatusOK, nil)

	e := b.Do("POST", "/api/tokens", `{"name":"ci","scopes":["read"]}`).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	if !strings.Contains(e.Message, "--scope admin") {
		t.Errorf("no cure in %+v", e)
	}
	var made api.TokenCreated
	b.Do("POST", "/api/tokens", `{"name":"admin","scopes":["admin"],"expires_in_seconds":3600}`).Want(t, http.StatusCreated, &made)
	if made.Secret == "" || made.ID == "" || made.Kind != "service" || made.CreatedBy != "a local caller" || made.ExpiresAt == nil {
		t.Errorf("%+v", made)
	}
	b.Do("GET", "/status", "").WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	admin := apitest.Bearer(made.Secret)
	var status api.Status
	b.Do("GET", "/status", "", admin).Want(t, http.StatusOK, &status)
	if status.Open {
		t.Error("it says that it is open")
	}
	var list api.Tokens
	got := b.Do("GET", "/api/tokens", "", admin).Want(t, http.StatusOK, &list)
	if len(list.Tokens) != 2 || strings.Contains(string(got.Body), "secret") || strings.Contains(string(got.Body), made.Secret) || list.Tokens[0].LastUsedAt == nil {
		t.Errorf("%s", got.Body)
	}
	b.Do("DELETE", "/api/tokens/"+made.ID, "", admin).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("POST", "/api/tokens", `{"name":"ci","scopes":["read"]}`, admin).Want(t, http.StatusCreated, nil)
	b.Do("POST", "/api/tokens", `{"name":"ci","scopes":["submit"]}`, admin).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("POST", "/api/tokens", `{"name":"x","user":"nobody"}`, admin).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("POST", "/api/tokens", `{"name":"x","scopes":["read"],"expires_in_seconds":9223372036854775807}`, admin).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}

func TestUsers(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	admin := apitest.Bearer(apitest.Secret)
	var u api.User
	got := b.Do("PUT", "/api/users/anna", `{"email":"anna@example.com","password":"`+apitest.Password+`","role":"admin"}`, admin).Want(t, http.StatusOK, &u)
	if u.ID != "anna" || u.Role != "admin" || strings.Contains(string(got.Body), "assword") {
		t.Errorf("%s", got.Body)
	}
	b.Do("PUT", "/api/users/ben", `{"password":"short"}`, admin).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	b.Do("PUT", "/api/users/a%20b", `{}`, admin).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	b.Do("PUT", "/api/users/ben", `{"agents":["coder"]}`, admin).Want(t, http.StatusOK, nil)
	var list api.Users
	b.Do("GET", "/api/users", "", admin).Want(t, http.StatusOK, &list)
	if len(list.Users) != 2 || list.Users[1].ID != "ben" || list.Users[1].Role != "user" || !slices.Equal(list.Users[1].Agents, []string{"coder"}) {
		t.Errorf("%+v", list)
	}
	// Fields that are left out stay; an empty list removes the limits.
	for _, step := range []struct {
		body     string
		agents   []string
		disabled bool
	}{{`{"disabled":true}`, []string{"coder"}, true}, {`{"disabled":false,"agents":null}`, []string{"coder"}, false}, {`{"agents":[]}`, nil, false}} {
		var got api.User
		b.Do("PUT", "/api/users/ben", step.body, admin).Want(t, http.StatusOK, &got)
		if !slices.Equal(got.Agents, step.agents) || got.Disabled != step.disabled {
			t.Errorf("%s: %+v", step.body, got)
		}
	}
	// A login has the user's rights, and ends with the user.
	anna := b.Login("anna")
	var me api.Me
	b.Do("GET", "/api/me", "", anna).Want(t, http.StatusOK, &me)
	if me.Kind != "user" || me.ID != "anna" || me.Email != "anna@example.com" || me.ExpiresAt == nil || me.Open {
		t.Errorf("%+v", me)
	}
	id := submitAs(b, `{"prompt":"p"}`, anna)
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "", anna).Want(t, http.StatusOK, &task)
	if task.SourceUserID != "anna" || task.SourceUserEmail != "anna@example.com" {
		t.Errorf("%+v", task)
	}
	b.Do("DELETE", "/api/users/anna", "", admin).Want(t, http.StatusNoContent, nil)
	b.Do("GET", "/api/me", "", anna).Want(t, http.StatusUnauthorized, nil)
	b.Do("DELETE", "/api/users/anna", "", admin).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
}

// A caller that is limited to an agent sees that agent and its own things.
func TestALimitedCallerSeesItsAgentsAlone(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	for _, name := range []string{"mine", "theirs"} {
		b.AddAgent(name, 1)
		submitAs(b, `{"prompt":"for `+name+`","agent":"`+name+`"}`, apitest.Bearer(apitest.Secret))
		for _, queue := range []string{"agent:" + name, "bypass:" + name} {
			b.Do("POST", "/api/queue/pause", `{"queue":"`+queue+`"}`, apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, nil)
		}
	}
	submitAs(b, `{"prompt":"for all"}`, apitest.Bearer(apitest.Secret))
	me := apitest.Bearer(b.AddToken(identity.NewToken{Name: "me", Scopes: []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit}, Agents: []string{"mine"}}))
	get := func(path string) string {
		t.Helper()
		body := string(b.Do("GET", path, "", me).Want(t, http.StatusOK, nil).Body)
		if strings.Contains(body, "theirs") || strings.Contains(body, "for all") {
			t.Errorf("%s shows what is not its own: %s", path, body)
		}
		return body
	}
	for _, path := range []string{"/api/queue", "/api/queue?queue=agent:theirs", "/api/agents", "/api/history", "/api/activities", "/api/sessions", "/api/find/queue-"} {
		get(path)
	}
	var q api.Queue
	b.Do("GET", "/api/queue", "", me).Want(t, http.StatusOK, &q)
	if len(q.Tasks) != 1 || q.Tasks[0].PromptPreview != "for mine" || q.Depth != 3 || len(q.Paused) != 2 {
		t.Errorf("%+v", q)
	}
	var found api.Found
	b.Do("GET", "/api/find/queue-", "", me).Want(t, http.StatusOK, &found)
	if len(found.QueueIDs) != 1 || found.QueueIDs[0] != q.Tasks[0].QueueID {
		t.Errorf("%+v", found)
	}
	// The answers for others' tasks are exactly those for unknown tasks.
	all, err := b.Store.Find(t.Context(), "queue-", 10)
	if err != nil {
		t.Fatal(err)
	}
	const never = "queue-00000000000000000000000000"
	for _, id := range all {
		if id == q.Tasks[0].QueueID {
			continue
		}
		theirs := b.Do("GET", "/api/queue/"+id, "", me, apitest.Header("X-Request-Id", "req-same")).Want(t, http.StatusNotFound, nil)
		none := b.Do("GET", "/api/queue/"+never, "", me, apitest.Header("X-Request-Id", "req-same")).Want(t, http.StatusNotFound, nil)
		if strings.ReplaceAll(string(theirs.Body), id, never) != string(none.Body) {
			t.Errorf("%s\n%s", theirs.Body, none.Body)
		}
	}
	for _, name := range []string{"theirs", "nobody"} {
		e := b.Do("GET", "/api/agents/"+name+"/queue", "", me).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
		if e.Message != "no agent is named "+name+" among those that this token may use: mine" {
			t.Errorf("%+v", e)
		}
		b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"`+name+`"}`, me).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	}
	// A limited caller must name its agent.
	e := b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, me).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	if !strings.Contains(e.Message, "mine") {
		t.Errorf("%+v", e)
	}
	submitAs(b, `{"prompt":"p","agent":"mine"}`, me)
	// If its own agent is not registered, the error names no others.
	gone := apitest.Bearer(b.AddToken(identity.NewToken{Name: "gone", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Agents: []string{"gone"}}))
	if body := b.Do("GET", "/api/agents/gone/queue", "", gone).Want(t, http.StatusNotFound, nil).Body; strings.Contains(string(body), "theirs") {
		t.Errorf("%s", body)
	}
}

// A public address requires a token in the configuration, or a stored admin.
func TestAStoredAdminAllowsAPublicAddress(t *testing.T) {
	b := apitest.New(t)
	if err := httpapi.CheckListen("0.0.0.0:8080", b.Identity); signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Fatal(err)
	}
	b.AddToken(identity.NewToken{Name: "coder", Agent: "coder"})
	if httpapi.CheckListen("0.0.0.0:8080", b.Identity) == nil {
		t.Error("the token of an agent opened a public address to everyone")
	}
	b.AddToken(identity.NewToken{Name: "admin", Scopes: []signalbox.Scope{signalbox.ScopeAdmin}})
	if err := httpapi.CheckListen("0.0.0.0:8080", b.Identity); err != nil {
		t.Error(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := b.Server.Serve(ctx, public{l}); err != nil {
		t.Error(err)
	}
}

// public is a listener whose address others can reach.
type public struct{ net.Listener }

func (public) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 80} }

// The page works with its own policy: no inline script, its style by hash, and a form without an
// action.
func TestLoginPage(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	got := b.Do("GET", "/login?next=/api/agents", "").Want(t, http.StatusOK, nil)
	html, policy := string(got.Body), got.Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'",
		"require-trusted-types-for 'script'", "trusted-types 'none'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("%s", policy)
	}
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(html)
	if style == nil {
		t.Fatal("no style")
	}
	sum := sha256.Sum256([]byte(style[1]))
	if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Error("the policy does not allow the page's own style")
	}
	for _, m := range regexp.MustCompile(`<script[^>]*>([^<]*)</script>`).FindAllStringSubmatch(html, -1) {
		if m[1] != "" || !strings.Contains(m[0], `src="/login.js"`) {
			t.Errorf("an inline script: %s", m[0])
		}
	}
	if regexp.MustCompile(`\son[a-z]+=|\sstyle=|https?://`).MatchString(html) {
		t.Error("the page has an inline handler, an inline style or a foreign address")
	}
	for _, input := range regexp.MustCompile(`<input id="([a-z]+)"`).FindAllStringSubmatch(html, -1) {
		if !strings.Contains(html, `<label for="`+input[1]+`">`) {
			t.Errorf("input %s has no label", input[1])
		}
	}
	for _, want := range []string{`lang="en"`, `autocomplete="current-password"`, `autocomplete="username"`, `role="alert"`, "<noscript>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	script := b.Do("GET", "/login.js", "").Want(t, http.StatusOK, nil)
	if media := script.Header.Get("Content-Type"); media != "text/javascript; charset=utf-8" || strings.Contains(string(script.Body), "innerHTML") || strings.Contains(string(script.Body), "pathname") {
		t.Errorf("%s", media)
	}
	b.Do("GET", "/login?evil=1", "").Want(t, http.StatusBadRequest, nil)
}

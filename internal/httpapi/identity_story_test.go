package httpapi_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// identityStory is the last one: its first user is an admin, which closes the director.
func (s *session) identityStory() {
	s.ask("me", "Where nobody is asked for a token", "/api/me", "")
	s.ask("putUser", "", "/api/users/anna", `{"email":"anna@example.com","password":"correct horse battery staple","role":"admin"}`)
	s.ask("me", "From now on", "/api/me", "")
	anna := apitest.Cookie(s.ask("login", "", "/api/login", `{"user":"anna","password":"correct horse battery staple"}`))
	s.ask("login", "All ways to fail look the same", "/api/login", `{"user":"nobody","password":"correct horse battery staple"}`)
	open := s.Fixture
	s.Fixture = apitest.New(s.T, apitest.WithClock(&s.clock), apitest.WithToken)
	var link api.LoginLink
	s.ask("makeLink", "", "/api/login/link", "", apitest.Bearer(apitest.Secret)).Want(s.T, http.StatusCreated, &link)
	once := `{"code":"` + strings.TrimPrefix(link.Path, "/login#once=") + `"}`
	s.ask("useLink", "", "/api/login/once", once)
	s.ask("useLink", "A second time", "/api/login/once", once)
	s.Fixture = open
	s.ask("me", "With the cookie of a login, or a token", "/api/me", "", anna)
	s.ask("users", "", "/api/users", "", anna)
	s.ask("changePassword", "Without the one that it has", "/api/me/password", `{"password":"another right long one","new_password":"a new battery staple"}`, anna)
	anna = apitest.Cookie(s.ask("changePassword", "", "/api/me/password", `{"password":"correct horse battery staple","new_password":"a new battery staple"}`, anna))
	var agent api.TokenCreated
	s.ask("createToken", "For an agent, which registers and calls others with it", "/api/tokens", `{"name":"coder at home","agent":"coder"}`, anna)
	s.ask("createToken", "", "/api/tokens", `{"name":"coder-at-home","agent":"coder"}`, anna).Want(s.T, http.StatusCreated, &agent)
	var ci api.TokenCreated
	s.ask("createToken", "For a program that may use one agent", "/api/tokens", `{"name":"ci","scopes":["submit","read"],"agents":["coder"],"expires_in_seconds":2592000}`, anna).
		Want(s.T, http.StatusCreated, &ci)
	question, at := handshake.Question(ci.Secret, strings.Repeat("5e", 32), "127.0.0.1:8080"), localAddr("127.0.0.1:8080")
	s.ask("prove", "", handshake.Path, text(s.T, question), at)
	question.MAC = question.Nonce
	s.ask("prove", "Who does not know the token learns nothing", handshake.Path, text(s.T, question), at)
	s.ask("tokens", "", "/api/tokens", "", anna)
	s.ask("clearLane", "Without the right", "/api/agents/coder/queue/clear", "", apitest.Bearer(ci.Secret))
	s.ask("lane", "Of an agent beyond the limits of a token", "/api/agents/reviewer/queue", "", apitest.Bearer(ci.Secret))
	s.ask("submit", "With a name that is not the caller's", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, apitest.Bearer(ci.Secret), apitest.Header("X-Source-Agent", "reviewer"))
	s.ask("revokeToken", "", "/api/tokens/"+ci.ID, "", anna)
	s.Do("PUT", "/api/users/ben", `{}`, anna).Want(s.T, http.StatusOK, nil)
	s.ask("removeUser", "", "/api/users/ben", "", anna)
	s.ask("removeUser", "The last admin", "/api/users/anna", "", anna)
	s.ask("audit", "", "/api/audit?newest=true&limit=2", "", anna)
	s.ask("auditHead", "", "/api/audit/head", "", anna)
	s.ask("loginPage", "", "/login", "")
	s.ask("loginScript", "", "/login.js", "")
	s.ask("logout", "", "/api/logout", "", anna)
}

// localAddr makes a request come from a connection to that address.
func localAddr(addr string) apitest.Edit {
	return func(r *http.Request) {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))
		*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

package access_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Trinity: every logged-in user could clear and release any agent's queue.
func TestIncidentAnyUserCouldClearAnyQueue(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	user := show["user"]
	for _, path := range []string{"/api/agents/coder/queue/clear", "/api/agents/coder/queue/release", "/api/agents/other/queue/clear"} {
		b.Do("POST", path, "", user...).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
	var lane api.Lane
	b.Do("GET", "/api/agents/coder/queue", "", user...).Want(t, http.StatusOK, &lane)
	if lane.QueueLength != 1 {
		t.Errorf("a user without the right cleared the queue: %+v", lane)
	}
	row := b.LastAudit()
	if row.EventType != "access" || row.Action != "clearLane" || row.Result != "denied" || row.Severity != "warning" || row.UserID != "ben" || row.AgentName != "other" {
		t.Errorf("the refusal was recorded as %+v", row)
	}
	b.Do("POST", "/api/agents/coder/queue/clear", "", show["limited"]...).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("POST", "/api/agents/coder/queue/clear", "", show["release"]...).Want(t, http.StatusOK, nil)
	if row = b.LastAudit(); row.EventType != "agent_queue" || row.Action != "clear_queue" || row.Principal != "service:release" || row.Details != `{"cleared_count":1}` {
		t.Errorf("%+v", row)
	}
}

// Trinity: the header X-Source-Agent was trusted, and its audit chain recorded its value.
func TestIncidentForgedSourceAgentCertified(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	forged := apitest.Header("X-Source-Agent", "coder")
	for _, who := range []string{"other", "submit", "user", "cookie", "static", "admin"} {
		for _, path := range []string{"/api/queue/task", "/api/task", "/api/agents/other/chat", "/api/agents/other/task"} {
			e := b.Do("POST", path, `{"prompt":"p"}`, append(show[who], forged)...).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
			if !strings.Contains(e.Message, "X-Source-Agent says coder") || e.Hint == "" {
				t.Errorf("%s at %s: %+v", who, path, e)
			}
		}
		b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, append(show[who], apitest.Header("X-Signalbox-Execution", "queue-00000000000000000000000000"))...).
			Want(t, http.StatusForbidden, nil)
	}
	for _, row := range b.AuditRows() {
		if row.Principal == "agent:coder" {
			t.Errorf("the log says that it was coder: %+v", row)
		}
	}
	// With the agent's own token the header is accepted, and the body's source is not.
	id := submitAs(b, `{"prompt":"p","source":"user"}`, append(show["coder"], forged)...)
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, &task)
	if task.Source != "agent" || task.SourceAgent != "coder" || task.SourceUserID != "" {
		t.Errorf("%+v", task)
	}
	// Also at an open director.
	open := apitest.New(t)
	open.Do("POST", "/api/queue/task", `{"prompt":"p"}`, forged).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

func submitAs(b *apitest.Fixture, body string, edits ...apitest.Edit) string {
	b.T.Helper()
	var out api.SubmitResponse
	b.Do("POST", "/api/queue/task", body, edits...).Want(b.T, http.StatusCreated, &out)
	return out.QueueID
}

func TestAttackAnAgentSpeaksForAnother(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	e := b.Do("POST", "/api/agents", `{"name":"coder","kind":"demo","url":"http://127.0.0.1:9666"}`, show["other"]...).
		WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	if !strings.Contains(e.Message, "agent other") {
		t.Errorf("%+v", e)
	}
	b.Do("POST", "/api/agents/coder/heartbeat", `{"state":"idle"}`, show["other"]...).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.Do("POST", "/api/agents", `{"name":"other","kind":"demo","url":"http://127.0.0.1:9666"}`, show["user"]...).Want(t, http.StatusForbidden, nil)
	// An agent's own token allows any address for itself.
	b.Do("POST", "/api/agents", `{"name":"other","kind":"demo","url":"http://192.168.7.7:9000"}`, append(show["other"], apitest.From("192.168.7.7:1"))...).Want(t, http.StatusOK, nil)
	if row := b.LastAudit(); row.EventType != "agent" || row.Action != "change" || row.Principal != "agent:other" || row.IPAddress != "192.168.7.7" {
		t.Errorf("%+v", row)
	}
}

// With two headers, a proxy in front of the director may have checked the other one.
func TestAttackTwoCredentials(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	two := func(first, second string) apitest.Edit {
		return func(r *http.Request) {
			r.Header.Add("Authorization", first)
			r.Header.Add("Authorization", second)
		}
	}
	right := "Bearer " + apitest.Secret
	for _, e := range []apitest.Edit{two(right, "Bearer x"), two("Bearer x", right), two(right, right), two("Basic x", right)} {
		b.Do("GET", "/status", "", e).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	for _, v := range []string{right + ", " + right, "Bearer " + apitest.Secret + "\x00", "Bearer", "bearer:" + apitest.Secret, apitest.Secret} {
		b.Do("GET", "/status", "", apitest.Header("Authorization", v)).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	// Another site on the same host can add its own cookie.
	b.Do("GET", "/status", "", append(show["cookie"], func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: "x"}) })...).
		WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	// A token in a cookie and a login in a header are not accepted.
	token := b.AddToken(identity.NewToken{Name: "t", User: "anna"})
	b.Do("GET", "/status", "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: token}) }).Want(t, http.StatusUnauthorized, nil)
	login := b.Do("POST", "/api/login", `{"user":"anna","password":"`+apitest.Password+`"}`).Cookies()[0].Value
	b.Do("GET", "/status", "", apitest.Bearer(login)).Want(t, http.StatusUnauthorized, nil)
	// A valid cookie does not help a wrong token.
	b.Do("GET", "/status", "", append(show["cookie"], apitest.Bearer("sbxt_x_y"))...).Want(t, http.StatusUnauthorized, nil)
}

// A page of another site cannot use the cookie of a login.
func TestAttackCookieFromAnotherSite(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	for name, edits := range map[string][]apitest.Edit{
		"a form":       {apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Content-Type", "application/x-www-form-urlencoded")},
		"a fetch":      {apitest.Header("Origin", "https://attacker.example"), apitest.Header("Sec-Fetch-Site", "cross-site")},
		"another port": {apitest.Header("Origin", "http://127.0.0.1:9999")},
	} {
		for _, path := range []string{"/api/queue/task", "/api/agents/coder/queue/release", "/api/tokens", "/api/logout", "/api/login"} {
			if got := b.Do("POST", path, `{"prompt":"p"}`, append(edits, show["cookie"]...)...); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s reached %s: %d", name, path, got.StatusCode)
			}
		}
	}
	form := apitest.Header("Content-Type", "application/x-www-form-urlencoded")
	b.Do("POST", "/api/login", "user=anna&password="+apitest.Password, form).WantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
	b.Do("POST", "/api/agents/coder/queue/release", "", append(show["cookie"], apitest.Header("Sec-Fetch-Site", "same-origin"))...).Want(t, http.StatusOK, nil)
}

// A secret that was planted in the browser does not become that of the login.
func TestAttackSessionFixation(t *testing.T) {
	b, _ := apitest.NewWithUsers(t)
	credentials := `{"user":"anna","password":"` + apitest.Password + `"}`
	first := b.Do("POST", "/api/login", credentials).Want(t, http.StatusOK, nil)
	second := b.Do("POST", "/api/login", credentials, apitest.Cookie(first)).Want(t, http.StatusOK, nil)
	c := second.Cookies()[0]
	if c.Value == first.Cookies()[0].Value {
		t.Fatal("the login kept the secret that was there before")
	}
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.MaxAge != int(identity.LoginFor/time.Second) || c.Domain != "" {
		t.Errorf("%+v", c)
	}
	b.Do("GET", "/api/me", "", apitest.Cookie(first)).Want(t, http.StatusUnauthorized, nil)
	b.Do("GET", "/api/me", "", apitest.Cookie(second)).Want(t, http.StatusOK, nil)
	planted := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: "planted"}) }
	if got := b.Do("POST", "/api/login", credentials, planted, apitest.Header("X-Forwarded-Proto", "https")).Cookies()[0]; got.Value == "planted" || !got.Secure {
		t.Errorf("%+v", got)
	}
	// Logging out ends it on the director, not only in the browser.
	out := b.Do("POST", "/api/logout", "", apitest.Cookie(second)).Want(t, http.StatusNoContent, nil)
	if gone := out.Cookies()[0]; gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("%+v", gone)
	}
	b.Do("GET", "/api/me", "", apitest.Cookie(second)).Want(t, http.StatusUnauthorized, nil)
	if row := b.LastAudit(); row.Action != "logout" || row.UserID != "anna" {
		t.Errorf("%+v", row)
	}
}

// Neither the status nor the text reveals whether a user exists.
func TestAttackUserEnumeration(t *testing.T) {
	b, _ := apitest.NewWithUsers(t)
	try := func(user, pass string) string {
		got := b.Do("POST", "/api/login", fmt.Sprintf(`{"user":%q,"password":%q}`, user, pass), apitest.Header("X-Request-Id", "req-same"))
		got.WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
		if len(got.Cookies()) > 0 {
			t.Errorf("a failed login of %s sets a cookie", user)
		}
		return string(got.Body)
	}
	known := try("anna", "a wrong long password")
	for _, user := range []string{"nobody", "ben", "root", "a b", "anna\r\nx"} {
		if got := try(user, "a wrong long password"); got != known {
			t.Errorf("%s: %s\nbut anna: %s", user, got, known)
		}
	}
	for _, body := range []string{`{"user":"anna","password":"` + strings.Repeat("x", 2000) + `"}`, `{"user":"anna"}`, `{"user":"anna","password":""}`} {
		b.Do("POST", "/api/login", body).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	b.Do("POST", "/api/login", `{"user":"anna","password":"`+strings.Repeat("x", 2<<20)+`"}`).Want(t, http.StatusRequestEntityTooLarge, nil)
	// A typed user name is recorded only if the user exists.
	for _, row := range b.AuditRows() {
		if row.EventType == "login" && row.Result == "failed" && row.Resource != "user:anna" && row.Resource != "user:ben" && row.Resource != "an unknown user" {
			t.Errorf("%+v", row)
		}
		if strings.Contains(fmt.Sprint(row), "long password") {
			t.Errorf("a password was recorded: %+v", row)
		}
	}
}

func TestAttackGuessingPasswords(t *testing.T) {
	b, _ := apitest.NewWithUsers(t)
	for range 10 {
		b.Do("POST", "/api/login", `{"user":"anna","password":"a wrong long password"}`).Want(t, http.StatusUnauthorized, nil)
	}
	got := b.Do("POST", "/api/login", `{"user":"anna","password":"`+apitest.Password+`"}`)
	got.WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	if got.Header.Get("Retry-After") == "" || len(got.Cookies()) > 0 {
		t.Errorf("%v", got.Header)
	}
	b.Do("POST", "/api/login", `{"user":"anna","password":"`+apitest.Password+`"}`, apitest.From("192.0.2.7:1")).Want(t, http.StatusOK, nil)
}

// Wrong tokens from the same address do not delay a valid token, and guessing does not fill the
// log.
func TestARightTokenIsNeverHeldUp(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 2)
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Token = long })
	own := b.AddToken(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	for i := range 3 * access.GuessBurst {
		b.Do("GET", "/status", "", apitest.Bearer(fmt.Sprint("guess", i)))
	}
	b.Do("GET", "/status", "", apitest.Bearer("guess")).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	b.Do("GET", "/status", "", apitest.Bearer(own)).Want(t, http.StatusOK, nil)
	b.Do("GET", "/status", "", apitest.Bearer(long)).Want(t, http.StatusOK, nil)
	var log api.AuditLog
	b.Do("GET", "/api/audit", "", apitest.Bearer(long)).Want(t, http.StatusOK, &log)
	if len(log.Rows) != 0 {
		t.Errorf("wrong tokens fill the log: %+v", log.Rows)
	}
}

// The end of a token ends its open requests at once.
func TestARevokedTokenEndsItsStreams(t *testing.T) {
	for _, how := range []string{"revoked", "expired", "revoked by another director"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := apitest.New(t, apitest.WithToken)
				tok, own, err := b.Identity.CreateToken(t.Context(), identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Expires: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan apitest.Reply, 1)
				go func() { ended <- b.Do("GET", "/api/events", "", apitest.Bearer(own)) }()
				synctest.Wait()
				if b.Server.OpenStreams() != 1 {
					t.Fatal("no stream")
				}
				switch how {
				case "revoked":
					b.Do("DELETE", "/api/tokens/"+tok.ID, "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusNoContent, nil)
				case "expired":
					time.Sleep(time.Hour)
				default: // this one gets no requests
					other, err := identity.New(t.Context(), b.Store, identity.Options{Static: apitest.Secret})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := other.RevokeToken(t.Context(), tok.ID); err != nil {
						t.Fatal(err)
					}
					time.Sleep(identity.RefreshEvery)
				}
				synctest.Wait()
				select {
				case got := <-ended:
					got.Want(t, http.StatusOK, nil)
				default:
					t.Fatal("the stream goes on")
				}
				b.Do("GET", "/api/events", "", apitest.Bearer(own)).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
			})
		})
	}
}

// Guessing a guessable token is slowed down, even if a guess is right. Others are not affected, and
// the address is free again later.
func TestAttackGuessingTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t, apitest.WithToken)
		there := apitest.From("203.0.113.9:1000")
		for i := range access.GuessBurst {
			b.Do("GET", "/status", "", apitest.Bearer(fmt.Sprint("guess", i)), there).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
		}
		got := b.Do("GET", "/status", "", apitest.Bearer(apitest.Secret), apitest.From("203.0.113.9:2000"))
		got.WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
		if got.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		b.Do("GET", "/status", "", apitest.Bearer(apitest.Secret), apitest.From("203.0.113.10:1")).Want(t, http.StatusOK, nil)
		time.Sleep(access.GuessRefill)
		b.Do("GET", "/status", "", apitest.Bearer(apitest.Secret), there).Want(t, http.StatusOK, nil)
		// A caller can choose from the whole /64 of its IPv6 address.
		for i := range access.GuessBurst {
			b.Do("GET", "/status", "", apitest.Bearer("guess"), apitest.From(fmt.Sprintf("[2001:db8::%d]:1", i+1)))
		}
		b.Do("GET", "/status", "", apitest.Bearer(apitest.Secret), apitest.From("[2001:db8::ffff]:1")).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	})
}

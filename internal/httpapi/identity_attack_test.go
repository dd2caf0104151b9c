package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// rows returns the audit log, whose chain is sound.
func (b *box) rows() []signalbox.Audit {
	b.t.Helper()
	var log api.AuditLog
	b.do("GET", "/api/audit?limit=1000", "", bearer(secret)).want(b.t, http.StatusOK, &log)
	var rows []signalbox.Audit
	for i := range log.Rows {
		rows = append(rows, signalbox.Audit(log.Rows[i]))
		var prev *signalbox.Audit
		if i > 0 {
			prev = &rows[i-1]
		}
		if err := signalbox.CheckAudit(prev, &rows[i]); err != nil {
			b.t.Fatal(err)
		}
	}
	return rows
}

// last returns the newest audit row.
func (b *box) last() signalbox.Audit {
	b.t.Helper()
	rows := b.rows()
	if len(rows) == 0 {
		b.t.Fatal("nothing was recorded")
	}
	return rows[len(rows)-1]
}

// Trinity: whoever was logged in could clear and release any agent's queue.
func TestIncidentAnyUserCouldClearAnyQueue(t *testing.T) {
	b, show := newPeople(t)
	user := show["user"]
	for _, path := range []string{"/api/agents/coder/queue/clear", "/api/agents/coder/queue/release", "/api/agents/other/queue/clear"} {
		b.do("POST", path, "", user...).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
	var lane api.Lane
	b.do("GET", "/api/agents/coder/queue", "", user...).want(t, http.StatusOK, &lane)
	if lane.QueueLength != 1 {
		t.Errorf("a user without the right cleared the queue: %+v", lane)
	}
	row := b.last()
	if row.EventType != "access" || row.Action != "clearLane" || row.Result != "denied" || row.Severity != "warning" || row.UserID != "ben" || row.AgentName != "other" {
		t.Errorf("the refusal was recorded as %+v", row)
	}
	b.do("POST", "/api/agents/coder/queue/clear", "", show["limited"]...).wantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.do("POST", "/api/agents/coder/queue/clear", "", show["release"]...).want(t, http.StatusOK, nil)
	if row = b.last(); row.EventType != "agent_queue" || row.Action != "clear_queue" || row.Principal != "service:release" || row.Details != `{"cleared_count":1}` {
		t.Errorf("%+v", row)
	}
}

// Trinity: the header X-Source-Agent was believed, and its audit chain
// certified what it said.
func TestIncidentForgedSourceAgentCertified(t *testing.T) {
	b, show := newPeople(t)
	forged := header("X-Source-Agent", "coder")
	for _, who := range []string{"other", "submit", "user", "cookie", "static", "admin"} {
		for _, path := range []string{"/api/queue/task", "/api/task", "/api/agents/other/chat", "/api/agents/other/task"} {
			e := b.do("POST", path, `{"prompt":"p"}`, append(show[who], forged)...).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
			if !strings.Contains(e.Message, "X-Source-Agent says coder") || e.Hint == "" {
				t.Errorf("%s at %s: %+v", who, path, e)
			}
		}
		b.do("POST", "/api/queue/task", `{"prompt":"p"}`, append(show[who], header("X-Signalbox-Execution", "queue-00000000000000000000000000"))...).
			want(t, http.StatusForbidden, nil)
	}
	for _, row := range b.rows() {
		if row.Principal == "agent:coder" {
			t.Errorf("the log says that it was coder: %+v", row)
		}
	}
	// From its own token it is believed, and what the body says is not.
	id := b.submitAs(`{"prompt":"p","source":"user"}`, append(show["coder"], forged)...)
	var task api.Task
	b.do("GET", "/api/queue/"+id, "", bearer(secret)).want(t, http.StatusOK, &task)
	if task.Source != "agent" || task.SourceAgent != "coder" || task.SourceUserID != "" {
		t.Errorf("%+v", task)
	}
	// Also where nobody is asked for a token.
	open := newBox(t)
	open.do("POST", "/api/queue/task", `{"prompt":"p"}`, forged).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

func (b *box) submitAs(body string, edits ...edit) string {
	b.t.Helper()
	var out api.SubmitResponse
	b.do("POST", "/api/queue/task", body, edits...).want(b.t, http.StatusCreated, &out)
	return out.QueueID
}

func TestAttackAnAgentSpeaksForAnother(t *testing.T) {
	b, show := newPeople(t)
	e := b.do("POST", "/api/agents", `{"name":"coder","kind":"demo","url":"http://127.0.0.1:9666"}`, show["other"]...).
		wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	if !strings.Contains(e.Message, "agent other") {
		t.Errorf("%+v", e)
	}
	b.do("POST", "/api/agents/coder/heartbeat", `{"state":"idle"}`, show["other"]...).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.do("POST", "/api/agents", `{"name":"other","kind":"demo","url":"http://127.0.0.1:9666"}`, show["user"]...).want(t, http.StatusForbidden, nil)
	// Its own token vouches for its own address, wherever that is.
	b.do("POST", "/api/agents", `{"name":"other","kind":"demo","url":"http://192.168.7.7:9000"}`, append(show["other"], from("192.168.7.7:1"))...).want(t, http.StatusOK, nil)
	if row := b.last(); row.EventType != "agent" || row.Action != "change" || row.Principal != "agent:other" || row.IPAddress != "192.168.7.7" {
		t.Errorf("%+v", row)
	}
}

// Of two headers what is in front of the director may have looked at the
// other one.
func TestAttackTwoCredentials(t *testing.T) {
	b, show := newPeople(t)
	two := func(first, second string) edit {
		return func(r *http.Request) {
			r.Header.Add("Authorization", first)
			r.Header.Add("Authorization", second)
		}
	}
	right := "Bearer " + secret
	for _, e := range []edit{two(right, "Bearer x"), two("Bearer x", right), two(right, right), two("Basic x", right)} {
		b.do("GET", "/status", "", e).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	for _, v := range []string{right + ", " + right, "Bearer " + secret + "\x00", "Bearer", "bearer:" + secret, secret} {
		b.do("GET", "/status", "", header("Authorization", v)).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	// Another site on the same host can add a cookie of its own.
	b.do("GET", "/status", "", append(show["cookie"], func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: "x"}) })...).
		wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	// A token in a cookie, and a login in a header, are nothing.
	token := b.token(identity.NewToken{Name: "t", User: "anna"})
	b.do("GET", "/status", "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: token}) }).want(t, http.StatusUnauthorized, nil)
	login := b.do("POST", "/api/login", `{"user":"anna","password":"`+password+`"}`).Cookies()[0].Value
	b.do("GET", "/status", "", bearer(login)).want(t, http.StatusUnauthorized, nil)
	// A token that is shown and wrong is not made good by a cookie.
	b.do("GET", "/status", "", append(show["cookie"], bearer("sbxt_x_y"))...).want(t, http.StatusUnauthorized, nil)
}

// The cookie of a login is of no use to a page of another site.
func TestAttackCookieFromAnotherSite(t *testing.T) {
	b, show := newPeople(t)
	for name, edits := range map[string][]edit{
		"a form":       {header("Sec-Fetch-Site", "cross-site"), header("Content-Type", "application/x-www-form-urlencoded")},
		"a fetch":      {header("Origin", "https://attacker.example"), header("Sec-Fetch-Site", "cross-site")},
		"another port": {header("Origin", "http://127.0.0.1:9999")},
	} {
		for _, path := range []string{"/api/queue/task", "/api/agents/coder/queue/release", "/api/tokens", "/api/logout", "/api/login"} {
			if got := b.do("POST", path, `{"prompt":"p"}`, append(edits, show["cookie"]...)...); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s reached %s: %d", name, path, got.StatusCode)
			}
		}
	}
	form := header("Content-Type", "application/x-www-form-urlencoded")
	b.do("POST", "/api/login", "user=anna&password="+password, form).wantError(t, http.StatusUnsupportedMediaType, signalbox.CodeUnsupportedMedia)
	b.do("POST", "/api/agents/coder/queue/release", "", append(show["cookie"], header("Sec-Fetch-Site", "same-origin"))...).want(t, http.StatusOK, nil)
}

// A secret that someone put into the browser before does not become that of
// the login.
func TestAttackSessionFixation(t *testing.T) {
	b, _ := newPeople(t)
	credentials := `{"user":"anna","password":"` + password + `"}`
	first := b.do("POST", "/api/login", credentials).want(t, http.StatusOK, nil)
	second := b.do("POST", "/api/login", credentials, cookie(first)).want(t, http.StatusOK, nil)
	c := second.Cookies()[0]
	if c.Value == first.Cookies()[0].Value {
		t.Fatal("the login kept the secret that was there before")
	}
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.MaxAge != int(identity.LoginFor/time.Second) || c.Domain != "" {
		t.Errorf("%+v", c)
	}
	b.do("GET", "/api/me", "", cookie(first)).want(t, http.StatusUnauthorized, nil)
	b.do("GET", "/api/me", "", cookie(second)).want(t, http.StatusOK, nil)
	planted := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "signalbox_login", Value: "planted"}) }
	if got := b.do("POST", "/api/login", credentials, planted, header("X-Forwarded-Proto", "https")).Cookies()[0]; got.Value == "planted" || !got.Secure {
		t.Errorf("%+v", got)
	}
	// Logging out ends it on the director, not only in the browser.
	out := b.do("POST", "/api/logout", "", cookie(second)).want(t, http.StatusNoContent, nil)
	if gone := out.Cookies()[0]; gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("%+v", gone)
	}
	b.do("GET", "/api/me", "", cookie(second)).want(t, http.StatusUnauthorized, nil)
	if row := b.last(); row.Action != "logout" || row.UserID != "anna" {
		t.Errorf("%+v", row)
	}
}

// Who there is shows neither in status nor in text.
func TestAttackUserEnumeration(t *testing.T) {
	b, _ := newPeople(t)
	try := func(user, pass string) string {
		got := b.do("POST", "/api/login", fmt.Sprintf(`{"user":%q,"password":%q}`, user, pass), header(requestID, "req-same"))
		got.wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
		if len(got.Cookies()) > 0 {
			t.Errorf("a failed login of %s sets a cookie", user)
		}
		return string(got.body)
	}
	known := try("anna", "a wrong long password")
	for _, user := range []string{"nobody", "ben", "root", "a b", "anna\r\nx"} {
		if got := try(user, "a wrong long password"); got != known {
			t.Errorf("%s: %s\nbut anna: %s", user, got, known)
		}
	}
	for _, body := range []string{`{"user":"anna","password":"` + strings.Repeat("x", 2000) + `"}`, `{"user":"anna"}`, `{"user":"anna","password":""}`} {
		b.do("POST", "/api/login", body).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	b.do("POST", "/api/login", `{"user":"anna","password":"`+strings.Repeat("x", 2<<20)+`"}`).want(t, http.StatusRequestEntityTooLarge, nil)
	// What was typed as the user is not kept unless there is one.
	for _, row := range b.rows() {
		if row.EventType == "login" && row.Result == "failed" && row.Resource != "user:anna" && row.Resource != "user:ben" && row.Resource != "an unknown user" {
			t.Errorf("%+v", row)
		}
		if strings.Contains(fmt.Sprint(row), "long password") {
			t.Errorf("a password was recorded: %+v", row)
		}
	}
}

func TestAttackGuessingPasswords(t *testing.T) {
	b, _ := newPeople(t)
	for range 10 {
		b.do("POST", "/api/login", `{"user":"anna","password":"a wrong long password"}`).want(t, http.StatusUnauthorized, nil)
	}
	got := b.do("POST", "/api/login", `{"user":"anna","password":"`+password+`"}`)
	got.wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	if got.Header.Get("Retry-After") == "" || len(got.Cookies()) > 0 {
		t.Errorf("%v", got.Header)
	}
	b.do("POST", "/api/login", `{"user":"anna","password":"`+password+`"}`, from("192.0.2.7:1")).want(t, http.StatusOK, nil)
}

// Whoever has a right token is not held up by wrong ones from the same
// address, and guessing does not fill the log.
func TestARightTokenIsNeverHeldUp(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 2)
	b := newBox(t, func(o *options) { o.director.Token = long })
	own := b.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	for i := range 3 * httpapi.BadBurst {
		b.do("GET", "/status", "", bearer(fmt.Sprint("guess", i)))
	}
	b.do("GET", "/status", "", bearer("guess")).wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	b.do("GET", "/status", "", bearer(own)).want(t, http.StatusOK, nil)
	b.do("GET", "/status", "", bearer(long)).want(t, http.StatusOK, nil)
	var log api.AuditLog
	b.do("GET", "/api/audit", "", bearer(long)).want(t, http.StatusOK, &log)
	if len(log.Rows) != 0 {
		t.Errorf("wrong tokens fill the log: %+v", log.Rows)
	}
}

// What ends a token ends what its holder has open, at once.
func TestARevokedTokenEndsItsStreams(t *testing.T) {
	for _, how := range []string{"revoked", "expired", "revoked by another director"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBox(t, withToken)
				tok, own, err := b.id.CreateToken(t.Context(), identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Expires: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan reply, 1)
				go func() { ended <- b.do("GET", "/api/events", "", bearer(own)) }()
				synctest.Wait()
				if b.dir.Streams() != 1 {
					t.Fatal("no stream")
				}
				switch how {
				case "revoked":
					b.do("DELETE", "/api/tokens/"+tok.ID, "", bearer(secret)).want(t, http.StatusNoContent, nil)
				case "expired":
					time.Sleep(time.Hour)
				default: // and nobody asks this one anything
					other, err := identity.New(t.Context(), b.store, identity.Options{Static: secret})
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
					got.want(t, http.StatusOK, nil)
				default:
					t.Fatal("the stream goes on")
				}
				b.do("GET", "/api/events", "", bearer(own)).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
			})
		})
	}
}

package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// Actions are recorded with the authenticated caller. Reads, and actions on the caller's own things,
// are not.
func TestWhatIsAudited(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	anna, ben := show["cookie"], show["user"]
	begun := len(b.AuditRows())
	own := submitAs(b, `{"prompt":"p"}`, ben...)
	other := submitAs(b, `{"prompt":"p","agent":"coder"}`, ben...)
	var made api.TokenCreated
	for _, step := range []struct {
		method, path, body string
		who                []apitest.Edit
		want               string // event/action principal agent resource severity; "" for nothing
	}{
		{"GET", "/api/queue", "", anna, ""},
		{"POST", "/api/queue/" + own + "/cancel", "", ben, ""},
		{"POST", "/api/queue/" + other + "/cancel", "", anna, "task/cancel user:anna coder " + other + " info"},
		{"POST", "/api/queue/pause", `{"queue":"agent:coder","reason":"x"}`, anna, "queue/pause user:anna coder agent:coder info"},
		{"POST", "/api/queue/resume", `{}`, anna, "queue/resume user:anna  all queues info"},
		{"POST", "/api/agents/coder/queue/clear", "", anna, "agent_queue/clear_queue user:anna coder agent:coder info"},
		{"POST", "/api/agents/coder/queue/release", "", anna, "agent_queue/force_release user:anna coder agent:coder warning"},
		{"POST", "/api/agents", `{"name":"new","kind":"demo","url":"http://127.0.0.1:9100"}`, anna, "agent/register user:anna new http://127.0.0.1:9100 info"},
		{"POST", "/api/agents", `{"name":"new","kind":"demo","url":"http://127.0.0.1:9100"}`, anna, ""},
		{"POST", "/api/agents", `{"name":"new","kind":"demo","url":"http://127.0.0.1:9100","slots":3}`, anna, "agent/change user:anna new http://127.0.0.1:9100 info"},
		{"DELETE", "/api/agents/new", "", anna, "agent/remove user:anna new http://127.0.0.1:9100 info"},
		{"POST", "/api/sessions/talk-1/archive", "", ben, "session/archive user:ben coder talk-1 info"},
		{"POST", "/api/sessions/talk-1/restore", "", ben, "session/restore user:ben coder talk-1 info"},
		{"PUT", "/api/users/carl", `{"email":"carl@example.com","password":"` + apitest.Password + `"}`, anna, "user/put user:anna  user:carl info"},
		{"DELETE", "/api/users/carl", "", anna, "user/remove user:anna  user:carl info"},
		{"POST", "/api/tokens", `{"name":"ci","scopes":["read"]}`, anna, "token/create user:anna  TOKEN info"},
		{"DELETE", "/api/tokens/TOKEN", "", anna, "token/revoke user:anna  TOKEN info"},
		{"POST", "/api/tokens", `{}`, ben, "access/createToken user:ben  POST /api/tokens warning"},
		{"POST", "/api/logout", "", anna, "login/logout user:anna  user:anna info"},
	} {
		before := b.AuditRows()
		got := b.Do(step.method, strings.ReplaceAll(step.path, "TOKEN", made.ID), step.body, step.who...)
		if step.path == "/api/tokens" && got.StatusCode == http.StatusCreated {
			got.Want(t, http.StatusCreated, &made)
		}
		after := b.AuditRows()[len(before):]
		if step.want == "" {
			if len(after) != 0 || got.StatusCode >= 300 {
				t.Errorf("%s %s (%d) was recorded: %+v", step.method, step.path, got.StatusCode, after)
			}
			continue
		}
		if len(after) != 1 {
			t.Errorf("%s %s (%d): %d rows: %s", step.method, step.path, got.StatusCode, len(after), got.Body)
			continue
		}
		r := after[0]
		said := fmt.Sprintf("%s/%s %s %s %s %s", r.EventType, r.Action, r.Principal, r.AgentName, r.Resource, r.Severity)
		if said != strings.ReplaceAll(step.want, "TOKEN", made.ID) {
			t.Errorf("recorded %q, want %q", said, step.want)
		}
		if r.UserID == "" || r.IPAddress != "127.0.0.1" || (r.Details != "" && !json.Valid([]byte(r.Details))) {
			t.Errorf("%+v", r)
		}
		if strings.Contains(fmt.Sprint(r), apitest.Password) || (made.Secret != "" && strings.Contains(fmt.Sprint(r), made.Secret)) {
			t.Errorf("a secret was recorded: %+v", r)
		}
	}
	if len(b.AuditRows()) == begun {
		t.Fatal("nothing was recorded")
	}
}

// A header cannot break a line of the log, or hide text in it.
func TestAttackHeadersInTheAuditLog(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	b.Do("POST", "/api/agents/coder/queue/clear", "", append(show["release"], apitest.Header("User-Agent", "a\r\nevil: 1\x1b[2J\u202e"+strings.Repeat("x", 5000)),
		apitest.Header("X-Forwarded-For", "203.0.113.7"), apitest.Header("X-User", "root"))...).Want(t, http.StatusOK, nil)
	row := b.LastAudit()
	if !strings.HasPrefix(row.UserAgent, "a??evil: 1?[2J?xx") || len([]rune(row.UserAgent)) != 200 {
		t.Errorf("%q", row.UserAgent)
	}
	if row.IPAddress != "127.0.0.1" || row.Principal != "service:release" || row.UserID != "" {
		t.Errorf("%+v", row)
	}
}

// Strangers cannot fill the log with refusals; it records how many were left out.
func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, show := apitest.NewWithUsers(t)
		begun := len(b.AuditRows())
		for range 100 {
			b.Do("POST", "/api/tokens", `{}`, show["user"]...).Want(t, http.StatusForbidden, nil)
		}
		if n := len(b.AuditRows()) - begun; n != access.GuessBurst {
			t.Errorf("%d rows of 100 refusals, want %d", n, access.GuessBurst)
		}
		b.Do("POST", "/api/tokens", `{}`, append(show["user"], apitest.From("192.0.2.1:1"))...).Want(t, http.StatusForbidden, nil)
		if row := b.LastAudit(); row.Details != `{"left_out":90}` || row.IPAddress != "192.0.2.1" {
			t.Errorf("%+v", row)
		}
		for i := range 1000 {
			b.Do("POST", "/api/tokens", `{}`, append(show["user"], apitest.From(fmt.Sprintf("198.51.%d.%d:1", i/250, i%250)))...).Want(t, http.StatusForbidden, nil)
		}
		if n := len(b.AuditRows()) - begun; n > access.AllDenials+access.GuessBurst {
			t.Errorf("%d rows from many addresses", n)
		}
		time.Sleep(time.Minute)
		before := len(b.AuditRows())
		b.Do("POST", "/api/tokens", `{}`, show["user"]...).Want(t, http.StatusForbidden, nil)
		if len(b.AuditRows()) != before+1 {
			t.Error("a minute later nothing is recorded")
		}
	})
}

func TestAuditPages(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	var empty api.AuditHead
	apitest.New(t).Do("GET", "/api/audit/head", "").Want(t, http.StatusOK, &empty)
	if empty.Seq != 0 || empty.Hash != signalbox.AuditRoot || empty.At != nil {
		t.Errorf("%+v", empty)
	}
	for range 5 {
		b.Do("POST", "/api/agents/coder/queue/release", "", show["release"]...).Want(t, http.StatusOK, nil)
	}
	rows := b.AuditRows()
	var head api.AuditHead
	b.Do("GET", "/api/audit/head", "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, &head)
	if newest := rows[len(rows)-1]; head.Seq != newest.Seq || head.Hash != newest.Hash || !head.At.Equal(newest.At) {
		t.Errorf("%+v, want %+v", head, newest)
	}
	seen := int64(0)
	for page := "?limit=2"; page != ""; {
		var log api.AuditLog
		b.Do("GET", "/api/audit"+page, "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, &log)
		for _, r := range log.Rows {
			if r.Seq != seen+1 {
				t.Fatalf("row %d follows row %d", r.Seq, seen)
			}
			seen = r.Seq
		}
		page = ""
		if log.Next != 0 {
			page = fmt.Sprintf("?limit=2&after=%d", log.Next)
		}
	}
	if seen != head.Seq {
		t.Errorf("the pages end at %d of %d", seen, head.Seq)
	}
	for query, want := range map[string]int{
		"?newest=true&limit=1": 1, "?event_type=agent_queue": 5, "?severity=warning&agent=coder": 5, "?user_id=anna": 1, "?action=login&since=1h": 1,
		"?agent=other": 0, "?after=1000": 0, "?since=2999-01-01T00:00:00Z": 0,
	} {
		var log api.AuditLog
		b.Do("GET", "/api/audit"+query, "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, &log)
		if len(log.Rows) != want {
			t.Errorf("%s: %d rows, want %d", query, len(log.Rows), want)
		}
	}
	for _, query := range []string{"?newest=maybe", "?after=-1", "?limit=0", "?since=x", "?who=x"} {
		b.Do("GET", "/api/audit"+query, "", apitest.Bearer(apitest.Secret)).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
}

// noAudit is a store whose audit log cannot be written.
type noAudit struct{ *memory.Store }

func (noAudit) AppendAudit(context.Context, signalbox.Audit) (signalbox.Audit, error) {
	return signalbox.Audit{}, errors.New("disk full")
}

// An action that succeeded but was not recorded is an error that says both.
func TestWhatCannotBeRecordedIsAnError(t *testing.T) {
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	b := &apitest.Fixture{T: t, Store: memory.New(memory.Options{}), Live: &apitest.Live{}}
	b.Engine = engine.New(noAudit{b.Store}, engine.Options{Sealer: sealer})
	b.Engine.SetLive(b.Live)
	b.AddAgent("coder", 1)
	if b.Identity, err = identity.New(t.Context(), b.Store, identity.Options{Cost: identity.Cost{MemoryKiB: 8, Passes: 1}}); err != nil {
		t.Fatal(err)
	}
	if b.Server, err = httpapi.New(httpapi.Config{Engine: b.Engine, Identity: b.Identity}); err != nil {
		t.Fatal(err)
	}
	e := b.Do("POST", "/api/agents/coder/queue/clear", "").WantError(t, http.StatusInternalServerError, signalbox.CodeInternal)
	if !strings.Contains(e.Message, "it was done") || !strings.Contains(e.Message, "not be recorded") || e.Retryable || strings.Contains(e.Message, "disk") {
		t.Errorf("%+v", e)
	}
	b.AddUser(identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin, Password: apitest.Password})
	got := b.Do("POST", "/api/login", `{"user":"anna","password":"`+apitest.Password+`"}`)
	got.Want(t, http.StatusInternalServerError, nil)
	if len(got.Cookies()) != 0 {
		t.Error("a login that could not be recorded counts")
	}
	rows, err := b.Store.Tokens(t.Context())
	if err != nil || len(rows) != 0 {
		t.Errorf("it left %v, %v", rows, err)
	}
}

// once is a store that allows only one change of a task.
type once struct {
	*memory.Store
	left atomic.Int64
}

func (o *once) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	if o.left.Add(-1) < 0 {
		return signalbox.Task{}, errors.New("disk full")
	}
	return o.Store.Apply(ctx, c, now)
}

// A partial clear or release is recorded, although the caller gets an error.
func TestWhatWasDoneInPartIsRecorded(t *testing.T) {
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	b := &apitest.Fixture{T: t, Store: memory.New(memory.Options{}), Live: &apitest.Live{}}
	s := &once{Store: b.Store}
	b.Engine = engine.New(s, engine.Options{Sealer: sealer})
	b.Engine.SetLive(b.Live)
	a := b.AddAgent("coder", 2)
	if b.Server, err = httpapi.New(httpapi.Config{Engine: b.Engine}); err != nil {
		t.Fatal(err)
	}
	last := func() signalbox.Audit {
		t.Helper()
		head, err := b.Store.AuditHead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	for range 4 {
		b.Submit(`{"prompt":"p","agent":"coder"}`)
	}
	s.left.Store(1)
	b.Do("POST", "/api/agents/coder/queue/clear", "").WantError(t, http.StatusInternalServerError, signalbox.CodeInternal)
	if row := last(); row.Action != "clear_queue" || row.Result != "failed" || row.Details != `{"cleared_count":1}` {
		t.Errorf("%+v", row)
	}
	for range 2 {
		if _, found, err := b.Engine.Claim(t.Context(), a, 0); err != nil || !found {
			t.Fatal(found, err)
		}
	}
	s.left.Store(1)
	b.Do("POST", "/api/agents/coder/queue/release", "").WantError(t, http.StatusInternalServerError, signalbox.CodeInternal)
	if row := last(); row.Action != "force_release" || row.Result != "failed" || !strings.Contains(row.Details, `"was_running":true`) {
		t.Errorf("%+v", row)
	}
	head := last()
	b.Do("POST", "/api/agents/coder/queue/release", "").WantError(t, http.StatusInternalServerError, signalbox.CodeInternal)
	if last() != head {
		t.Error("what did nothing was recorded")
	}
}

// The log has the reason of a pause and of its end, with the state before and after.
func TestAuditOfPauses(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	for _, step := range []struct{ path, body, want string }{
		{"pause", `{"queue":"work","reason":"a new model"}`, `{"after":{"by":"user anna","paused":true,"reason":"a new model"},"before":{"paused":false},"reason":"a new model"}`},
		{"pause", `{"queue":"work","reason":"for longer"}`, `{"after":{"by":"user anna","paused":true,"reason":"for longer"},"before":{"by":"user anna","paused":true,"reason":"a new model"},"reason":"for longer"}`},
		{"resume", `{"queue":"work"}`, `{"after":{"paused":false},"before":{"by":"user anna","paused":true,"reason":"for longer"}}`},
	} {
		b.Do("POST", "/api/queue/"+step.path, step.body, show["cookie"]...).Want(t, http.StatusOK, nil)
		if row := b.LastAudit(); row.EventType != "queue" || row.Action != step.path || row.Resource != "work" || row.Details != step.want {
			t.Errorf("%s: %+v, want %s", step.path, row, step.want)
		}
	}
}

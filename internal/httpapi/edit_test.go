package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// patch changes a task at its present revision.
func patch(b *apitest.Fixture, id, change string, as ...apitest.Edit) apitest.Reply {
	b.T.Helper()
	var now api.Task
	b.Do("GET", "/api/queue/"+id, "", as...).Want(b.T, http.StatusOK, &now)
	return b.Do("PATCH", "/api/queue/"+id, fmt.Sprintf(`{"revision":%d,%s}`, now.Revision, change), as...)
}

func TestEditChangesAWaitingTask(t *testing.T) {
	b := apitest.New(t)
	coder, writer := b.AddAgent("coder", 1), b.AddAgent("writer", 1)
	first := b.Submit(`{"prompt":"first","agent":"coder"}`).QueueID
	second := b.Submit(`{"prompt":"second","agent":"coder","priority":5,"env":{"KEY":"s3cret"}}`).QueueID

	var got api.Task
	patch(b, first, `"place":"top"`).Want(t, http.StatusOK, &got)
	if got.Position != 1 || got.Priority != 0 || got.EditedAt == nil || got.EditedBy == "" {
		t.Errorf("after it was moved to the top: %+v", got)
	}
	patch(b, first, `"place":"back"`).Want(t, http.StatusOK, &got)
	if got.Position != 2 {
		t.Errorf("after it was moved to the back: %+v", got)
	}
	patch(b, second, `"prompt":"another\nline","agent":"writer","priority":-3`).Want(t, http.StatusOK, &got)
	if got.Prompt != "another\nline" || got.PromptPreview != "another..." || got.Queue != "agent:writer" || got.Priority != -3 {
		t.Errorf("%+v", got)
	}
	task := b.Claim(writer)
	request, err := b.Engine.Read().Request(t.Context(), task.ID)
	if err != nil || task.ID != second || request.Prompt != "another\nline" || len(request.SealedEnv) == 0 {
		t.Errorf("the writer got %s %+v %v", task.ID, request, err)
	}
	patch(b, first, `"agent":""`).Want(t, http.StatusOK, &got)
	if got.Queue != "work" {
		t.Errorf("any agent may take it: %+v", got)
	}
	b.Claim(coder)
}

func TestEditRefuses(t *testing.T) {
	b := apitest.New(t)
	coder := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	path := "/api/queue/" + id
	for body, field := range map[string]string{
		`{"place":"top"}`:                                "revision",
		`{"revision":0,"place":"top"}`:                   "revision",
		`{"revision":1}`:                                 "",
		`{"revision":1,"place":"moon"}`:                  "place",
		`{"revision":1,"priority":11}`:                   "priority",
		`{"revision":1,"priority":"high"}`:               "priority",
		`{"revision":1,"prompt":" \n"}`:                  "prompt",
		`{"revision":1,"prompt":"a\u0000"}`:              "prompt",
		`{"revision":1,"agent":"a/b"}`:                   "agent",
		`{"revision":1,"agent":"coder","kind":"claude"}`: "kind",
		`{"revision":1,"model":"m"}`:                     "model",
		`{"revision":1,"place":"top","place":"back"}`:    "place",
	} {
		if e := b.Do("PATCH", path, body).WantError(t, http.StatusBadRequest, signalbox.CodeValidation); e.Field != field {
			t.Errorf("%s: field %q in %+v, want %q", body, e.Field, e, field)
		}
	}
	b.Do("PATCH", path, `{"revision":1,"prompt":"`+strings.Repeat("x", signalbox.MaxPromptBytes+1)+`"}`).WantError(t, http.StatusRequestEntityTooLarge, signalbox.CodeTooLarge)
	b.Do("PATCH", path, `{"revision":1,"agent":"commands@x"}`).WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	b.Do("PATCH", path, `{"revision":1,"agent":"nobody"}`).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("PATCH", "/api/queue/queue-06h09jkkfrskmkv6ppcnfg14nc", `{"revision":1,"place":"top"}`).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	if e := b.Do("PATCH", path, `{"revision":7,"place":"top"}`).WantError(t, http.StatusConflict, signalbox.CodeConflict); !strings.Contains(e.Message, "revision 1, not 7") {
		t.Errorf("another revision: %+v", e)
	}
	if now := getTask(b, id); now.Revision != 1 || now.EditedAt != nil {
		t.Errorf("a refused edit changed the task: %+v", now)
	}

	chat := b.Submit(`{"prompt":"turn","session_id":"s-1"}`).QueueID
	patch(b, chat, `"agent":"coder"`).WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	patch(b, chat, `"priority":1`).Want(t, http.StatusOK, nil)

	started := b.Claim(coder).ID
	if e := patch(b, started, `"prompt":"too late"`).WantError(t, http.StatusConflict, signalbox.CodeConflict); !strings.Contains(e.Message, "dispatching") {
		t.Errorf("it has started: %+v", e)
	}
	ended := b.Submit(`{"prompt":"p"}`).QueueID
	b.Do("POST", "/api/queue/"+ended+"/cancel", "").Want(t, http.StatusOK, nil)
	patch(b, ended, `"prompt":"too late"`).WantError(t, http.StatusConflict, signalbox.CodeAlreadyEnded)
}

func TestWhoMayEdit(t *testing.T) {
	b, _ := apitest.NewWithUsers(t)
	token := func(name string, scopes ...signalbox.Scope) apitest.Edit {
		return apitest.Bearer(b.AddToken(identity.NewToken{Name: name, Scopes: scopes}))
	}
	owner := token("owner", signalbox.ScopeSubmit, signalbox.ScopeRead)
	operator := token("operator", signalbox.ScopeSubmit, signalbox.ScopeRead, signalbox.ScopeCancel)
	other := token("other", signalbox.ScopeSubmit, signalbox.ScopeRead)
	admin := token("boss", signalbox.ScopeAdmin)
	var made api.SubmitResponse
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, owner).Want(t, http.StatusCreated, &made)
	id := made.QueueID

	for _, c := range []struct {
		who    string
		as     apitest.Edit
		change string
		ok     bool
	}{
		{"owner", owner, `"prompt":"mine"`, true},
		{"owner", owner, `"agent":"coder"`, true},
		{"owner", owner, `"priority":3`, true},
		{"owner", owner, `"place":"back"`, true},
		{"owner", owner, `"place":"top"`, false}, // it would overtake other owners' tasks
		{"other", other, `"priority":1`, false},
		{"operator", operator, `"place":"top"`, true},
		{"operator", operator, `"priority":1`, true},
		{"operator", operator, `"prompt":"yours"`, false}, // it would run in the owner's name
		{"operator", operator, `"agent":""`, false},       // it would pass the environment to another agent
		{"admin", admin, `"prompt":"all mine"`, true},
		{"admin", admin, `"agent":""`, true},
	} {
		r := patch(b, id, c.change, c.as)
		if c.ok {
			r.Want(t, http.StatusOK, nil)
		} else {
			r.WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		}
	}
	if last := b.LastAudit(); last.Action != "edit" || last.Resource != id {
		t.Errorf("the edit of somebody else's task is not in the audit log: %+v", last)
	}
}

func TestRetryAtAnotherAgent(t *testing.T) {
	b := apitest.New(t)
	b.AddAgent("coder", 1)
	b.AddAgent("writer", 1)
	id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	b.Do("POST", "/api/queue/"+id+"/cancel", "").Want(t, http.StatusOK, nil)
	for change, queue := range map[string]string{`{}`: "agent:coder", `{"agent":"writer"}`: "agent:writer", `{"kind":"demo"}`: "pool:demo", `{"agent":""}`: "work"} {
		var got api.SubmitResponse
		b.Do("POST", "/api/queue/"+id+"/retry", change).Want(t, http.StatusCreated, &got)
		if got.Queue != queue {
			t.Errorf("%s: it went to %s, want %s", change, got.Queue, queue)
		}
	}
	b.Do("POST", "/api/queue/"+id+"/retry", `{"agent":"nobody"}`).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("POST", "/api/queue/"+id+"/retry", `{"agent":"coder","kind":"demo"}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}

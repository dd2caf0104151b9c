package access_test

import (
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// The submitter of a task may cancel it with the scope submit. Other callers need the scope cancel,
// even with a token of the same kind.
func TestWhoSubmittedATaskMayCancelIt(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	b.AddAgent("coder", 1)
	b.AddAgent("lead", 1)
	submit := func(token string) (id string) {
		var got struct {
			ID string `json:"queue_id"`
		}
		b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, apitest.Bearer(token)).Want(t, http.StatusCreated, &got)
		return got.ID
	}
	cancel := func(id, token string) apitest.Reply {
		return b.Do("POST", "/api/queue/"+id+"/cancel", ``, apitest.Bearer(token))
	}
	lead := b.AddToken(identity.NewToken{Name: "of-lead", Agent: "lead"})
	again := b.AddToken(identity.NewToken{Name: "also-of-lead", Agent: "lead"})
	coder := b.AddToken(identity.NewToken{Name: "of-coder", Agent: "coder"})
	only := b.AddToken(identity.NewToken{Name: "only", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}})
	reader := b.AddToken(identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	narrow := b.AddToken(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}, Agents: []string{"coder"}})

	cancel(submit(lead), lead).Want(t, http.StatusOK, nil)
	cancel(submit(lead), again).Want(t, http.StatusOK, nil)
	cancel(submit(only), only).Want(t, http.StatusOK, nil)
	cancel(submit(narrow), narrow).Want(t, http.StatusOK, nil)

	theirs := submit(lead)
	for _, token := range []string{coder, only, reader, narrow} {
		cancel(theirs, token).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
	cancel(submit(apitest.Secret), only).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	cancel("queue-00000000000000000000000000", only).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	cancel("queue-1", only).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	cancel(theirs, apitest.Secret).Want(t, http.StatusOK, nil)
}

// The owner of a task may read its output with the scope submit or tool. Other callers need the
// scope read.
func TestWhoAskedForATaskMayReadItsOutput(t *testing.T) {
	b, _ := apitest.NewWithToolTasks(t, apitest.WithToken)
	token := func(name string, scope signalbox.Scope) apitest.Edit {
		return apitest.Bearer(b.AddToken(identity.NewToken{Name: name, Scopes: []signalbox.Scope{scope}}))
	}
	output := func(id string, who ...apitest.Edit) apitest.Reply {
		return b.Do("GET", "/api/queue/"+id+"/output", "", who...)
	}
	tools, otherTools := token("tools", signalbox.ScopeTool), token("other-tools", signalbox.ScopeTool)
	submits, otherSubmits := token("submits", signalbox.ScopeSubmit), token("other-submits", signalbox.ScopeSubmit)
	call := apitest.CreateToolTask(b, `{}`, tools).ID
	var prompt struct {
		ID string `json:"queue_id"`
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, submits).Want(t, http.StatusCreated, &prompt)
	output(call, tools).Want(t, http.StatusOK, nil)
	output(prompt.ID, submits).Want(t, http.StatusOK, nil)
	reader, canceller := token("reader", signalbox.ScopeRead), token("canceller", signalbox.ScopeCancel)
	for _, id := range []string{call, prompt.ID} {
		output(id, reader).Want(t, http.StatusOK, nil)
		for _, who := range []apitest.Edit{otherTools, otherSubmits, canceller} {
			output(id, who).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
			output(id, who, apitest.Header("Accept", "text/event-stream")).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		}
		output(id).WantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	output(call, submits).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	output(prompt.ID, tools).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

// With only the scope submit a caller cannot read others' tasks by a retry or in their conversations,
// and cannot archive these.
func TestSubmitAloneReadsNothingOfOthers(t *testing.T) {
	b := apitest.New(t, apitest.WithToken)
	a := b.AddAgent("coder", 1)
	var task struct {
		ID string `json:"queue_id"`
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"a secret","agent":"coder","session_id":"talk-1"}`, apitest.Bearer(apitest.Secret)).Want(t, http.StatusCreated, &task)
	b.Complete(b.Accept(a), "ok")
	blind := apitest.Bearer(b.AddToken(identity.NewToken{Name: "blind", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}))
	for _, c := range []struct{ path, body string }{
		{"/api/queue/" + task.ID + "/retry", `{}`},
		{"/api/agents/coder/chat", `{"message":"what was said?","session_id":"talk-1"}`},
		{"/api/queue/task", `{"prompt":"what was said?","session_id":"talk-1"}`},
		{"/api/sessions/talk-1/archive", ``},
		{"/api/sessions/talk-1/restore", ``},
	} {
		b.Do("POST", c.path, c.body, blind).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
}

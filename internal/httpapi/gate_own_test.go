package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// Who submitted a task may cancel it with the right to submit. That of anybody
// else needs the right to cancel, also where the other is another token of a
// like kind.
func TestWhoSubmittedATaskMayCancelIt(t *testing.T) {
	b := newBox(t, withToken)
	b.agent("coder", 1)
	b.agent("lead", 1)
	submit := func(token string) (id string) {
		var got struct {
			ID string `json:"queue_id"`
		}
		b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, bearer(token)).want(t, http.StatusCreated, &got)
		return got.ID
	}
	cancel := func(id, token string) reply { return b.do("POST", "/api/queue/"+id+"/cancel", ``, bearer(token)) }
	lead := b.token(identity.NewToken{Name: "of-lead", Agent: "lead"})
	again := b.token(identity.NewToken{Name: "also-of-lead", Agent: "lead"})
	coder := b.token(identity.NewToken{Name: "of-coder", Agent: "coder"})
	only := b.token(identity.NewToken{Name: "only", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}})
	reader := b.token(identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	narrow := b.token(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}, Agents: []string{"coder"}})

	cancel(submit(lead), lead).want(t, http.StatusOK, nil)
	cancel(submit(lead), again).want(t, http.StatusOK, nil)
	cancel(submit(only), only).want(t, http.StatusOK, nil)
	cancel(submit(narrow), narrow).want(t, http.StatusOK, nil)

	theirs := submit(lead)
	for _, token := range []string{coder, only, reader, narrow} {
		cancel(theirs, token).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
	cancel(submit(secret), only).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	cancel("queue-00000000000000000000000000", only).wantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	cancel("queue-1", only).wantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	cancel(theirs, secret).want(t, http.StatusOK, nil)
}

// Who asked for a task may read its output with the right to ask for it, be it
// to submit or to use tools. That of anybody else needs the right to read.
func TestWhoAskedForATaskMayReadItsOutput(t *testing.T) {
	b, _ := newToolBox(t, withToken)
	token := func(name string, scope signalbox.Scope) edit {
		return bearer(b.token(identity.NewToken{Name: name, Scopes: []signalbox.Scope{scope}}))
	}
	output := func(id string, who ...edit) reply { return b.do("GET", "/api/queue/"+id+"/output", "", who...) }
	tools, otherTools := token("tools", signalbox.ScopeTool), token("other-tools", signalbox.ScopeTool)
	submits, otherSubmits := token("submits", signalbox.ScopeSubmit), token("other-submits", signalbox.ScopeSubmit)
	call := b.toolTask(`{}`, tools).ID
	var prompt struct {
		ID string `json:"queue_id"`
	}
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, submits).want(t, http.StatusCreated, &prompt)
	output(call, tools).want(t, http.StatusOK, nil)
	output(prompt.ID, submits).want(t, http.StatusOK, nil)
	reader, canceller := token("reader", signalbox.ScopeRead), token("canceller", signalbox.ScopeCancel)
	for _, id := range []string{call, prompt.ID} {
		output(id, reader).want(t, http.StatusOK, nil)
		for _, who := range []edit{otherTools, otherSubmits, canceller} {
			output(id, who).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
			output(id, who, header("Accept", "text/event-stream")).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		}
		output(id).wantError(t, http.StatusUnauthorized, signalbox.CodeUnauthorized)
	}
	output(call, submits).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	output(prompt.ID, tools).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

// An agent that plans takes back what it handed out, with its own token.
func TestAnAgentCancelsWhatItHandedOut(t *testing.T) {
	y := newRig(t, rigOptions{token: secret, agents: []agenttest.Options{{Name: "lead"}, {Name: "coder"}}})
	var root, child taskSaid
	y.connect(modernEra, auth(secret)...).call("submit_task", args{"prompt": "p", "agent": "lead"}, &root)
	y.agents["lead"].AwaitStart(1)
	lead := y.connect(modernEra, auth(y.token(identity.NewToken{Name: "of-lead", Agent: "lead"}))...)
	lead.call("submit_task", args{"prompt": "help", "agent": "coder"}, &child)
	lead.call("cancel_task", args{"task_id": child.QueueID}, nil)
	if row := y.task(child.QueueID); !row.CancelRequested && row.State != signalbox.Cancelled {
		t.Errorf("%+v", row)
	}
	lead.fails("cancel_task", args{"task_id": root.QueueID}, signalbox.CodeForbidden)
}

// With the right to submit alone nothing of others is read: neither by a retry,
// nor in their conversations, nor are these put away.
func TestSubmitAloneReadsNothingOfOthers(t *testing.T) {
	b := newBox(t, withToken)
	a := b.agent("coder", 1)
	var task struct {
		ID string `json:"queue_id"`
	}
	b.do("POST", "/api/queue/task", `{"prompt":"a secret","agent":"coder","session_id":"talk-1"}`, bearer(secret)).want(t, http.StatusCreated, &task)
	b.complete(b.accept(a), "ok")
	blind := bearer(b.token(identity.NewToken{Name: "blind", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}))
	for _, c := range []struct{ path, body string }{
		{"/api/queue/" + task.ID + "/retry", `{}`},
		{"/api/agents/coder/chat", `{"message":"what was said?","session_id":"talk-1"}`},
		{"/api/queue/task", `{"prompt":"what was said?","session_id":"talk-1"}`},
		{"/api/sessions/talk-1/archive", ``},
		{"/api/sessions/talk-1/restore", ``},
	} {
		b.do("POST", c.path, c.body, blind).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	}
}

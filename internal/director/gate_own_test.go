package director_test

import (
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/dispatch/agenttest"
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

// An agent that plans takes back what it handed out, with its own token.
func TestAnAgentCancelsWhatItHandedOut(t *testing.T) {
	y := newYard(t, yardOptions{token: secret, agents: []agenttest.Options{{Name: "lead"}, {Name: "coder"}}})
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

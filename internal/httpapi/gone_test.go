package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// TestSubmitSaysThatTheAgentOfTheConversationIsGone checks that GET and why say it too, with what
// will happen and when.
func TestSubmitSaysThatTheAgentOfTheConversationIsGone(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	a := b.AddAgent("coder", 1)
	err := b.Store.PutSession(t.Context(), signalbox.Session{}, signalbox.Session{ID: "s1", Agent: "coder", State: signalbox.SessionActive}, signalbox.Entry{Kind: signalbox.EventSession})
	if err != nil {
		t.Fatal(err)
	}
	var there api.SubmitResponse
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder","session_id":"s1"}`).Want(t, http.StatusCreated, &there)
	if there.Message != "" {
		t.Errorf("the agent is there: %q", there.Message)
	}
	b.Live.Set(engine.LiveAgent{Agent: a, DownSince: c.Now().Add(-15 * time.Second), StrandedAt: c.Now().Add(45 * time.Second)})
	const told = "gent coder, which holds conversation s1, has been gone since 2025-01-17T09:59:45Z; unless it is back, the task fails at 2025-01-17T10:00:45Z (dispatch_failed)"
	var got api.SubmitResponse
	b.Do("POST", "/api/queue/task", `{"prompt":"p","session_id":"s1"}`).Want(t, http.StatusCreated, &got)
	if got.Message != "a"+told {
		t.Errorf("submit says %q", got.Message)
	}
	var web api.SubmitResponse
	b.Do("POST", "/api/task", `{"prompt":"p","session_id":"s1"}`).Want(t, http.StatusAccepted, &web)
	if web.Message != "Task queued for execution: a"+told {
		t.Errorf("the web submit says %q", web.Message)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+got.QueueID, "").Want(t, http.StatusOK, &task)
	if task.Note != "a"+told {
		t.Errorf("the task says %q", task.Note)
	}
	var why api.Why
	b.Do("GET", "/api/queue/"+got.QueueID+"/why", "").Want(t, http.StatusOK, &why)
	found := false
	for _, g := range why.Gates {
		found = found || g.Name == "agent_connected" && !g.OK && strings.HasPrefix(g.Text, "A"+told)
	}
	if !found {
		t.Errorf("why says %+v", why.Gates)
	}
}

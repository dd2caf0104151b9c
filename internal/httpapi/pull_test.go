package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// newPullBox is a director that serves agents that pull.
func newPullBox(t *testing.T, change ...func(*options)) *box {
	t.Helper()
	b := newBox(t, change...)
	lanes := pull.New(b.engine, pull.Options{})
	d, err := httpapi.New(httpapi.Config{Engine: b.engine, Identity: b.id, Runs: b.runs, Pull: lanes, Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	b.dir = d
	return b
}

const farAgent = `{"name":"far","kind":"demo","pull":true,"instance":"0123456789abcdef"}`

func TestRegisterAnAgentThatPulls(t *testing.T) {
	b := newPullBox(t)
	register := func(body string) reply { return b.do("POST", "/api/agents", body) }
	for _, bad := range []string{
		`{"name":"far","kind":"demo","pull":true}`,
		`{"name":"far","kind":"demo","pull":true,"instance":"short"}`,
		`{"name":"far","kind":"demo","pull":true,"instance":"with spaces in it"}`,
		`{"name":"far","kind":"demo","pull":true,"instance":"0123456789abcdef","url":"http://127.0.0.1:9000"}`,
		`{"name":"far","kind":"demo","instance":"0123456789abcdef","url":"http://127.0.0.1:9000"}`,
		`{"name":"far","kind":"demo","url":"pull:0123456789abcdef"}`,
		`{"name":"commands@local","kind":"demo","pull":true,"instance":"0123456789abcdef"}`,
	} {
		register(bad).wantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	var got api.Agent
	register(farAgent).want(t, http.StatusCreated, &got)
	if got.Source != "pull" || got.URL != "" || got.State != "down" {
		t.Errorf("%+v", got)
	}
	register(farAgent).want(t, http.StatusOK, nil)
	b.do("POST", "/api/agents/far/claim", `{"instance":"0123456789abcdef","slots":1}`).want(t, http.StatusOK, nil)

	// While it is heard of, the name is its own.
	other := strings.Replace(farAgent, "0123456789abcdef", "fedcba9876543210", 1)
	register(other).wantError(t, http.StatusConflict, signalbox.CodeConflict)
	register(`{"name":"far","kind":"demo","url":"http://127.0.0.1:9000"}`).wantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.do("POST", "/api/agents/far/claim", `{"instance":"fedcba9876543210","slots":1}`).wantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.do("POST", "/api/agents/far/heartbeat", `{"state":"idle","instance":"fedcba9876543210"}`).wantError(t, http.StatusConflict, signalbox.CodeConflict)

	// When it has said that it stops, another may have it.
	b.do("POST", "/api/agents/far/heartbeat", `{"state":"stopping","instance":"0123456789abcdef"}`).want(t, http.StatusOK, nil)
	register(other).want(t, http.StatusOK, nil)
	b.do("POST", "/api/agents/far/claim", `{"instance":"fedcba9876543210","slots":1}`).want(t, http.StatusOK, nil)
	b.do("POST", "/api/agents/far/claim", `{"instance":"0123456789abcdef","slots":1}`).wantError(t, http.StatusConflict, signalbox.CodeConflict)
}

// An agent speaks for itself alone.
func TestAgentsThatPullSpeakForThemselves(t *testing.T) {
	b := newPullBox(t, withToken)
	far, near := b.token(identity.NewToken{Name: "far", Agent: "far"}), b.token(identity.NewToken{Name: "near", Agent: "near"})
	b.do("POST", "/api/agents", farAgent, bearer(near)).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.do("POST", "/api/agents", farAgent, bearer(far)).want(t, http.StatusCreated, nil)
	b.do("POST", "/api/agents", strings.Replace(farAgent, "far", "near", 1), bearer(near)).want(t, http.StatusCreated, nil)
	var sub api.SubmitResponse
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"far"}`, bearer(secret)).want(t, http.StatusCreated, &sub)
	claim := `{"instance":"0123456789abcdef","slots":1}`
	b.do("POST", "/api/agents/far/claim", claim, bearer(near)).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	var got api.PullAnswer
	b.do("POST", "/api/agents/far/claim", claim, bearer(far)).want(t, http.StatusOK, &got)
	if got.Task == nil || got.Task.QueueID != sub.QueueID {
		t.Fatalf("%+v", got)
	}
	report := `{"instance":"0123456789abcdef","fence":1,"finished":{"task_id":"t","state":"completed","output":"mine"}}`
	b.do("POST", "/api/agents/far/tasks/"+sub.QueueID+"/report", report, bearer(near)).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.do("POST", "/api/agents/near/tasks/"+sub.QueueID+"/report", report, bearer(near)).wantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.do("POST", "/api/agents/far/tasks/"+sub.QueueID+"/report", report, bearer(far)).want(t, http.StatusOK, nil)
	var task api.Task
	b.do("GET", "/api/queue/"+sub.QueueID, "", bearer(secret)).want(t, http.StatusOK, &task)
	if task.State != "completed" || task.Result.Output != "mine" || task.AgentURL != "" {
		t.Errorf("%+v", task)
	}
}

func TestTerminalOfAnAgentThatPulls(t *testing.T) {
	b := newPullBox(t)
	b.do("POST", "/api/agents", farAgent).want(t, http.StatusCreated, nil)
	b.do("POST", "/api/agents/far/claim", `{"instance":"0123456789abcdef","slots":1}`).want(t, http.StatusOK, nil)
	got := b.do("POST", "/api/agents/far/terminal", "")
	got.wantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	if !strings.Contains(string(got.body), "nobody can connect to it") {
		t.Errorf("%s", got.body)
	}
}

// A director without them says so.
func TestNoAgentCanPullHere(t *testing.T) {
	b := newBox(t)
	for path, body := range map[string]string{
		"/api/agents": farAgent, "/api/agents/far/claim": `{"instance":"0123456789abcdef","slots":1}`,
	} {
		b.do("POST", path, body).wantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	}
}

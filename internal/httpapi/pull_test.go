package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// newPullBox makes a director that serves agents that pull.
func newPullBox(t *testing.T, change ...func(*apitest.Options)) *apitest.Fixture {
	t.Helper()
	b := apitest.New(t, change...)
	lanes := pull.New(b.Engine, pull.Options{})
	d, err := httpapi.New(httpapi.Config{Engine: b.Engine, Identity: b.Identity, Runs: b.Runs, Pull: lanes, Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	b.Server = d
	return b
}

const farAgent = `{"name":"far","kind":"demo","pull":true,"instance":"0123456789abcdef"}`

func TestRegisterAnAgentThatPulls(t *testing.T) {
	b := newPullBox(t)
	register := func(body string) apitest.Reply { return b.Do("POST", "/api/agents", body) }
	for _, bad := range []string{
		`{"name":"far","kind":"demo","pull":true}`,
		`{"name":"far","kind":"demo","pull":true,"instance":"short"}`,
		`{"name":"far","kind":"demo","pull":true,"instance":"with spaces in it"}`,
		`{"name":"far","kind":"demo","pull":true,"instance":"0123456789abcdef","url":"http://127.0.0.1:9000"}`,
		`{"name":"far","kind":"demo","instance":"0123456789abcdef","url":"http://127.0.0.1:9000"}`,
		`{"name":"far","kind":"demo","url":"pull:0123456789abcdef"}`,
		`{"name":"commands@local","kind":"demo","pull":true,"instance":"0123456789abcdef"}`,
	} {
		register(bad).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	var got api.Agent
	register(farAgent).Want(t, http.StatusCreated, &got)
	if got.Source != "pull" || got.URL != "" || got.State != "down" {
		t.Errorf("%+v", got)
	}
	register(farAgent).Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/agents/far/claim", `{"instance":"0123456789abcdef","slots":1}`).Want(t, http.StatusOK, nil)

	// While the agent is alive, no other agent may take its name.
	other := strings.Replace(farAgent, "0123456789abcdef", "fedcba9876543210", 1)
	register(other).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	register(`{"name":"far","kind":"demo","url":"http://127.0.0.1:9000"}`).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("POST", "/api/agents/far/claim", `{"instance":"fedcba9876543210","slots":1}`).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("POST", "/api/agents/far/heartbeat", `{"state":"idle","instance":"fedcba9876543210"}`).WantError(t, http.StatusConflict, signalbox.CodeConflict)

	// After it has said that it stops, another one may.
	b.Do("POST", "/api/agents/far/heartbeat", `{"state":"stopping","instance":"0123456789abcdef"}`).Want(t, http.StatusOK, nil)
	register(other).Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/agents/far/claim", `{"instance":"fedcba9876543210","slots":1}`).Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/agents/far/claim", `{"instance":"0123456789abcdef","slots":1}`).WantError(t, http.StatusConflict, signalbox.CodeConflict)
}

// An agent may act only for itself.
func TestAgentsThatPullSpeakForThemselves(t *testing.T) {
	b := newPullBox(t, apitest.WithToken)
	far, near := b.AddToken(identity.NewToken{Name: "far", Agent: "far"}), b.AddToken(identity.NewToken{Name: "near", Agent: "near"})
	b.Do("POST", "/api/agents", farAgent, apitest.Bearer(near)).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.Do("POST", "/api/agents", farAgent, apitest.Bearer(far)).Want(t, http.StatusCreated, nil)
	b.Do("POST", "/api/agents", strings.Replace(farAgent, "far", "near", 1), apitest.Bearer(near)).Want(t, http.StatusCreated, nil)
	var sub api.SubmitResponse
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"far"}`, apitest.Bearer(apitest.Secret)).Want(t, http.StatusCreated, &sub)
	claim := `{"instance":"0123456789abcdef","slots":1}`
	b.Do("POST", "/api/agents/far/claim", claim, apitest.Bearer(near)).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	var got api.PullAnswer
	b.Do("POST", "/api/agents/far/claim", claim, apitest.Bearer(far)).Want(t, http.StatusOK, &got)
	if got.Task == nil || got.Task.QueueID != sub.QueueID {
		t.Fatalf("%+v", got)
	}
	report := `{"instance":"0123456789abcdef","fence":1,"finished":{"task_id":"t","state":"completed","output":"mine"}}`
	b.Do("POST", "/api/agents/far/tasks/"+sub.QueueID+"/report", report, apitest.Bearer(near)).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.Do("POST", "/api/agents/near/tasks/"+sub.QueueID+"/report", report, apitest.Bearer(near)).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("POST", "/api/agents/far/tasks/"+sub.QueueID+"/report", report, apitest.Bearer(far)).Want(t, http.StatusOK, nil)
	var task api.Task
	b.Do("GET", "/api/queue/"+sub.QueueID, "", apitest.Bearer(apitest.Secret)).Want(t, http.StatusOK, &task)
	if task.State != "completed" || task.Result.Output != "mine" || task.AgentURL != "" {
		t.Errorf("%+v", task)
	}
}

func TestTerminalOfAnAgentThatPulls(t *testing.T) {
	b := newPullBox(t)
	b.Do("POST", "/api/agents", farAgent).Want(t, http.StatusCreated, nil)
	b.Do("POST", "/api/agents/far/claim", `{"instance":"0123456789abcdef","slots":1}`).Want(t, http.StatusOK, nil)
	got := b.Do("POST", "/api/agents/far/terminal", "")
	got.WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	if !strings.Contains(string(got.Body), "accepts no connections") {
		t.Errorf("%s", got.Body)
	}
}

// A director without pull refuses such agents.
func TestNoAgentCanPullHere(t *testing.T) {
	b := apitest.New(t)
	for path, body := range map[string]string{
		"/api/agents": farAgent, "/api/agents/far/claim": `{"instance":"0123456789abcdef","slots":1}`,
	} {
		b.Do("POST", path, body).WantError(t, http.StatusNotImplemented, signalbox.CodeUnsupported)
	}
}

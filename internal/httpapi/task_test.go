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
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

func getTask(b *apitest.Fixture, id string) api.Task {
	b.T.Helper()
	var out api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(b.T, http.StatusOK, &out)
	return out
}

func TestATaskThroughItsLife(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"first line\nsecond","env":{"KEY":"s3cret"},"project":{"name":"x","path":"/src"},"thinking":true,"tier":"t"}`).QueueID
	got := getTask(b, id)
	if got.PromptPreview != "first line..." || got.Prompt != "first line\nsecond" || got.Project.Path != "/src" || !*got.Thinking || got.Agent != "" {
		t.Errorf("%+v", got)
	}
	task := b.Claim(a)
	if got = getTask(b, id); got.State != "dispatching" || got.Agent != "coder" || got.DispatchedAt == nil || got.StartedAt != nil {
		t.Errorf("%+v", got)
	}
	if _, err := b.Engine.Refuse(t.Context(), task, "connection refused"); err != nil {
		t.Fatal(err)
	}
	if got = getTask(b, id); got.State != "pending" || got.Attempts != 1 || got.LastError != "connection refused" || got.AgentURL != "" || got.DispatchedAt != nil || got.NotBefore == nil {
		t.Errorf("a task that waits again looks as if an agent had it: %+v", got)
	}
	other := b.Submit(`{"prompt":"p"}`).QueueID
	code := 3
	b.FinishTask(b.Run(a), signalbox.ReasonExitNonzero, signalbox.Result{Output: "out", Tail: "log", ExitCode: &code, InputTokens: 7, OutputTokens: 9, CostUSD: 0.5})
	got = getTask(b, other)
	r := got.Result
	if got.State != "failed" || got.Reason != "exit_nonzero" || got.Message == "" || r == nil || r.Output != "out" || r.Tail != "log" || *r.ExitCode != 3 || r.TokenUsage.Output != 9 {
		t.Errorf("%+v %+v", got, r)
	}
	for _, path := range []string{"/api/queue/" + id, "/api/queue", "/api/history", "/api/agents", "/metrics"} {
		if body := b.Do("GET", path, "").Body; strings.Contains(string(body), "s3cret") {
			t.Errorf("%s tells an env", path)
		}
	}
}

func TestLongPollAnswersAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddAgent("coder", 1)
		id := b.Submit(`{"prompt":"p"}`).QueueID
		begun := time.Now()
		done := make(chan apitest.Reply)
		go func() { done <- b.Do("GET", "/api/queue/"+id+"?wait=60s", "") }()
		time.Sleep(10 * time.Second)
		b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{Output: "42"})
		var got api.Task
		(<-done).Want(t, 200, &got)
		if got.State != "completed" || got.Result.Output != "42" || time.Since(begun) != 10*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), got)
		}
		waiting := b.Submit(`{"prompt":"p"}`).QueueID
		for wait, want := range map[string]time.Duration{"30s": 30 * time.Second, "7": 7 * time.Second, "0": 0} {
			begun = time.Now()
			b.Do("GET", "/api/queue/"+waiting+"?wait="+wait, "").Want(t, 200, &got)
			if got.State != "pending" || time.Since(begun) != want {
				t.Errorf("wait=%s took %s: %+v", wait, time.Since(begun), got.State)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddAgent("coder", 3)
		cancel := func(id string, status int) api.Cancelled {
			var out api.Cancelled
			b.Do("POST", "/api/queue/"+id+"/cancel", "").Want(t, status, &out)
			return out
		}
		waiting := b.Submit(`{"prompt":"p"}`).QueueID
		if got := cancel(waiting, 200); got.State != "cancelled" || got.WasDispatched || got.AgentURL != "" {
			t.Errorf("pending: %+v", got)
		}
		e := b.Do("POST", "/api/queue/"+waiting+"/cancel", "").WantError(t, 409, signalbox.CodeAlreadyEnded)
		if !strings.Contains(e.Message, "cancelled") {
			t.Errorf("%+v", e)
		}

		b.Submit(`{"prompt":"p"}`)
		task := b.Run(a)
		go func() {
			time.Sleep(2 * time.Second)
			b.FinishTask(task, signalbox.ReasonCancelled, signalbox.Result{})
		}()
		if got := cancel(task.ID, 200); got.State != "cancelled" || !got.WasDispatched || got.AgentURL != "http://127.0.0.1:9000" || got.TaskID != "task-1" {
			t.Errorf("the agent confirmed: %+v", got)
		}

		b.Submit(`{"prompt":"p"}`)
		task = b.Run(a)
		go func() {
			time.Sleep(2 * time.Second)
			b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{})
		}()
		if got := cancel(task.ID, 200); got.State != "completed" {
			t.Errorf("it ended first: %+v", got)
		}

		b.Submit(`{"prompt":"p"}`)
		task = b.Run(a)
		begun := time.Now()
		if got := cancel(task.ID, 202); got.State != "cancelling" || !got.WasDispatched || !strings.Contains(got.Message, "release coder") {
			t.Errorf("the agent is silent: %+v", got)
		}
		if took := time.Since(begun); took != httpapi.CancelWait {
			t.Errorf("it waited %s", took)
		}
		cancel(task.ID, 202) // a second cancel is no error

		b.Submit(`{"prompt":"p"}`)
		task = b.Claim(a)
		if got := cancel(task.ID, 202); got.State != "dispatching" {
			t.Errorf("dispatching: %+v", got)
		}
	})
}

func TestRetry(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p","model":"m","env":{"A":"1"},"source":"cli"}`).QueueID
	b.Do("POST", "/api/queue/"+id+"/retry", "").WantError(t, 409, signalbox.CodeConflict)
	b.FinishTask(b.Run(a), signalbox.ReasonAgentError, signalbox.Result{})
	e := b.Do("POST", "/api/queue/"+id+"/retry", "").WantError(t, 400, signalbox.CodeValidation)
	if e.Field != "env" {
		t.Errorf("%+v", e)
	}
	var out, again api.SubmitResponse
	key := apitest.Header("Idempotency-Key", "retry-1")
	b.Do("POST", "/api/queue/"+id+"/retry", `{"env":{},"prompt":"q","timeout_seconds":60}`, key).Want(t, 201, &out)
	b.Do("POST", "/api/queue/"+id+"/retry", `{"env":{},"prompt":"q","timeout_seconds":60}`, key).Want(t, 201, &again)
	if out.RetryOf != id || out.Replayed || !again.Replayed || again.QueueID != out.QueueID {
		t.Errorf("%+v %+v", out, again)
	}
	if got := getTask(b, out.QueueID); got.Prompt != "q" || got.Model != "m" || got.TimeoutSeconds != 60 || got.RetryOf != id {
		t.Errorf("%+v", got)
	}
}

func TestWhyPauseResume(t *testing.T) {
	b := apitest.New(t)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	var paused api.Paused
	b.Do("POST", "/api/queue/pause", "").Want(t, 200, &paused)
	if len(paused.Paused) != 1 || paused.Paused[0].Queue != "" || paused.Paused[0].By != "a local caller" || paused.Paused[0].Until != nil {
		t.Errorf("%+v", paused)
	}
	b.Do("POST", "/api/queue/pause", `{"queue":"agent:coder","reason":"upgrade","seconds":60}`).Want(t, 200, &paused)
	if len(paused.Paused) != 2 {
		t.Errorf("%+v", paused)
	}
	var q api.Queue
	b.Do("GET", "/api/queue", "").Want(t, 200, &q)
	if len(q.Paused) != 2 {
		t.Errorf("%+v", q)
	}
	gates := func() map[string]bool {
		var w api.Why
		b.Do("GET", "/api/queue/"+id+"/why", "").Want(t, 200, &w)
		open := map[string]bool{}
		for _, g := range w.Gates {
			open[g.Name] = g.OK
			if g.Text == "" || (!g.OK && g.Cure == "" && g.Name != "agent_free") {
				t.Errorf("a shut gate without a cure: %+v", g)
			}
		}
		if w.Summary == "" || len(w.Gates) != 6 {
			t.Errorf("%+v", w)
		}
		return open
	}
	if g := gates(); g["queue_open"] || g["agent_connected"] {
		t.Errorf("%v", g)
	}
	b.Do("POST", "/api/queue/resume", "").Want(t, 200, &paused)
	b.Do("POST", "/api/queue/resume", `{"queue":"agent:coder"}`).Want(t, 200, &paused)
	if paused.Paused == nil || len(paused.Paused) != 0 {
		t.Errorf("%+v", paused)
	}
	a := b.AddAgent("coder", 1)
	if g := gates(); !g["queue_open"] || !g["agent_connected"] || !g["agent_free"] {
		t.Errorf("%v", g)
	}
	b.Run(a)
	var w api.Why
	b.Do("GET", "/api/queue/"+id+"/why", "").Want(t, 200, &w)
	if w.Gates == nil || len(w.Gates) != 0 || !strings.Contains(w.Summary, "coder") {
		t.Errorf("%+v", w)
	}
}

func TestAgents(t *testing.T) {
	b := apitest.New(t)
	register := func(name, kind, more string, status int) api.Agent {
		t.Helper()
		var out api.Agent
		b.Do("POST", "/api/agents", fmt.Sprintf(`{"name":%q,"kind":%q,"url":"http://127.0.0.1:9001"%s}`, name, kind, more)).Want(t, status, &out)
		return out
	}
	if got := register("coder", "demo", `,"slots":2,"fencing":true,"token":"agents-secret","version":"1.2","work_dir":"/src","child":true`, 201); got.State != "down" || got.Source != "child" || got.Slots != 2 || !got.Fencing {
		t.Errorf("%+v", got)
	}
	if got := register("coder", "demo", "", 200); got.Slots != 1 || got.Source != "registered" {
		t.Errorf("%+v", got)
	}
	register("coder", "claude", "", 201) // no agent with that name answers
	a := b.AddAgent("coder", 3)
	b.Runs.Answering = map[string]bool{"coder": true}
	b.Do("POST", "/api/agents", `{"name":"coder","kind":"claude","url":"http://127.0.0.1:9009"}`).WantError(t, 409, signalbox.CodeConflict)
	b.Do("POST", "/api/agents", `{"name":"coder","kind":"claude","url":"http://127.0.0.1:9001"}`).WantError(t, 409, signalbox.CodeConflict)
	states := func() map[string]api.Agent {
		var out api.Agents
		got := b.Do("GET", "/api/agents", "").Want(t, 200, &out)
		if strings.Contains(string(got.Body), "agents-secret") {
			t.Error("a token is told")
		}
		byName := map[string]api.Agent{}
		for _, a := range out.Agents {
			byName[a.Name] = a
		}
		return byName
	}
	register("other", "demo", "", 201)
	if got := states(); got["coder"].State != "idle" || got["other"].State != "down" || got["other"].Message == "" {
		t.Errorf("%+v", got)
	}
	b.Submit(`{"prompt":"look here","agent":"coder"}`)
	b.Submit(`{"prompt":"p","agent":"coder"}`)
	task := b.Run(a)
	got := states()["coder"]
	if got.State != "working" || got.InUse != 1 || got.Waiting != 1 || len(got.Running) != 1 || got.Running[0].QueueID != task.ID || got.Running[0].PromptPreview != "look here" || got.Running[0].StartedAt == nil {
		t.Errorf("%+v", got)
	}
	b.Do("DELETE", "/api/agents/coder", "").WantError(t, 409, signalbox.CodeConflict)
	if _, err := b.Engine.Lose(t.Context(), task, signalbox.ReasonLost, "silent", true, nil); err != nil {
		t.Fatal(err)
	}
	if got := states()["coder"]; got.State != "withheld" || !got.Running[0].Withheld || got.Running[0].State != "failed" {
		t.Errorf("%+v", got)
	}
	b.Live.Set(engine.LiveAgent{Agent: a, Up: false, Message: "connection refused"})
	if got := states()["coder"]; got.State != "down" || got.Message != "connection refused" {
		t.Errorf("%+v", got)
	}
	var cleared api.LaneCleared
	b.Do("POST", "/api/agents/coder/queue/clear", "").Want(t, 200, &cleared)
	if cleared.ClearedCount != 1 {
		t.Errorf("%+v", cleared)
	}
	var released api.Released
	b.Do("POST", "/api/agents/coder/queue/release", "").Want(t, 200, &released)
	if !released.WasRunning || len(released.QueueIDs) != 1 {
		t.Errorf("%+v", released)
	}
	b.Do("POST", "/api/agents/coder/queue/release", "").Want(t, 200, &released)
	b.Do("DELETE", "/api/agents/coder", "").Want(t, 204, nil)
	b.Do("DELETE", "/api/agents/coder", "").WantError(t, 404, signalbox.CodeNotFound)
}

func TestHeartbeat(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	b.AddAgent("coder", 1)
	beat := `{"state":"working","current_tasks":[{"id":"task-1","queue_id":"q","fence":3,"started_at":"2025-01-17T10:00:00Z","prompt_preview":"p"}]}`
	var out api.HeartbeatAnswer
	for range 3 {
		b.Do("POST", "/api/agents/coder/heartbeat", beat).Want(t, 200, &out)
	}
	if got := b.Runs.Heartbeats["coder"]; out.IntervalSeconds != 5 || got.State != "working" || got.CurrentTasks[0].Fence != 3 {
		t.Errorf("%+v %+v", out, got)
	}
	b.Do("DELETE", "/api/agents/coder", "").Want(t, 204, nil)
	b.Do("POST", "/api/agents/coder/heartbeat", beat).WantError(t, 404, signalbox.CodeNotFound)
}

func TestAnAgentIsShownAsItSaysThatItIs(t *testing.T) {
	b := apitest.New(t)
	row := b.AddAgent("coder", 1)
	said := row
	said.Kind, said.Slots, said.Fencing = "codex", 3, !row.Fencing
	for up, want := range map[bool]signalbox.Agent{true: said, false: row} {
		b.Live.Set(engine.LiveAgent{Agent: said, Up: up})
		var out api.Agents
		b.Do("GET", "/api/agents", "").Want(t, 200, &out)
		if got := out.Agents[0]; got.Kind != want.Kind || got.Slots != want.Slots || got.Fencing != want.Fencing {
			t.Errorf("up %t: %+v, want %+v", up, got, want)
		}
	}
}

func TestAgentsOfTheConfigurationStay(t *testing.T) {
	b := apitest.New(t)
	_, err := b.Engine.PutAgent(t.Context(), signalbox.Agent{Name: "fixed", Kind: "demo", URL: "http://127.0.0.1:9000", Source: signalbox.AgentFromConfig}, "")
	if err != nil {
		t.Fatal(err)
	}
	e := b.Do("DELETE", "/api/agents/fixed", "").WantError(t, 409, signalbox.CodeConflict)
	if !strings.Contains(e.Hint, "configuration") {
		t.Errorf("%+v", e)
	}
}

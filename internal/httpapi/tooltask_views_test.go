package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// A tool task is in the queue, in the history and among the activities like any other task, and
// shows that it is one.
func TestToolTasksWhereverTasksAreShown(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t)
	b.AddAgent("coder", 1)
	waits := apitest.CreateToolTask(b, `{"arguments":{"month":"1"}}`).ID
	var q api.Queue
	b.Do("GET", "/api/queue", "").Want(t, 200, &q)
	if len(q.Tasks) != 1 || q.Tasks[0].Mode != "tool" || q.Tasks[0].Tool != "report" || q.Tasks[0].Position != 1 || q.Tasks[0].Arguments != nil {
		t.Errorf("%+v", q.Tasks)
	}
	if q.Depth != 0 || q.Tools == nil || q.Tools.Waiting != 1 {
		t.Errorf("depth counts what the queue's size bounds: %+v", q)
	}
	row := b.RunTool(f, "working on it\n")
	v := getTask(b, waits)
	if v.Mode != "tool" || v.Tool != "report" || string(v.Arguments) != `{"month":"1"}` || v.State != "working" {
		t.Errorf("%+v", v)
	}
	var s api.Status
	b.Do("GET", "/status", "").Want(t, 200, &s)
	if s.Tools == nil || s.Tools.Waiting != 0 || s.Tools.Running != 1 || s.Agents.Total != 1 || s.Agents.Working != 0 || s.Queue.DispatchedCount != 1 {
		t.Errorf("%+v %+v %+v", s.Tools, s.Agents, s.Queue)
	}
	list := listActivities(b, "?type=tool_call")
	if len(list) != 1 || list[0].State != "started" || list[0].Details.Tool != "report" || list[0].AgentName != "" || list[0].RelatedExecutionID != waits {
		t.Errorf("%+v", list)
	}
	b.AnswerTool(f, row, "", "command exited with code 3")
	var h api.History
	b.Do("GET", "/api/history", "").Want(t, 200, &h)
	if len(h.Tasks) != 1 || h.Tasks[0].Mode != "tool" || h.Tasks[0].Tool != "report" || h.Tasks[0].Message != "command exited with code 3" {
		t.Errorf("%+v", h.Tasks)
	}
	if list = listActivities(b, "?type=tool_call&state=failed"); len(list) != 1 || list[0].Error == "" {
		t.Errorf("%+v", list)
	}
	plain := apitest.New(t)
	plain.Do("GET", "/status", "").Want(t, 200, &s)
	if body := plain.Do("GET", "/status", "").Body; strings.Contains(string(body), "tool_tasks") {
		t.Errorf("without tools: %s", body)
	}
}

// The director's own executor is not an agent: it is listed separately, and actions on agents do
// not apply to it.
func TestTheExecutorIsNoAgent(t *testing.T) {
	b, _ := apitest.NewWithToolTasks(t)
	b.AddAgent("coder", 1)
	b.AddExecutor()
	apitest.CreateToolTask(b, `{}`)
	var list api.Agents
	b.Do("GET", "/api/agents", "").Want(t, 200, &list)
	if len(list.Agents) != 1 || list.Agents[0].Name != "coder" || len(list.Executors) != 1 {
		t.Fatalf("%+v", list)
	}
	if x := list.Executors[0]; x.Name != "commands@local" || x.Kind != "commands" || x.Source != "internal" || x.Slots != 10 || x.Waiting != 1 || x.State != "idle" {
		t.Errorf("%+v", x)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/queue/release", ""}, {"POST", "/queue/clear", ""}, {"GET", "/queue", ""}, {"DELETE", "", ""},
		{"POST", "/chat", `{"message":"m"}`}, {"POST", "/task", `{"message":"m"}`}, {"POST", "/heartbeat", `{"state":"idle"}`},
	} {
		e := b.Do(c.method, "/api/agents/commands@local"+c.path, c.body).WantError(t, 404, signalbox.CodeNotFound)
		if !strings.Contains(e.Message, "executor") || !strings.Contains(e.Hint, "signalbox pause commands") {
			t.Errorf("%s %s: %+v", c.method, c.path, e)
		}
	}
	e := b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"calls@local"}`).WantError(t, 400, signalbox.CodeValidation)
	if !strings.Contains(e.Message, "no prompts") || !strings.Contains(e.Hint, "/tasks") {
		t.Errorf("%+v", e)
	}
	b.Do("POST", "/api/agents", `{"name":"commands@local","kind":"demo","url":"http://127.0.0.1:9000"}`).WantError(t, 400, signalbox.CodeValidation)
}

// The output of a tool is sent as transient events.
func TestEventsWithOutputOfATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := apitest.NewWithToolTasks(t)
		s := b.Start("GET", "/api/events?include=output", "")
		synctest.Wait()
		id := apitest.CreateToolTask(b, `{}`).ID
		row := b.RunTool(f, "half way\n")
		time.Sleep(time.Second)
		b.AnswerTool(f, row, "half way\ndone\n", "")
		time.Sleep(time.Second)
		text := ""
		for _, e := range apitest.Moments(t, s.Events(), "output") {
			if e.QueueID != id || e.Queue != "commands" {
				t.Errorf("%+v", e)
			}
			text += e.Text
		}
		if text != "half way\ndone\n" {
			t.Errorf("%q", text)
		}
		s.Cancel()
		s.Reply()
	})
}

func TestQueuesOfToolsCanBePaused(t *testing.T) {
	b, _ := apitest.NewWithToolTasks(t)
	for _, queue := range []string{"commands", "calls"} {
		var p api.Paused
		b.Do("POST", "/api/queue/pause", `{"queue":"`+queue+`"}`).Want(t, 200, &p)
		if len(p.Paused) != 1 || p.Paused[0].Queue != queue {
			t.Errorf("%+v", p)
		}
		b.Do("GET", "/api/queue?queue="+queue, "").Want(t, 200, nil)
		b.Do("POST", "/api/queue/resume", `{"queue":"`+queue+`"}`).Want(t, 200, nil)
	}
	for _, path := range []string{"POST /api/queue/pause", "POST /api/queue/resume", "GET /api/queue?queue=command"} {
		method, path, _ := strings.Cut(path, " ")
		body := `{"queue":"command"}`
		if method == "GET" {
			body = ""
		}
		if e := b.Do(method, path, body).WantError(t, 400, signalbox.CodeValidation); method+path != "POST/api/queue/resume" && (!strings.Contains(e.Message, "commands") || !strings.Contains(e.Message, "calls")) {
			t.Errorf("%s does not name them: %+v", path, e)
		}
	}
}

func TestRetryOfAToolTask(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t, apitest.WithToken)
	show := apitest.Bearer(apitest.Secret)
	id := apitest.CreateToolTask(b, `{"arguments":{"month":"1"},"metadata":{"a":1},"timeout_ms":1500,"priority":2}`, show).ID
	retry := "/api/queue/" + id + "/retry"
	b.Do("POST", retry, "", show).WantError(t, 409, signalbox.CodeConflict)
	b.AnswerTool(f, b.RunTool(f, ""), "", "command exited with code 3")
	var got api.SubmitResponse
	b.Do("POST", retry, "", show).Want(t, 201, &got)
	c := f.LastCall()
	if got.RetryOf != id || got.QueueID == id || got.Queue != "commands" || got.State != "pending" {
		t.Errorf("%+v", got)
	}
	if c.Tool != "report" || string(c.Arguments) != `{"month":"1"}` || string(c.Meta) != `{"a":1}` || c.Limit.Milliseconds() != 1500 || c.Priority != 2 || c.RetryOf != id {
		t.Errorf("%+v", c)
	}
	b.Do("POST", retry, `{"timeout_seconds":60}`, show, apitest.Header("Idempotency-Key", "k")).Want(t, 201, nil)
	if c = f.LastCall(); c.Limit.Seconds() != 60 || c.IdempotencyKey != "k" {
		t.Errorf("%+v", c)
	}
	for _, body := range []string{`{"prompt":"p"}`, `{"model":"m"}`, `{"env":{}}`, `{"timeout_seconds":-1}`, `{"timeout_seconds":604801}`} {
		b.Do("POST", retry, body, show).WantError(t, 400, signalbox.CodeValidation)
	}
	// A caller that may only submit prompts cannot call tools with a retry.
	submitter := apitest.Bearer(b.AddToken(identity.NewToken{Name: "s", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}))
	b.Do("POST", retry, "", submitter).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	// Nor does a retry reveal other callers' arguments without the scope read.
	blind := apitest.Bearer(b.AddToken(identity.NewToken{Name: "blind", Scopes: []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeTool}}))
	b.Do("POST", retry, "", blind).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)

	for range 2 { // the tasks made above
		b.AnswerTool(f, b.RunTool(f, ""), "", "")
	}
	secretly := apitest.CreateToolTask(b, `{"arguments":{"password":"x"}}`, show).ID
	b.AnswerTool(f, b.RunTool(f, ""), "", "")
	if e := b.Do("POST", "/api/queue/"+secretly+"/retry", "", show).WantError(t, 400, signalbox.CodeValidation); !strings.Contains(e.Message, "erased") || !strings.Contains(e.Hint, "--task") {
		t.Errorf("%+v", e)
	}
}

package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// A tool's task stands in the queue, in the history and among the activities
// like any other, and says what it is.
func TestToolTasksWhereverTasksAreShown(t *testing.T) {
	b, f := newToolBox(t)
	b.agent("coder", 1)
	waits := b.toolTask(`{"arguments":{"month":"1"}}`).ID
	var q api.Queue
	b.do("GET", "/api/queue", "").want(t, 200, &q)
	if len(q.Tasks) != 1 || q.Tasks[0].Mode != "tool" || q.Tasks[0].Tool != "report" || q.Tasks[0].Position != 1 || q.Tasks[0].Arguments != nil {
		t.Errorf("%+v", q.Tasks)
	}
	if q.Depth != 0 || q.Tools == nil || q.Tools.Waiting != 1 {
		t.Errorf("depth counts what the queue's size bounds: %+v", q)
	}
	row := b.runTool(f, "working on it\n")
	v := b.get(waits)
	if v.Mode != "tool" || v.Tool != "report" || string(v.Arguments) != `{"month":"1"}` || v.State != "working" {
		t.Errorf("%+v", v)
	}
	var s api.Status
	b.do("GET", "/status", "").want(t, 200, &s)
	if s.Tools == nil || s.Tools.Waiting != 0 || s.Tools.Running != 1 || s.Agents.Total != 1 || s.Agents.Working != 0 || s.Queue.DispatchedCount != 1 {
		t.Errorf("%+v %+v %+v", s.Tools, s.Agents, s.Queue)
	}
	list := b.activities("?type=tool_call")
	if len(list) != 1 || list[0].State != "started" || list[0].Details.Tool != "report" || list[0].AgentName != "" || list[0].RelatedExecutionID != waits {
		t.Errorf("%+v", list)
	}
	b.answerTool(f, row, "", "command exited with code 3")
	var h api.History
	b.do("GET", "/api/history", "").want(t, 200, &h)
	if len(h.Tasks) != 1 || h.Tasks[0].Mode != "tool" || h.Tasks[0].Tool != "report" || h.Tasks[0].Message != "command exited with code 3" {
		t.Errorf("%+v", h.Tasks)
	}
	if list = b.activities("?type=tool_call&state=failed"); len(list) != 1 || list[0].Error == "" {
		t.Errorf("%+v", list)
	}
	plain := newBox(t)
	plain.do("GET", "/status", "").want(t, 200, &s)
	if body := plain.do("GET", "/status", "").body; strings.Contains(string(body), "tool_tasks") {
		t.Errorf("without tools: %s", body)
	}
}

// The director's own executor is no agent: it stands apart, and nothing that
// is for agents reaches it.
func TestTheExecutorIsNoAgent(t *testing.T) {
	b, _ := newToolBox(t)
	b.agent("coder", 1)
	b.executor()
	b.toolTask(`{}`)
	var list api.Agents
	b.do("GET", "/api/agents", "").want(t, 200, &list)
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
		e := b.do(c.method, "/api/agents/commands@local"+c.path, c.body).wantError(t, 404, signalbox.CodeNotFound)
		if !strings.Contains(e.Message, "executor") || !strings.Contains(e.Hint, "signalbox pause commands") {
			t.Errorf("%s %s: %+v", c.method, c.path, e)
		}
	}
	e := b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"calls@local"}`).wantError(t, 400, signalbox.CodeValidation)
	if !strings.Contains(e.Message, "no prompts") || !strings.Contains(e.Hint, "/tasks") {
		t.Errorf("%+v", e)
	}
	b.do("POST", "/api/agents", `{"name":"commands@local","kind":"demo","url":"http://127.0.0.1:9000"}`).wantError(t, 400, signalbox.CodeValidation)
}

// What a tool prints is among the events of the moment.
func TestEventsWithOutputOfATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newToolBox(t)
		s := b.ask("GET", "/api/events?include=output", "")
		synctest.Wait()
		id := b.toolTask(`{}`).ID
		row := b.runTool(f, "half way\n")
		time.Sleep(time.Second)
		b.answerTool(f, row, "half way\ndone\n", "")
		time.Sleep(time.Second)
		text := ""
		for _, e := range of(t, s.events(), "output") {
			if e.QueueID != id || e.Queue != "commands" {
				t.Errorf("%+v", e)
			}
			text += e.Text
		}
		if text != "half way\ndone\n" {
			t.Errorf("%q", text)
		}
		s.leave()
		s.answer()
	})
}

func TestQueuesOfToolsCanBePaused(t *testing.T) {
	b, _ := newToolBox(t)
	for _, queue := range []string{"commands", "calls"} {
		var p api.Paused
		b.do("POST", "/api/queue/pause", `{"queue":"`+queue+`"}`).want(t, 200, &p)
		if len(p.Paused) != 1 || p.Paused[0].Queue != queue {
			t.Errorf("%+v", p)
		}
		b.do("GET", "/api/queue?queue="+queue, "").want(t, 200, nil)
		b.do("POST", "/api/queue/resume", `{"queue":"`+queue+`"}`).want(t, 200, nil)
	}
	for _, path := range []string{"POST /api/queue/pause", "POST /api/queue/resume", "GET /api/queue?queue=command"} {
		method, path, _ := strings.Cut(path, " ")
		body := `{"queue":"command"}`
		if method == "GET" {
			body = ""
		}
		if e := b.do(method, path, body).wantError(t, 400, signalbox.CodeValidation); method+path != "POST/api/queue/resume" && (!strings.Contains(e.Message, "commands") || !strings.Contains(e.Message, "calls")) {
			t.Errorf("%s does not name them: %+v", path, e)
		}
	}
}

func TestRetryOfAToolTask(t *testing.T) {
	b, f := newToolBox(t, withToken)
	show := bearer(secret)
	id := b.toolTask(`{"arguments":{"month":"1"},"metadata":{"a":1},"timeout_ms":1500,"priority":2}`, show).ID
	retry := "/api/queue/" + id + "/retry"
	b.do("POST", retry, "", show).wantError(t, 409, signalbox.CodeConflict)
	b.answerTool(f, b.runTool(f, ""), "", "command exited with code 3")
	var got api.SubmitResponse
	b.do("POST", retry, "", show).want(t, 201, &got)
	c := f.last()
	if got.RetryOf != id || got.QueueID == id || got.Queue != "commands" || got.State != "pending" {
		t.Errorf("%+v", got)
	}
	if c.Tool != "report" || string(c.Arguments) != `{"month":"1"}` || string(c.Meta) != `{"a":1}` || c.Limit.Milliseconds() != 1500 || c.Priority != 2 || c.RetryOf != id {
		t.Errorf("%+v", c)
	}
	b.do("POST", retry, `{"timeout_seconds":60}`, show, header("Idempotency-Key", "k")).want(t, 201, nil)
	if c = f.last(); c.Limit.Seconds() != 60 || c.IdempotencyKey != "k" {
		t.Errorf("%+v", c)
	}
	for _, body := range []string{`{"prompt":"p"}`, `{"model":"m"}`, `{"env":{}}`, `{"timeout_seconds":-1}`, `{"timeout_seconds":604801}`} {
		b.do("POST", retry, body, show).wantError(t, 400, signalbox.CodeValidation)
	}
	// Who may submit prompts may not call tools by way of a retry.
	submitter := bearer(b.token(identity.NewToken{Name: "s", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}))
	b.do("POST", retry, "", submitter).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	// Nor does a retry show the arguments of others to those who may not read.
	blind := bearer(b.token(identity.NewToken{Name: "blind", Scopes: []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeTool}}))
	b.do("POST", retry, "", blind).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)

	for range 2 { // those that were made above
		b.answerTool(f, b.runTool(f, ""), "", "")
	}
	secretly := b.toolTask(`{"arguments":{"password":"x"}}`, show).ID
	b.answerTool(f, b.runTool(f, ""), "", "")
	if e := b.do("POST", "/api/queue/"+secretly+"/retry", "", show).wantError(t, 400, signalbox.CodeValidation); !strings.Contains(e.Message, "erased") || !strings.Contains(e.Hint, "--task") {
		t.Errorf("%+v", e)
	}
}

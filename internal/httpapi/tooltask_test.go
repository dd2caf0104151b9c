package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

const reportPath = "/api/tools/report/tasks"

func (b *box) toolTask(body string, edits ...edit) api.ToolTask {
	b.t.Helper()
	var out api.ToolTask
	b.do("POST", reportPath, body, edits...).want(b.t, http.StatusCreated, &out)
	return out
}

func (b *box) getToolTask(id string, edits ...edit) api.ToolTask {
	b.t.Helper()
	var out api.ToolTask
	b.do("GET", "/api/tools/tasks/"+id, "", edits...).want(b.t, http.StatusOK, &out)
	return out
}

func TestAToolTaskThroughItsLife(t *testing.T) {
	b, f := newToolBox(t)
	got := b.do("POST", reportPath, `{"arguments":{"month":"2025-01","n":12345678901234567890},"metadata":{"for":"x"},"timeout_ms":1500,"priority":3}`, header("X-Signalbox-Session", "s1"))
	var made api.ToolTask
	got.want(t, http.StatusCreated, &made)
	if got.Header.Get("Location") != "/api/tools/tasks/"+made.ID || !signalbox.ValidID(made.ID) {
		t.Errorf("Location %q of %q", got.Header.Get("Location"), made.ID)
	}
	if made.ToolName != "report" || made.Status != "pending" || made.State != "pending" || made.Position != 1 || made.PollIntervalMS != 2000 || made.TimeoutMS != 1500 || made.Message == "" {
		t.Errorf("%+v", made)
	}
	if !strings.Contains(string(got.body), `"error":null`) || !strings.Contains(string(got.body), `"result":null`) {
		t.Errorf("the seed's keys are always there: %s", got.body)
	}
	c := f.last()
	if string(c.Arguments) != `{"month":"2025-01","n":12345678901234567890}` || string(c.Meta) != `{"for":"x"}` || c.Limit != 1500*time.Millisecond || c.Priority != 3 || c.Caller.Session != "named::s1" || c.Source != signalbox.SourceAPI {
		t.Errorf("%+v", c)
	}

	row := b.runTool(f, "half way\n")
	if v := b.getToolTask(made.ID); v.Status != "running" || v.State != "working" || v.Result != nil || v.Error != nil {
		t.Errorf("%+v", v)
	}
	var out api.Output
	b.do("GET", "/api/queue/"+made.ID+"/output?after=5", "").want(t, 200, &out)
	if out.Text != "way\n" || out.Seq != 5 || out.Next != 9 || out.State != "working" || out.QueueID != made.ID {
		t.Errorf("live output: %+v", out)
	}
	b.answerTool(f, row, "done\n", "")
	v := b.getToolTask(made.ID)
	if v.Status != "completed" || v.Error != nil || v.Result == nil || string(v.Result.Content) != `[{"type":"text","text":"done\n"}]` || string(v.Result.Metadata) != `{"agent":"report"}` ||
		*v.ExitCode != 0 || v.Tail != "done\n" || v.UpdatedAt.Before(v.CreatedAt) || v.PollIntervalMS != 0 {
		t.Errorf("%+v", v)
	}
	b.do("GET", "/api/queue/"+made.ID+"/output", "").want(t, 200, &out)
	if out.Text != "done\n" || !out.Done {
		t.Errorf("stored output: %+v", out)
	}
	b.do("POST", "/api/tools/tasks/"+made.ID+"/cancel", "").wantError(t, 409, signalbox.CodeAlreadyEnded)

	failed := b.toolTask(`{}`)
	b.answerTool(f, b.runTool(f, ""), "", "command exited with code 3")
	if v := b.getToolTask(failed.ID); v.Status != "failed" || v.Error == nil || *v.Error != "command exited with code 3" || v.Result != nil || v.Reason != "exit_nonzero" || *v.ExitCode != 3 {
		t.Errorf("%+v", v)
	}
}

// GET /getTaskStatus is the seed's: its key, its 400, 401 and 404.
func TestSeedGetTaskStatus(t *testing.T) {
	b, f := newToolBox(t, withToken)
	show := bearer(secret)
	made := b.toolTask(`{}`, show)
	b.answerTool(f, b.runTool(f, ""), "(no output)", "")
	var got map[string]map[string]any
	b.do("GET", "/getTaskStatus?taskId="+made.ID, "", show).want(t, 200, &got)
	task := got["task"]
	for _, key := range []string{"id", "toolName", "status", "createdAt", "updatedAt", "error", "result"} {
		if _, there := task[key]; !there {
			t.Errorf("no %s in %v", key, task)
		}
	}
	if task["status"] != "completed" || task["error"] != nil {
		t.Errorf("%v", task)
	}
	e := b.do("GET", "/getTaskStatus", "", show).wantError(t, 400, signalbox.CodeValidation)
	if e.Message != "Missing taskId" || e.Field != "taskId" {
		t.Errorf("%+v", e)
	}
	b.do("GET", "/getTaskStatus?taskId="+made.ID, "").wantError(t, 401, signalbox.CodeUnauthorized)
	for _, id := range []string{"queue-00000000000000000000000000", "a1b2c3d4e5f6g7h8", "../x", strings.Repeat("x", 500)} {
		b.do("GET", "/getTaskStatus?taskId="+id, "", show).wantError(t, 404, signalbox.CodeNotFound)
	}
	b.do("GET", "/getTaskStatus?taskId="+made.ID+"&wait=1s", "", show).wantError(t, 400, signalbox.CodeValidation)
}

func TestToolTaskRefusesWhatIsWrong(t *testing.T) {
	b, f := newToolBox(t)
	for _, c := range []bad{
		{`[]`, "", "must be an object"},
		{`{"arguments":[]}`, "arguments", "must be an object, not an array"},
		{`{"arguments":"{}"}`, "arguments", "must be an object, not a string"},
		{`{"arguments":{"a":1,"a":2}}`, "arguments.a", "given twice"},
		{`{"metadata":1}`, "metadata", "must be an object, not a number"},
		{`{"arguments":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 41), "arguments", "nested too deep"},
		{`{"args":{}}`, "args", "not a known field"},
		{`{"session":"x"}`, "session", "not a known field"},
		{`{"timeout_ms":-1}`, "timeout_ms", "1 to 604800000, or 0 for the tool's own"},
		{`{"timeout_ms":604800001}`, "timeout_ms", "1 to 604800000, or 0 for the tool's own"},
		{`{"timeout_ms":9223372036854775807}`, "timeout_ms", "1 to 604800000, or 0 for the tool's own"},
		{`{"timeout_ms":1e3}`, "timeout_ms", "whole number"},
		{`{"timeout_ms":"1s"}`, "timeout_ms", "must be a whole number, not a string"},
		{`{"priority":11}`, "priority", "-10 to 10"},
		{`{"priority":1.5}`, "priority", "whole number"},
		{`{"timeout_ms":1,"timeout_ms":2}`, "timeout_ms", "given twice"},
	} {
		e := b.do("POST", reportPath, c.body).wantError(t, 400, signalbox.CodeValidation)
		if !strings.HasPrefix(e.Field, c.field) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.80s: %+v", c.body, e)
		}
	}
	b.do("POST", reportPath, `{"arguments":{"a":"`+strings.Repeat("x", 4<<20)+`"}}`).wantError(t, 413, signalbox.CodeTooLarge)
	b.do("POST", reportPath+"?wait=30s", `{}`).wantError(t, 400, signalbox.CodeValidation)
	b.do("POST", reportPath, `{}`, header("Idempotency-Key", "")).wantError(t, 400, signalbox.CodeValidation)
	b.do("POST", "/api/tools/nothing/tasks", `{}`).wantError(t, 404, signalbox.CodeNotFound)
	for _, query := range []string{"?status=working", "?status=PENDING", "?limit=0", "?limit=1001", "?state=failed", "?tool=a&tool=b"} {
		b.do("GET", "/api/tools/tasks"+query, "").wantError(t, 400, signalbox.CodeValidation)
	}
	b.do("GET", "/api/tools/tasks/queue-00000000000000000000000000?wait=6m", "").wantError(t, 400, signalbox.CodeValidation)
	if n := len(f.calls); n != 1 {
		t.Errorf("%d calls reached the executor", n)
	}
	f.refuse = signalbox.Errorf(signalbox.CodeQueueFull, "queue is at capacity (8 tasks)")
	e := b.do("POST", reportPath, `{}`).wantError(t, 503, signalbox.CodeQueueFull)
	if e.RetryAfter == 0 || !strings.Contains(e.Hint, "tools tasks") {
		t.Errorf("%+v", e)
	}
	f.refuse = &gateway.ProtocolError{Code: -32000, Message: "out of order"}
	b.do("POST", reportPath, `{}`).wantError(t, 502, signalbox.CodeToolFailed)
	f.refuse = &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "disk full at /secret", Err: errors.New("ENOSPC")}
	if e := b.do("POST", reportPath, `{}`).wantError(t, 500, signalbox.CodeStoreFailed); strings.Contains(e.Message, "secret") {
		t.Errorf("%+v", e)
	}
}

func TestToolTaskIdempotency(t *testing.T) {
	b, _ := newToolBox(t)
	key := header("Idempotency-Key", "k")
	first := b.toolTask(`{"arguments":{"month":"1"}}`, key)
	again := b.do("POST", reportPath, `{"arguments":{"month":"1"}}`, key)
	var second api.ToolTask
	again.want(t, 201, &second)
	if second.ID != first.ID || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("Location") != "/api/tools/tasks/"+first.ID {
		t.Errorf("%s after %s: %v", second.ID, first.ID, again.Header)
	}
	b.do("POST", reportPath, `{"arguments":{"month":"2"}}`, key).wantError(t, 422, signalbox.CodeIdempotency)
}

// A call of an async tool is answered at once with the seed's text.
func TestSeedAsyncCallIsAnsweredWithItsTask(t *testing.T) {
	b, f := newToolBox(t, func(o *options) { o.director.AgentName = "worker" })
	var res api.ToolResult
	b.do("POST", "/api/tools/report/call", `{"arguments":{"month":"1"},"session":"s"}`).want(t, 200, &res)
	id := string(res.Content)
	if !strings.Contains(id, `"text":"Task 'report' queued with id queue-`) || !strings.Contains(string(res.Metadata), `"agent":"worker","taskId":"queue-`) || res.IsError {
		t.Errorf("%s %s", res.Content, res.Metadata)
	}
	if c := f.last(); string(c.Arguments) != `{"month":"1"}` || c.Caller.Session != "named::s" {
		t.Errorf("%+v", c)
	}
	got := b.do("POST", "/api/tools/report/call", `{}`, header("Accept", "text/event-stream"))
	got.want(t, 200, nil)
	if !strings.Contains(string(got.body), "event: result") || !strings.Contains(string(got.body), "queued with id") {
		t.Errorf("%s", got.body)
	}
	plain := newBox(t, withTools(newFakeTools()))
	plain.do("POST", "/api/tools/report/call", `{}`).wantError(t, 501, signalbox.CodeUnsupported)
	plain.do("POST", reportPath, `{}`).wantError(t, 501, signalbox.CodeUnsupported)
	for _, path := range []string{"/api/tools/tasks", "/api/tools/tasks/queue-00000000000000000000000000", "/getTaskStatus?taskId=queue-00000000000000000000000000"} {
		if e := plain.do("GET", path, "").wantError(t, 404, signalbox.CodeNotFound); !strings.Contains(e.Hint, "/call") {
			t.Errorf("%+v", e)
		}
	}
}

func TestWaitingForAToolTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newToolBox(t)
		id := b.toolTask(`{}`).ID
		begun := time.Now()
		done := make(chan reply)
		go func() { done <- b.do("GET", "/api/tools/tasks/"+id+"?wait=60s", "") }()
		time.Sleep(10 * time.Second)
		b.answerTool(f, b.runTool(f, ""), "42", "")
		var v api.ToolTask
		(<-done).want(t, 200, &v)
		if v.Status != "completed" || time.Since(begun) != 10*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), v)
		}
		id = b.toolTask(`{}`).ID
		begun = time.Now()
		if b.do("GET", "/api/tools/tasks/"+id+"?wait=7", "").want(t, 200, &v); v.Status != "pending" || time.Since(begun) != 7*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), v)
		}
	})
}

func TestCancelAToolTask(t *testing.T) {
	for _, path := range []string{"/api/tools/tasks/", "/api/queue/"} {
		synctest.Test(t, func(t *testing.T) {
			b, f := newToolBox(t)
			var v api.ToolTask
			waiting := b.toolTask(`{}`).ID
			b.do("POST", path+waiting+"/cancel", "").want(t, 200, nil)
			if v = b.getToolTask(waiting); v.Status != "cancelled" || v.Error != nil {
				t.Errorf("%+v", v)
			}
			b.toolTask(`{}`)
			row := b.runTool(f, "")
			begun := time.Now()
			got := b.do("POST", path+row.ID+"/cancel", "").want(t, 202, nil)
			if time.Since(begun) != httpapi.CancelWait || strings.Contains(string(got.body), "release") || !strings.Contains(string(got.body), "being stopped") {
				t.Errorf("after %s: %s", time.Since(begun), got.body)
			}
			if v = b.getToolTask(row.ID); v.Status != "running" || v.State != "cancelling" {
				t.Errorf("%+v", v)
			}
			go func() {
				time.Sleep(2 * time.Second)
				b.finish(row, signalbox.ReasonCancelled, signalbox.Result{})
			}()
			b.do("POST", path+row.ID+"/cancel", "").want(t, 200, nil)
			if v = b.getToolTask(row.ID); v.Status != "cancelled" {
				t.Errorf("%+v", v)
			}
		})
	}
}

// Who may only use tools sees what it asked for itself; who may read sees what
// it would see in the queue; who is limited to some agents sees its own.
func TestToolTasksOfOthers(t *testing.T) {
	b, _ := newToolBox(t, withToken)
	token := func(name string, agents []string, scopes ...signalbox.Scope) edit {
		return bearer(b.token(identity.NewToken{Name: name, Scopes: scopes, Agents: agents}))
	}
	mine, other := token("mine", nil, signalbox.ScopeTool), token("other", nil, signalbox.ScopeTool)
	reader := token("reader", nil, signalbox.ScopeTool, signalbox.ScopeRead)
	limited := token("limited", []string{"coder"}, signalbox.ScopeTool, signalbox.ScopeRead, signalbox.ScopeCancel, signalbox.ScopeSubmit)
	id := b.toolTask(`{}`, mine).ID
	paths := []string{"GET /api/tools/tasks/" + id, "GET /getTaskStatus?taskId=" + id, "POST /api/tools/tasks/" + id + "/cancel"}
	for _, path := range paths {
		method, path, _ := strings.Cut(path, " ")
		for _, who := range []edit{other, limited} {
			e := b.do(method, path, "", who).wantError(t, 404, signalbox.CodeNotFound)
			none := b.do("GET", "/api/tools/tasks/queue-00000000000000000000000000", "", who).wantError(t, 404, signalbox.CodeNotFound)
			if want := strings.ReplaceAll(none.Message, "queue-00000000000000000000000000", id); e.Message != want || e.Hint != none.Hint {
				t.Errorf("%s tells that there is something: %+v", path, e)
			}
		}
	}
	b.do("GET", "/api/queue/"+id, "", limited).wantError(t, 404, signalbox.CodeNotFound)
	b.getToolTask(id, mine)
	b.getToolTask(id, reader)
	b.do("POST", "/api/tools/tasks/"+id+"/cancel", "", reader).wantError(t, 403, signalbox.CodeForbidden)
	own := b.toolTask(`{}`, limited).ID
	for name, c := range map[string]struct {
		who  edit
		want int
	}{"mine": {mine, 1}, "other": {other, 0}, "reader": {reader, 2}, "limited": {limited, 1}, "static": {bearer(secret), 2}} {
		var page api.ToolTasks
		b.do("GET", "/api/tools/tasks", "", c.who).want(t, 200, &page)
		if len(page.Tasks) != c.want {
			t.Errorf("%s sees %d, want %d", name, len(page.Tasks), c.want)
		}
	}
	b.do("GET", "/api/queue/"+own, "", limited).want(t, 200, nil)
	b.do("POST", "/api/tools/tasks/"+id+"/cancel", "", mine).want(t, 200, nil)
	b.do("POST", "/api/tools/tasks/"+own+"/cancel", "", bearer(secret)).want(t, 200, nil)
	var log api.AuditLog
	b.do("GET", "/api/audit?action=cancel", "", bearer(secret)).want(t, 200, &log)
	if len(log.Rows) != 1 || log.Rows[0].Resource != own || !strings.Contains(log.Rows[0].Details, `"tool":"report"`) {
		t.Errorf("%+v", log.Rows)
	}
}

func TestToolTasksAreListed(t *testing.T) {
	b, f := newToolBox(t)
	done := b.toolTask(`{"arguments":{"month":"1"}}`).ID
	b.answerTool(f, b.runTool(f, ""), "out", "")
	running := b.toolTask(`{}`).ID
	b.runTool(f, "x")
	waiting := b.toolTask(`{}`).ID
	b.submit(`{"prompt":"none of a tool"}`)
	list := func(query string) (ids []string, page api.ToolTasks) {
		b.do("GET", "/api/tools/tasks"+query, "").want(t, 200, &page)
		for _, v := range page.Tasks {
			ids = append(ids, v.ID)
		}
		return ids, page
	}
	for query, want := range map[string][]string{
		"": {running, waiting, done}, "?status=running": {running}, "?status=pending": {waiting}, "?status=completed": {done},
		"?status=failed": nil, "?tool=report": {running, waiting, done}, "?tool=other": nil, "?limit=1": {running},
	} {
		if got, _ := list(query); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if _, page := list("?limit=2"); page.Next == "" {
		t.Error("no cursor")
	}
}

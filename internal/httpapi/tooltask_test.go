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
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func getToolTask(b *apitest.Fixture, id string, edits ...apitest.Edit) api.ToolTask {
	b.T.Helper()
	var out api.ToolTask
	b.Do("GET", "/api/tools/tasks/"+id, "", edits...).Want(b.T, http.StatusOK, &out)
	return out
}

func TestAToolTaskThroughItsLife(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t)
	got := b.Do("POST", apitest.ReportPath, `{"arguments":{"month":"2025-01","n":12345678901234567890},"metadata":{"for":"x"},"timeout_ms":1500,"priority":3}`, apitest.Header("X-Signalbox-Session", "s1"))
	var made api.ToolTask
	got.Want(t, http.StatusCreated, &made)
	if got.Header.Get("Location") != "/api/tools/tasks/"+made.ID || !signalbox.ValidID(made.ID) {
		t.Errorf("Location %q of %q", got.Header.Get("Location"), made.ID)
	}
	if made.ToolName != "report" || made.Status != "pending" || made.State != "pending" || made.Position != 1 || made.PollIntervalMS != 2000 || made.TimeoutMS != 1500 || made.Message == "" {
		t.Errorf("%+v", made)
	}
	if !strings.Contains(string(got.Body), `"error":null`) || !strings.Contains(string(got.Body), `"result":null`) {
		t.Errorf("the seed's keys are always there: %s", got.Body)
	}
	c := f.LastCall()
	if string(c.Arguments) != `{"month":"2025-01","n":12345678901234567890}` || string(c.Meta) != `{"for":"x"}` || c.Limit != 1500*time.Millisecond || c.Priority != 3 || c.Caller.Session != "named::s1" || c.Source != signalbox.SourceAPI {
		t.Errorf("%+v", c)
	}

	row := b.RunTool(f, "half way\n")
	if v := getToolTask(b, made.ID); v.Status != "running" || v.State != "working" || v.Result != nil || v.Error != nil {
		t.Errorf("%+v", v)
	}
	var out api.Output
	b.Do("GET", "/api/queue/"+made.ID+"/output?after=5", "").Want(t, 200, &out)
	if out.Text != "way\n" || out.Seq != 5 || out.Next != 9 || out.State != "working" || out.QueueID != made.ID {
		t.Errorf("live output: %+v", out)
	}
	b.AnswerTool(f, row, "done\n", "")
	v := getToolTask(b, made.ID)
	if v.Status != "completed" || v.Error != nil || v.Result == nil || string(v.Result.Content) != `[{"type":"text","text":"done\n"}]` || string(v.Result.Metadata) != `{"agent":"report"}` ||
		*v.ExitCode != 0 || v.Tail != "done\n" || v.UpdatedAt.Before(v.CreatedAt) || v.PollIntervalMS != 0 {
		t.Errorf("%+v", v)
	}
	b.Do("GET", "/api/queue/"+made.ID+"/output", "").Want(t, 200, &out)
	if out.Text != "done\n" || !out.Done {
		t.Errorf("stored output: %+v", out)
	}
	b.Do("POST", "/api/tools/tasks/"+made.ID+"/cancel", "").WantError(t, 409, signalbox.CodeAlreadyEnded)

	failed := apitest.CreateToolTask(b, `{}`)
	b.AnswerTool(f, b.RunTool(f, ""), "", "command exited with code 3")
	if v := getToolTask(b, failed.ID); v.Status != "failed" || v.Error == nil || *v.Error != "command exited with code 3" || v.Result != nil || v.Reason != "exit_nonzero" || *v.ExitCode != 3 {
		t.Errorf("%+v", v)
	}
}

// GET /getTaskStatus has the seed's form: its key, and its 400, 401 and 404.
func TestSeedGetTaskStatus(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t, apitest.WithToken)
	show := apitest.Bearer(apitest.Secret)
	made := apitest.CreateToolTask(b, `{}`, show)
	b.AnswerTool(f, b.RunTool(f, ""), "(no output)", "")
	var got map[string]map[string]any
	b.Do("GET", "/getTaskStatus?taskId="+made.ID, "", show).Want(t, 200, &got)
	task := got["task"]
	for _, key := range []string{"id", "toolName", "status", "createdAt", "updatedAt", "error", "result"} {
		if _, there := task[key]; !there {
			t.Errorf("no %s in %v", key, task)
		}
	}
	if task["status"] != "completed" || task["error"] != nil {
		t.Errorf("%v", task)
	}
	e := b.Do("GET", "/getTaskStatus", "", show).WantError(t, 400, signalbox.CodeValidation)
	if e.Message != "Missing taskId" || e.Field != "taskId" {
		t.Errorf("%+v", e)
	}
	b.Do("GET", "/getTaskStatus?taskId="+made.ID, "").WantError(t, 401, signalbox.CodeUnauthorized)
	for _, id := range []string{"queue-00000000000000000000000000", "a1b2c3d4e5f6g7h8", "../x", strings.Repeat("x", 500)} {
		b.Do("GET", "/getTaskStatus?taskId="+id, "", show).WantError(t, 404, signalbox.CodeNotFound)
	}
	b.Do("GET", "/getTaskStatus?taskId="+made.ID+"&wait=1s", "", show).WantError(t, 400, signalbox.CodeValidation)
}

func TestToolTaskRefusesWhatIsWrong(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t)
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
		e := b.Do("POST", apitest.ReportPath, c.body).WantError(t, 400, signalbox.CodeValidation)
		if !strings.HasPrefix(e.Field, c.field) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.80s: %+v", c.body, e)
		}
	}
	b.Do("POST", apitest.ReportPath, `{"arguments":{"a":"`+strings.Repeat("x", 4<<20)+`"}}`).WantError(t, 413, signalbox.CodeTooLarge)
	b.Do("POST", apitest.ReportPath+"?wait=30s", `{}`).WantError(t, 400, signalbox.CodeValidation)
	b.Do("POST", apitest.ReportPath, `{}`, apitest.Header("Idempotency-Key", "")).WantError(t, 400, signalbox.CodeValidation)
	b.Do("POST", "/api/tools/nothing/tasks", `{}`).WantError(t, 404, signalbox.CodeNotFound)
	for _, query := range []string{"?status=working", "?status=PENDING", "?limit=0", "?limit=1001", "?state=failed", "?tool=a&tool=b"} {
		b.Do("GET", "/api/tools/tasks"+query, "").WantError(t, 400, signalbox.CodeValidation)
	}
	b.Do("GET", "/api/tools/tasks/queue-00000000000000000000000000?wait=6m", "").WantError(t, 400, signalbox.CodeValidation)
	if n := len(f.Calls); n != 1 {
		t.Errorf("%d calls reached the executor", n)
	}
	f.Refuse = signalbox.Errorf(signalbox.CodeQueueFull, "queue is at capacity (8 tasks)")
	e := b.Do("POST", apitest.ReportPath, `{}`).WantError(t, 503, signalbox.CodeQueueFull)
	if e.RetryAfter == 0 || !strings.Contains(e.Hint, "tools tasks") {
		t.Errorf("%+v", e)
	}
	f.Refuse = &gateway.ProtocolError{Code: -32000, Message: "out of order"}
	b.Do("POST", apitest.ReportPath, `{}`).WantError(t, 502, signalbox.CodeToolFailed)
	f.Refuse = &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "disk full at /secret", Err: errors.New("ENOSPC")}
	if e := b.Do("POST", apitest.ReportPath, `{}`).WantError(t, 500, signalbox.CodeStoreFailed); strings.Contains(e.Message, "secret") {
		t.Errorf("%+v", e)
	}
}

func TestToolTaskIdempotency(t *testing.T) {
	b, _ := apitest.NewWithToolTasks(t)
	key := apitest.Header("Idempotency-Key", "k")
	first := apitest.CreateToolTask(b, `{"arguments":{"month":"1"}}`, key)
	again := b.Do("POST", apitest.ReportPath, `{"arguments":{"month":"1"}}`, key)
	var second api.ToolTask
	again.Want(t, 201, &second)
	if second.ID != first.ID || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("Location") != "/api/tools/tasks/"+first.ID {
		t.Errorf("%s after %s: %v", second.ID, first.ID, again.Header)
	}
	b.Do("POST", apitest.ReportPath, `{"arguments":{"month":"2"}}`, key).WantError(t, 422, signalbox.CodeIdempotency)
}

// A call of an async tool is answered at once with the seed's text.
func TestSeedAsyncCallIsAnsweredWithItsTask(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t, func(o *apitest.Options) { o.Config.AgentName = "worker" })
	var res api.ToolResult
	b.Do("POST", "/api/tools/report/call", `{"arguments":{"month":"1"},"session":"s"}`).Want(t, 200, &res)
	id := string(res.Content)
	if !strings.Contains(id, `"text":"Task 'report' queued with id queue-`) || !strings.Contains(string(res.Metadata), `"agent":"worker","taskId":"queue-`) || res.IsError {
		t.Errorf("%s %s", res.Content, res.Metadata)
	}
	if c := f.LastCall(); string(c.Arguments) != `{"month":"1"}` || c.Caller.Session != "named::s" {
		t.Errorf("%+v", c)
	}
	got := b.Do("POST", "/api/tools/report/call", `{}`, apitest.Header("Accept", "text/event-stream"))
	got.Want(t, 200, nil)
	if !strings.Contains(string(got.Body), "event: result") || !strings.Contains(string(got.Body), "queued with id") {
		t.Errorf("%s", got.Body)
	}
	plain := apitest.New(t, apitest.WithTools(apitest.NewTools()))
	plain.Do("POST", "/api/tools/report/call", `{}`).WantError(t, 501, signalbox.CodeUnsupported)
	plain.Do("POST", apitest.ReportPath, `{}`).WantError(t, 501, signalbox.CodeUnsupported)
	for _, path := range []string{"/api/tools/tasks", "/api/tools/tasks/queue-00000000000000000000000000", "/getTaskStatus?taskId=queue-00000000000000000000000000"} {
		if e := plain.Do("GET", path, "").WantError(t, 404, signalbox.CodeNotFound); !strings.Contains(e.Hint, "/call") {
			t.Errorf("%+v", e)
		}
	}
}

func TestWaitingForAToolTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := apitest.NewWithToolTasks(t)
		id := apitest.CreateToolTask(b, `{}`).ID
		begun := time.Now()
		done := make(chan apitest.Reply)
		go func() { done <- b.Do("GET", "/api/tools/tasks/"+id+"?wait=60s", "") }()
		time.Sleep(10 * time.Second)
		b.AnswerTool(f, b.RunTool(f, ""), "42", "")
		var v api.ToolTask
		(<-done).Want(t, 200, &v)
		if v.Status != "completed" || time.Since(begun) != 10*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), v)
		}
		id = apitest.CreateToolTask(b, `{}`).ID
		begun = time.Now()
		if b.Do("GET", "/api/tools/tasks/"+id+"?wait=7", "").Want(t, 200, &v); v.Status != "pending" || time.Since(begun) != 7*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), v)
		}
	})
}

func TestCancelAToolTask(t *testing.T) {
	for _, path := range []string{"/api/tools/tasks/", "/api/queue/"} {
		synctest.Test(t, func(t *testing.T) {
			b, f := apitest.NewWithToolTasks(t)
			var v api.ToolTask
			waiting := apitest.CreateToolTask(b, `{}`).ID
			b.Do("POST", path+waiting+"/cancel", "").Want(t, 200, nil)
			if v = getToolTask(b, waiting); v.Status != "cancelled" || v.Error != nil {
				t.Errorf("%+v", v)
			}
			apitest.CreateToolTask(b, `{}`)
			row := b.RunTool(f, "")
			begun := time.Now()
			got := b.Do("POST", path+row.ID+"/cancel", "").Want(t, 202, nil)
			if time.Since(begun) != httpapi.CancelWait || strings.Contains(string(got.Body), "release") || !strings.Contains(string(got.Body), "being stopped") {
				t.Errorf("after %s: %s", time.Since(begun), got.Body)
			}
			if v = getToolTask(b, row.ID); v.Status != "running" || v.State != "cancelling" {
				t.Errorf("%+v", v)
			}
			go func() {
				time.Sleep(2 * time.Second)
				b.FinishTask(row, signalbox.ReasonCancelled, signalbox.Result{})
			}()
			b.Do("POST", path+row.ID+"/cancel", "").Want(t, 200, nil)
			if v = getToolTask(b, row.ID); v.Status != "cancelled" {
				t.Errorf("%+v", v)
			}
		})
	}
}

// With the scope tool a caller sees only its own tool tasks; with read those that it may see in
// the queue; a caller that is limited to some agents sees its own.
func TestToolTasksOfOthers(t *testing.T) {
	b, _ := apitest.NewWithToolTasks(t, apitest.WithToken)
	token := func(name string, agents []string, scopes ...signalbox.Scope) apitest.Edit {
		return apitest.Bearer(b.AddToken(identity.NewToken{Name: name, Scopes: scopes, Agents: agents}))
	}
	mine, other := token("mine", nil, signalbox.ScopeTool), token("other", nil, signalbox.ScopeTool)
	reader := token("reader", nil, signalbox.ScopeTool, signalbox.ScopeRead)
	limited := token("limited", []string{"coder"}, signalbox.ScopeTool, signalbox.ScopeRead, signalbox.ScopeCancel, signalbox.ScopeSubmit)
	id := apitest.CreateToolTask(b, `{}`, mine).ID
	paths := []string{"GET /api/tools/tasks/" + id, "GET /getTaskStatus?taskId=" + id, "POST /api/tools/tasks/" + id + "/cancel"}
	for _, path := range paths {
		method, path, _ := strings.Cut(path, " ")
		for _, who := range []apitest.Edit{other, limited} {
			e := b.Do(method, path, "", who).WantError(t, 404, signalbox.CodeNotFound)
			none := b.Do("GET", "/api/tools/tasks/queue-00000000000000000000000000", "", who).WantError(t, 404, signalbox.CodeNotFound)
			if want := strings.ReplaceAll(none.Message, "queue-00000000000000000000000000", id); e.Message != want || e.Hint != none.Hint {
				t.Errorf("%s tells that there is something: %+v", path, e)
			}
		}
	}
	b.Do("GET", "/api/queue/"+id, "", limited).WantError(t, 404, signalbox.CodeNotFound)
	getToolTask(b, id, mine)
	getToolTask(b, id, reader)
	b.Do("POST", "/api/tools/tasks/"+id+"/cancel", "", reader).WantError(t, 403, signalbox.CodeForbidden)
	own := apitest.CreateToolTask(b, `{}`, limited).ID
	for name, c := range map[string]struct {
		who  apitest.Edit
		want int
	}{"mine": {mine, 1}, "other": {other, 0}, "reader": {reader, 2}, "limited": {limited, 1}, "static": {apitest.Bearer(apitest.Secret), 2}} {
		var page api.ToolTasks
		b.Do("GET", "/api/tools/tasks", "", c.who).Want(t, 200, &page)
		if len(page.Tasks) != c.want {
			t.Errorf("%s sees %d, want %d", name, len(page.Tasks), c.want)
		}
	}
	b.Do("GET", "/api/queue/"+own, "", limited).Want(t, 200, nil)
	b.Do("POST", "/api/tools/tasks/"+id+"/cancel", "", mine).Want(t, 200, nil)
	b.Do("POST", "/api/tools/tasks/"+own+"/cancel", "", apitest.Bearer(apitest.Secret)).Want(t, 200, nil)
	var log api.AuditLog
	b.Do("GET", "/api/audit?action=cancel", "", apitest.Bearer(apitest.Secret)).Want(t, 200, &log)
	if len(log.Rows) != 1 || log.Rows[0].Resource != own || !strings.Contains(log.Rows[0].Details, `"tool":"report"`) {
		t.Errorf("%+v", log.Rows)
	}
}

func TestToolTasksAreListed(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t)
	done := apitest.CreateToolTask(b, `{"arguments":{"month":"1"}}`).ID
	b.AnswerTool(f, b.RunTool(f, ""), "out", "")
	running := apitest.CreateToolTask(b, `{}`).ID
	b.RunTool(f, "x")
	waiting := apitest.CreateToolTask(b, `{}`).ID
	b.Submit(`{"prompt":"none of a tool"}`)
	list := func(query string) (ids []string, page api.ToolTasks) {
		b.Do("GET", "/api/tools/tasks"+query, "").Want(t, 200, &page)
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

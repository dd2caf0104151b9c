package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

const chatPath = "/api/agents/coder/chat"

// wantCall fails unless the answer names the task in all three places.
func wantCall(r apitest.Reply, t *testing.T, id string) {
	t.Helper()
	if r.Header.Get("X-Signalbox-Queue-Id") != id || r.Header.Get("Location") != "/api/queue/"+id || !strings.Contains(string(r.Body), id) {
		t.Errorf("the answer does not name %s: %v %s", id, r.Header, r.Body)
	}
}

func wantChatError(r apitest.Reply, t *testing.T, status int, code signalbox.Code) api.ChatError {
	t.Helper()
	var e api.ChatError
	r.Want(t, status, &e)
	if e.Code != string(code) || e.Message == "" || e.RequestID == "" || e.Agent == "" || e.Error == "" {
		t.Fatalf("got %+v, want code %s with a message, an agent and a request id", e, code)
	}
	return e
}

func TestChatAnswersWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		first := b.Start("POST", chatPath, `{"message":"Hello","model":"sonnet","timeout_seconds":60}`)
		second := b.Start("POST", chatPath, `{"prompt":"And again"}`)
		synctest.Wait()
		task := b.Accept(a)
		if req, err := b.Store.Request(t.Context(), task.ID); err != nil || req.Prompt == "" || task.Mode != signalbox.ModeChat || task.Source != signalbox.SourceUser {
			t.Errorf("%+v %+v %v", task, req, err)
		}
		time.Sleep(2 * time.Second)
		b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "Hi.", CostUSD: 0.5, DurationSeconds: 1.5, InputTokens: 7, OutputTokens: 2, ToolCount: 3})
		synctest.Wait()
		b.Complete(b.Accept(a), "Hi again.")

		var one, two api.ChatResponse
		first.Reply().Want(t, 200, &one)
		got := second.Reply().Want(t, 200, &two)
		if one.Response != "Hi." { // either of the two may come first
			one, two, got = two, one, first.Reply()
		}
		wantCall(got, t, two.Execution.ID)
		if one.Agent != "coder" || one.Execution != (api.ExecutionRef{ID: task.ID, QueueStatus: "running"}) || one.SessionID == "" || one.Timestamp.IsZero() ||
			one.Metadata != (api.ChatMetadata{CostUSD: 0.5, DurationMS: 1500, InputTokens: 7, OutputTokens: 2, ToolCount: 3}) || one.ExecutionLog != "" {
			t.Errorf("%+v", one)
		}
		if two.Response != "Hi again." || two.Execution.QueueStatus != "queued:1" || !two.Execution.WasQueued || two.SessionID != one.SessionID {
			t.Errorf("%+v", two)
		}
	})
}

// The answer to a chat when the line is full is exactly the seed's.
func TestChatQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("my-agent", 1)
		for range 4 {
			b.Start("POST", "/api/agents/my-agent/chat", `{"message":"m"}`)
			synctest.Wait()
		}
		b.Accept(a)
		b.Start("POST", "/api/agents/my-agent/chat", `{"message":"m"}`)
		synctest.Wait()
		got := b.Do("POST", "/api/agents/my-agent/chat", `{"message":"m"}`, apitest.Header(requestID, "req-1"))
		apitest.WantBody(t, got, http.StatusTooManyRequests, `{"error":"Agent queue is full","code":"queue_full","agent":"my-agent",`+
			`"message":"Agent 'my-agent' is busy with 3 queued requests. Please try again later.","hint":"try again later, or wait in the backlog with overflow persist",`+
			`"retryable":true,"retry_after":30,"request_id":"req-1","queue_length":3}`)
		if got.Header.Get("Retry-After") != "30" || got.Header.Get("X-Signalbox-Queue-Id") != "" {
			t.Errorf("%v", got.Header)
		}
		b.Server.Stop()
	})
}

func TestChatThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		running := b.Start("POST", chatPath, `{"message":"Take your time"}`)
		synctest.Wait()
		task := b.Accept(a)
		for _, body := range []string{`{"message":"m","wait_if_busy":false}`, `{"message":"m","overflow":"reject"}`} {
			got := b.Do("POST", chatPath, body)
			e := wantChatError(got, t, http.StatusConflict, "agent_busy")
			if e.Error != "Agent is busy" || e.Current == nil || e.Current.ID != task.ID || e.Current.Status != "running" || e.Current.Message != "Take your time" ||
				e.RetryAfter != 30 || got.Header.Get("Retry-After") != "30" || !e.Retryable || e.Execution != nil || e.Message != "agent coder is busy with another turn of the session: 1 of 1 slots in use, 0 waiting; wait for it, or try again later" {
				t.Errorf("%+v", e)
			}
		}
		b.Complete(task, "ok")
		running.Reply().Want(t, 200, nil)
		free := b.Start("POST", chatPath, `{"message":"m","wait_if_busy":false}`)
		synctest.Wait()
		b.Complete(b.Accept(a), "at once")
		free.Reply().Want(t, 200, nil)
	})
}

func TestChatWaitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		running := b.Start("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.Accept(a)
		short := b.Start("POST", chatPath, `{"message":"m","wait_timeout":30}`)
		standard := b.Start("POST", chatPath, `{"message":"m"}`)
		for range 130 {
			time.Sleep(time.Second)
			if _, err := b.Engine.EndOverdue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for what, asked := range map[string]*apitest.Pending{"30 s": short, "120 s": standard} {
			got := asked.Reply()
			e := wantChatError(got, t, http.StatusGatewayTimeout, "wait_timeout")
			wantCall(got, t, e.Execution.ID)
			if e.Execution.QueueStatus == "running" || !e.Execution.WasQueued {
				t.Errorf("%s: a call that never ran: %+v", what, e.Execution)
			}
			row, err := b.Store.Task(t.Context(), e.Execution.ID)
			if err != nil || row.State != signalbox.Timeout || e.State != "timeout" || !e.Retryable || row.EndedAt.Sub(row.CreatedAt).Round(time.Second) != row.WaitUntil.Sub(row.CreatedAt) {
				t.Errorf("%s: %+v %+v %v", what, e, row, err)
			}
		}
		b.Complete(task, "")
		running.Reply().Want(t, 200, nil)
	})
}

// Every unsuccessful end has its reason and a message that is not empty.
func TestIncidentEmptyErrorText(t *testing.T) {
	status := map[signalbox.Reason]int{"wait_timeout": 504, "run_timeout": 504, "cancelled": 409, "released": 409, "budget": 402}
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddChatAgent("coder", 1)
		for _, reason := range signalbox.Reasons() {
			var chat *apitest.Pending
			var task signalbox.Task
			switch reason {
			case signalbox.ReasonCompleted, signalbox.ReasonWaitTimeout:
				continue // not a failure; see TestChatWaitTimeout
			case signalbox.ReasonDispatchFailed:
				chat = b.Start("POST", chatPath, `{"message":"m"}`)
				synctest.Wait()
				for range engine.DefaultMaxAttempts {
					task = b.Claim(a)
					if _, err := b.Engine.Refuse(t.Context(), task, ""); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					if _, _, err := b.Engine.Wake(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			default:
				chat = b.Start("POST", chatPath, `{"message":"m"}`)
				synctest.Wait()
				task = b.Claim(a)
				endTask(b, a, task, reason)
			}
			want := status[reason]
			if want == 0 {
				want = http.StatusBadGateway
			}
			got := chat.Reply()
			e := wantChatError(got, t, want, signalbox.Code(reason))
			wantCall(got, t, task.ID)
			if e.Error != string(reason) || e.Execution.ID != task.ID || e.State != string(reason.End()) || e.Hint == "" {
				t.Errorf("%s: %+v", reason, e)
			}
		}
	})
}

// endTask ends a claimed task with a reason and without a message.
func endTask(b *apitest.Fixture, a signalbox.Agent, task signalbox.Task, reason signalbox.Reason) {
	b.T.Helper()
	ctx := b.T.Context()
	var err error
	if reason == signalbox.ReasonRejected {
		_, err = b.Engine.Reject(ctx, task, "")
	} else if task, err = b.Engine.Accept(ctx, task, "task-1", ""); err == nil {
		switch reason {
		case signalbox.ReasonLost, signalbox.ReasonInterrupted:
			_, err = b.Engine.Lose(ctx, task, reason, "", false, nil)
		case signalbox.ReasonReleased:
			_, err = b.Engine.ReleaseLane(ctx, a.Name, "")
		case signalbox.ReasonStalled:
			if task, err = b.Engine.Stop(ctx, task, reason, ""); err == nil {
				_, err = b.Engine.Finish(ctx, task, engine.Outcome{Reason: signalbox.ReasonCancelled})
			}
		case signalbox.ReasonCancelled:
			if task, err = b.Engine.Cancel(ctx, task.ID, ""); err == nil {
				_, err = b.Engine.Finish(ctx, task, engine.Outcome{Reason: reason})
			}
		default:
			_, err = b.Engine.Finish(ctx, task, engine.Outcome{Reason: reason})
		}
	}
	if err != nil {
		b.T.Fatalf("%s: %v", reason, err)
	}
}

func TestChatRefusals(t *testing.T) {
	b := apitest.New(t)
	b.AddChatAgent("coder", 1)
	b.AddDownAgent("asleep")
	stream := apitest.Header("Accept", "text/event-stream")
	for _, edits := range [][]apitest.Edit{nil, {stream}} {
		b.Do("POST", "/api/agents/nobody/chat", `{"message":"m"}`, edits...).WantError(t, 404, signalbox.CodeNotFound)
		b.Do("POST", "/api/agents/no%20body/chat", `{"message":"m"}`, edits...).WantError(t, 404, signalbox.CodeNotFound)
		e := wantChatError(b.Do("POST", "/api/agents/asleep/chat", `{"message":"m"}`, edits...), t, 503, signalbox.CodeAgentDown)
		if !strings.Contains(e.Message, "connection refused") || e.Hint == "" || !e.Retryable {
			t.Errorf("%+v", e)
		}
		for body, field := range map[string]string{
			`{}`:                                  "prompt",
			`{"message":"m","prompt":"p"}`:        "message",
			`{"message":"m","overflow":"drop"}`:   "overflow",
			`{"message":"m","wait_timeout":-1}`:   "wait_timeout",
			`{"message":"m","on_disconnect":"x"}`: "on_disconnect",
			`{"message":"m","overflow":"wait","wait_if_busy":false}`:               "wait_if_busy",
			`{"message":"m","overflow":"reject","wait_if_busy":true}`:              "wait_if_busy",
			`{"message":"m","overflow":"persist","wait_timeout":9000000000000000}`: "wait_timeout",
			`{"message":"m","session_id":"s","new_session":true}`:                  "new_session",
			`{"message":"m","source":"cli"}`:                                       "source",
			`{"message":"m","source_agent":"coder"}`:                               "source_agent",
		} {
			if e := b.Do("POST", chatPath, body, edits...).WantError(t, 400, signalbox.CodeValidation); e.Field != field {
				t.Errorf("%s: field %q", body, e.Field)
			}
		}
		b.Do("POST", chatPath, `{"message":"m"}`, append(edits, apitest.Header("X-Source-Agent", "coder"))...).WantError(t, 403, signalbox.CodeForbidden)
		b.Do("POST", chatPath, `{"message":"m"}`, append(edits, apitest.Header("X-Signalbox-Execution", "queue-1"))...).WantError(t, 403, signalbox.CodeForbidden)
	}
	if c, err := b.Store.Counts(t.Context()); err != nil || c.Pending != 0 {
		t.Errorf("something was stored: %+v, %v", c, err)
	}
}

// The backlog is shared, and its limit is that of all queued tasks.
func TestChatWhenTheBacklogIsFull(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 2 })
	b.AddDownAgent("asleep")
	const body = `{"message":"m","overflow":"persist"}`
	for range 2 {
		b.Do("POST", "/api/agents/asleep/chat", body, apitest.Header("Prefer", "respond-async")).Want(t, 202, nil)
	}
	got := b.Do("POST", "/api/agents/asleep/chat", body)
	e := wantChatError(got, t, 503, signalbox.CodeQueueFull)
	if e.Error != "queue_full" || e.QueueLen == nil || *e.QueueLen != 2 || e.Message != "Queue is at capacity (2 tasks)" || got.Header.Get("Retry-After") != "30" {
		t.Errorf("%+v", e)
	}
}

func TestSubmitOverflow(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"p","agent":"coder","overflow":"reject"}`)
	b.Run(a)
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder","overflow":"reject"}`).WantError(t, 409, signalbox.CodeAgentBusy)
	id := b.Submit(`{"prompt":"p","agent":"coder","overflow":"wait"}`).QueueID
	row, err := b.Store.Task(t.Context(), id)
	if err != nil || row.WaitUntil.Sub(row.CreatedAt) != engine.DefaultWaitTimeout {
		t.Errorf("%+v, %v", row, err)
	}
	id = b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	var v api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &v)
	if row, err = b.Store.Task(t.Context(), id); err != nil || !row.WaitUntil.IsZero() || v.Mode != "queue" {
		t.Errorf("%+v %+v, %v", v, row, err)
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"p","overflow":"drop"}`).WantError(t, 400, signalbox.CodeValidation)
}

// The refusal of a stream is JSON with the fields of an error, and names the task with the
// same fields as elsewhere.
func TestChatErrorHasTheFieldsOfAnError(t *testing.T) {
	b := apitest.New(t)
	b.AddDownAgent("asleep")
	var fields map[string]any
	got := b.Do("POST", "/api/agents/asleep/chat", `{"message":"m"}`, apitest.Header("Accept", "text/event-stream")).Want(t, 503, nil)
	if err := json.Unmarshal(got.Body, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"error", "code", "message", "hint", "retryable", "request_id", "agent"} {
		if fields[name] == nil {
			t.Errorf("no %s in %s", name, got.Body)
		}
	}
	if got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", got.Header)
	}
}

// The seed's log line, as fields.
func TestChatIsLogged(t *testing.T) {
	var log bytes.Buffer
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	a := b.AddChatAgent("coder", 1)
	var one, two api.ChatAccepted
	async := apitest.Header("Prefer", "respond-async")
	b.Do("POST", chatPath, `{"message":"m"}`, async).Want(t, 202, &one)
	b.Accept(a)
	b.Do("POST", chatPath, `{"message":"m"}`, async).Want(t, 202, &two)
	for _, line := range []string{
		"[Chat] Agent 'coder' execution " + one.Execution.ID + ": running",
		"[Chat] Agent 'coder' execution " + two.Execution.ID + ": queued:1",
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %q in %s", line, log.String())
		}
	}
}

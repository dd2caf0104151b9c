package director_test

import (
	"bytes"
	"context"
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
	"github.com/signalbox-ai/signalbox/internal/store"
)

const chatPath = "/api/agents/coder/chat"

// wantCall fails unless the answer names the task in all three places.
func (r reply) wantCall(t *testing.T, id string) {
	t.Helper()
	if r.Header.Get("X-Signalbox-Queue-Id") != id || r.Header.Get("Location") != "/api/queue/"+id || !strings.Contains(string(r.body), id) {
		t.Errorf("the answer does not name %s: %v %s", id, r.Header, r.body)
	}
}

func (r reply) wantChatError(t *testing.T, status int, code signalbox.Code) api.ChatError {
	t.Helper()
	var e api.ChatError
	r.want(t, status, &e)
	if e.Code != string(code) || e.Message == "" || e.RequestID == "" || e.Agent == "" || e.Error == "" {
		t.Fatalf("got %+v, want code %s with a message, an agent and a request id", e, code)
	}
	return e
}

func TestChatAnswersWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		first := b.ask("POST", chatPath, `{"message":"Hello","model":"sonnet","timeout_seconds":60}`)
		second := b.ask("POST", chatPath, `{"prompt":"And again"}`)
		synctest.Wait()
		task := b.accept(a)
		if req, err := b.store.Request(t.Context(), task.ID); err != nil || req.Prompt == "" || task.Mode != signalbox.ModeChat || task.Source != signalbox.SourceUser {
			t.Errorf("%+v %+v %v", task, req, err)
		}
		time.Sleep(2 * time.Second)
		b.finish(task, signalbox.ReasonCompleted, signalbox.Result{Output: "Hi.", CostUSD: 0.5, DurationSeconds: 1.5, InputTokens: 7, OutputTokens: 2})
		synctest.Wait()
		b.complete(b.accept(a), "Hi again.")

		var one, two api.ChatResponse
		first.answer().want(t, 200, &one)
		got := second.answer().want(t, 200, &two)
		if one.Response != "Hi." { // which of the two came first is not known
			one, two, got = two, one, first.answer()
		}
		got.wantCall(t, two.Execution.ID)
		if one.Agent != "coder" || one.Execution != (api.ExecutionRef{ID: task.ID, QueueStatus: "running"}) || one.SessionID == "" || one.Timestamp.IsZero() ||
			one.Metadata != (api.ChatMetadata{CostUSD: 0.5, DurationMS: 1500, InputTokens: 7, OutputTokens: 2}) || one.ExecutionLog != "" {
			t.Errorf("%+v", one)
		}
		if two.Response != "Hi again." || two.Execution.QueueStatus != "queued:1" || !two.Execution.WasQueued || two.SessionID != one.SessionID {
			t.Errorf("%+v", two)
		}
	})
}

// The seed's answer to who comes when all places in line are taken, to the
// field.
func TestChatQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("my-agent", 1)
		for range 4 {
			b.ask("POST", "/api/agents/my-agent/chat", `{"message":"m"}`)
			synctest.Wait()
		}
		b.accept(a)
		b.ask("POST", "/api/agents/my-agent/chat", `{"message":"m"}`)
		synctest.Wait()
		got := b.do("POST", "/api/agents/my-agent/chat", `{"message":"m"}`, header(requestID, "req-1"))
		wantBody(t, got, http.StatusTooManyRequests, `{"error":"Agent queue is full","code":"queue_full","agent":"my-agent",`+
			`"message":"Agent 'my-agent' is busy with 3 queued requests. Please try again later.","hint":"try again later, or wait in the backlog with overflow persist",`+
			`"retryable":true,"retry_after":30,"request_id":"req-1","queue_length":3}`)
		if got.Header.Get("Retry-After") != "30" || got.Header.Get("X-Signalbox-Queue-Id") != "" {
			t.Errorf("%v", got.Header)
		}
		b.dir.Stop()
	})
}

func TestChatThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		running := b.ask("POST", chatPath, `{"message":"Take your time"}`)
		synctest.Wait()
		task := b.accept(a)
		for _, body := range []string{`{"message":"m","wait_if_busy":false}`, `{"message":"m","overflow":"reject"}`} {
			got := b.do("POST", chatPath, body)
			e := got.wantChatError(t, http.StatusConflict, "agent_busy")
			if e.Error != "Agent is busy" || e.Current == nil || e.Current.ID != task.ID || e.Current.Status != "running" || e.Current.Message != "Take your time" ||
				e.RetryAfter != 30 || got.Header.Get("Retry-After") != "30" || !e.Retryable || e.Execution != nil || e.Message != "Agent 'coder' is busy, and the request does not want to wait." {
				t.Errorf("%+v", e)
			}
		}
		b.complete(task, "ok")
		running.answer().want(t, 200, nil)
		free := b.ask("POST", chatPath, `{"message":"m","wait_if_busy":false}`)
		synctest.Wait()
		b.complete(b.accept(a), "at once")
		free.answer().want(t, 200, nil)
	})
}

func TestChatWaitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		running := b.ask("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		task := b.accept(a)
		short := b.ask("POST", chatPath, `{"message":"m","wait_timeout":30}`)
		standard := b.ask("POST", chatPath, `{"message":"m"}`)
		for range 130 {
			time.Sleep(time.Second)
			if _, err := b.engine.EndOverdue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for what, asked := range map[string]*asking{"30 s": short, "120 s": standard} {
			got := asked.answer()
			e := got.wantChatError(t, http.StatusGatewayTimeout, "wait_timeout")
			got.wantCall(t, e.Execution.ID)
			row, err := b.store.Task(t.Context(), e.Execution.ID)
			if err != nil || row.State != signalbox.Timeout || e.State != "timeout" || !e.Retryable || row.EndedAt.Sub(row.CreatedAt).Round(time.Second) != row.WaitUntil.Sub(row.CreatedAt) {
				t.Errorf("%s: %+v %+v %v", what, e, row, err)
			}
		}
		b.complete(task, "")
		running.answer().want(t, 200, nil)
	})
}

// Every end that is not a success is told with its reason, and never without
// words.
func TestIncidentEmptyErrorText(t *testing.T) {
	status := map[signalbox.Reason]int{"wait_timeout": 504, "run_timeout": 504, "cancelled": 409, "released": 409}
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		for _, reason := range signalbox.Reasons() {
			var chat *asking
			var task signalbox.Task
			switch reason {
			case signalbox.ReasonCompleted, signalbox.ReasonWaitTimeout:
				continue // no failure; TestChatWaitTimeout
			case signalbox.ReasonDispatchFailed:
				chat = b.ask("POST", chatPath, `{"message":"m"}`)
				synctest.Wait()
				for range engine.DefaultMaxAttempts {
					task = b.claim(a)
					if _, err := b.engine.Refuse(t.Context(), task, ""); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					if _, _, err := b.engine.Wake(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			default:
				chat = b.ask("POST", chatPath, `{"message":"m"}`)
				synctest.Wait()
				task = b.claim(a)
				b.endAs(a, task, reason)
			}
			want := status[reason]
			if want == 0 {
				want = http.StatusBadGateway
			}
			got := chat.answer()
			e := got.wantChatError(t, want, signalbox.Code(reason))
			got.wantCall(t, task.ID)
			if e.Error != string(reason) || e.Execution.ID != task.ID || e.State != string(reason.End()) || e.Hint == "" {
				t.Errorf("%s: %+v", reason, e)
			}
		}
	})
}

// endAs ends a claimed task for a reason, by someone who says nothing.
func (b *box) endAs(a signalbox.Agent, task signalbox.Task, reason signalbox.Reason) {
	b.t.Helper()
	ctx := b.t.Context()
	var err error
	if reason == signalbox.ReasonRejected {
		_, err = b.engine.Reject(ctx, task, "")
	} else if task, err = b.engine.Accept(ctx, task, "task-1", ""); err == nil {
		switch reason {
		case signalbox.ReasonLost, signalbox.ReasonInterrupted:
			_, err = b.engine.Lose(ctx, task, reason, "", false, nil)
		case signalbox.ReasonReleased:
			_, err = b.engine.ReleaseLane(ctx, a.Name, "")
		case signalbox.ReasonStalled:
			if task, err = b.engine.Stop(ctx, task, reason, ""); err == nil {
				_, err = b.engine.Finish(ctx, task, engine.Outcome{Reason: signalbox.ReasonCancelled})
			}
		case signalbox.ReasonCancelled:
			if task, err = b.engine.Cancel(ctx, task.ID, ""); err == nil {
				_, err = b.engine.Finish(ctx, task, engine.Outcome{Reason: reason})
			}
		default:
			_, err = b.engine.Finish(ctx, task, engine.Outcome{Reason: reason})
		}
	}
	if err != nil {
		b.t.Fatalf("%s: %v", reason, err)
	}
}

func TestChatPrefersNotToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		begun := time.Now()
		var first, second, third api.ChatAccepted
		got := b.do("POST", chatPath, `{"message":"m"}`, header("Prefer", "respond-async")).want(t, http.StatusAccepted, &first)
		got.wantCall(t, first.Execution.ID)
		if got.Header.Get("Preference-Applied") != "respond-async" || first.State != "pending" || first.Position != 0 || first.Execution.QueueStatus != "running" ||
			first.URL != "/api/queue/"+first.Execution.ID || first.SessionID == "" || time.Since(begun) != 0 {
			t.Errorf("%+v %v", first, got.Header)
		}
		b.accept(a)
		b.do("POST", chatPath, `{"message":"m"}`, header("Prefer", "handling=lenient, Respond-Async; x=1")).want(t, http.StatusAccepted, &second)
		if second.Position != 1 || second.Execution.QueueStatus != "queued:1" || !second.Execution.WasQueued {
			t.Errorf("%+v", second)
		}
		got = b.do("POST", chatPath, `{"message":"m"}`, header("Prefer", "respond-async, wait=10")).want(t, http.StatusAccepted, &third)
		if took := time.Since(begun); took != 10*time.Second || got.Header.Get("Preference-Applied") != "wait=10" || third.Position != 2 || third.Message == "" {
			t.Errorf("after %s: %+v", took, third)
		}
		for _, id := range []string{first.Execution.ID, second.Execution.ID, third.Execution.ID} {
			if row, err := b.store.Task(t.Context(), id); err != nil || row.State.Terminal() {
				t.Errorf("%+v, %v", row, err)
			}
		}
	})
}

func TestChatInTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		b.ask("POST", chatPath, `{"message":"m"}`)
		synctest.Wait()
		running := b.accept(a)
		begun := time.Now()
		late := b.ask("POST", chatPath, `{"message":"m","overflow":"persist","wait_timeout":60}`)
		var out api.ChatAccepted
		late.answer().want(t, http.StatusAccepted, &out)
		if time.Since(begun) != time.Minute || out.State != "pending" || out.Position != 1 || !strings.Contains(out.Message, "1m0s") {
			t.Errorf("after %s: %+v", time.Since(begun), out)
		}
		started := b.ask("POST", chatPath, `{"message":"m","overflow":"persist"}`)
		time.Sleep(time.Minute)
		b.complete(running, "")
		b.complete(b.accept(a), "")
		task := b.accept(a)
		time.Sleep(time.Hour) // one that has started is waited for
		b.complete(task, "done")
		var end api.ChatResponse
		started.answer().want(t, 200, &end)
		if end.Response != "done" || end.Execution.ID != task.ID {
			t.Errorf("%+v", end)
		}
	})
}

func TestChatWhoseCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		state := func(id string) signalbox.Task {
			row, err := b.store.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		for _, accept := range []string{"application/json", "text/event-stream"} {
			stays := b.ask("POST", chatPath, `{"message":"m"}`, header("Accept", accept))
			synctest.Wait()
			task := b.accept(a)
			goes := b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, header("Accept", accept))
			synctest.Wait()
			next, err := b.store.Waiting(t.Context(), "agent:coder", store.Cursor{}, 10)
			if err != nil || len(next) != 1 {
				t.Fatalf("%v %v", next, err)
			}
			stays.leave()
			goes.leave()
			synctest.Wait()
			if got := state(task.ID); got.State != signalbox.Working || got.CancelRequested {
				t.Errorf("%s: a chat that was to go on: %+v", accept, got)
			}
			if got := state(next[0].ID); got.State != signalbox.Cancelled || got.Message != "cancelled by its caller, who went away" {
				t.Errorf("%s: a chat that was to be cancelled: %+v", accept, got)
			}
			b.complete(task, "")
		}
	})
}

// Two callers with the same key wait for the same task: it is cancelled when
// the last of them goes.
func TestChatIsCancelledWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		b.talker("coder", 1)
		const body = `{"message":"m","on_disconnect":"cancel"}`
		key := header("Idempotency-Key", "k")
		one := b.ask("POST", chatPath, body, key)
		synctest.Wait()
		two := b.ask("POST", chatPath, body, key, header("Accept", "text/event-stream"))
		synctest.Wait()
		one.leave()
		synctest.Wait()
		waiting, err := b.store.Waiting(t.Context(), "agent:coder", store.Cursor{}, 10)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%+v, %v", waiting, err)
		}
		two.leave()
		synctest.Wait()
		if row, err := b.store.Task(t.Context(), waiting[0].ID); err != nil || row.State != signalbox.Cancelled {
			t.Errorf("%+v, %v", row, err)
		}
	})
}

// A client that gave up has no id in hand, but the same key finds the task,
// while it runs and after its end; nothing runs twice.
func TestIncidentClientGivesUpWithNoId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		key := header("Idempotency-Key", "turn-7")
		gaveUp := b.ask("POST", chatPath, `{"message":"Do it once"}`, key)
		synctest.Wait()
		task := b.accept(a)
		gaveUp.leave()
		synctest.Wait()
		again := b.ask("POST", chatPath, `{"message":"Do it once"}`, key)
		synctest.Wait()
		b.complete(task, "once")
		for range 2 { // while it runs, and after its end
			var out api.ChatResponse
			got := again.answer().want(t, 200, &out)
			got.wantCall(t, task.ID)
			if out.Response != "once" || got.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%+v %v", out, got.Header)
			}
			again = b.ask("POST", chatPath, `{"message":"Do it once"}`, key)
		}
		if e := b.do("POST", chatPath, `{"message":"Another"}`, key).wantError(t, 422, signalbox.CodeIdempotency); e.Hint == "" {
			t.Errorf("%+v", e)
		}
		if list, err := b.store.Waiting(t.Context(), "", store.Cursor{}, 10); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestChatWhileTheDirectorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.talker("coder", 1)
		plain := b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`)
		synctest.Wait()
		task := b.accept(a)
		stream := b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, header("Accept", "text/event-stream"))
		synctest.Wait()
		b.dir.Stop()
		var out api.ChatAccepted
		plain.answer().want(t, http.StatusAccepted, &out).wantCall(t, task.ID)
		if out.State != "working" || !strings.Contains(out.Message, "the director is stopping") {
			t.Errorf("%+v", out)
		}
		stream.answer().want(t, 200, nil)
		if got := names(stream.events()); got != "accepted" {
			t.Errorf("%s", got)
		}
		if c, err := b.store.Counts(t.Context()); err != nil || c.Pending != 1 || c.InFlight[signalbox.Working] != 1 {
			t.Errorf("the director's end changed a task: %+v, %v", c, err)
		}
	})
}

func TestChatRefusals(t *testing.T) {
	b := newBox(t)
	b.talker("coder", 1)
	b.sleeper("asleep")
	stream := header("Accept", "text/event-stream")
	for _, edits := range [][]edit{nil, {stream}} {
		b.do("POST", "/api/agents/nobody/chat", `{"message":"m"}`, edits...).wantError(t, 404, signalbox.CodeNotFound)
		b.do("POST", "/api/agents/no%20body/chat", `{"message":"m"}`, edits...).wantError(t, 404, signalbox.CodeNotFound)
		e := b.do("POST", "/api/agents/asleep/chat", `{"message":"m"}`, edits...).wantChatError(t, 503, signalbox.CodeAgentDown)
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
			if e := b.do("POST", chatPath, body, edits...).wantError(t, 400, signalbox.CodeValidation); e.Field != field {
				t.Errorf("%s: field %q", body, e.Field)
			}
		}
		b.do("POST", chatPath, `{"message":"m"}`, append(edits, header("X-Source-Agent", "coder"))...).wantError(t, 403, signalbox.CodeForbidden)
		b.do("POST", chatPath, `{"message":"m"}`, append(edits, header("X-Signalbox-Execution", "queue-1"))...).wantError(t, 403, signalbox.CodeForbidden)
	}
	if c, err := b.store.Counts(t.Context()); err != nil || c.Pending != 0 {
		t.Errorf("something was stored: %+v, %v", c, err)
	}
}

// The backlog is shared, and its limit is that of all queued tasks.
func TestChatWhenTheBacklogIsFull(t *testing.T) {
	b := newBox(t, func(o *options) { o.engine.MaxSize = 2 })
	b.sleeper("asleep")
	const body = `{"message":"m","overflow":"persist"}`
	for range 2 {
		b.do("POST", "/api/agents/asleep/chat", body, header("Prefer", "respond-async")).want(t, 202, nil)
	}
	got := b.do("POST", "/api/agents/asleep/chat", body)
	e := got.wantChatError(t, 503, signalbox.CodeQueueFull)
	if e.Error != "queue_full" || e.QueueLen == nil || *e.QueueLen != 2 || e.Message != "Queue is at capacity (2 tasks)" || got.Header.Get("Retry-After") != "30" {
		t.Errorf("%+v", e)
	}
}

func TestSubmitOverflow(t *testing.T) {
	b := newBox(t)
	a := b.agent("coder", 1)
	b.submit(`{"prompt":"p","agent":"coder","overflow":"reject"}`)
	b.work(a)
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder","overflow":"reject"}`).wantError(t, 409, signalbox.CodeAgentBusy)
	id := b.submit(`{"prompt":"p","agent":"coder","overflow":"wait"}`).QueueID
	row, err := b.store.Task(t.Context(), id)
	if err != nil || row.WaitUntil.Sub(row.CreatedAt) != engine.DefaultWaitTimeout {
		t.Errorf("%+v, %v", row, err)
	}
	id = b.submit(`{"prompt":"p","agent":"coder"}`).QueueID
	var v api.Task
	b.do("GET", "/api/queue/"+id, "").want(t, 200, &v)
	if row, err = b.store.Task(t.Context(), id); err != nil || !row.WaitUntil.IsZero() || v.Mode != "queue" {
		t.Errorf("%+v %+v, %v", v, row, err)
	}
	b.do("POST", "/api/queue/task", `{"prompt":"p","overflow":"drop"}`).wantError(t, 400, signalbox.CodeValidation)
}

// What a refusal of a stream says is JSON, and what a task is called is the
// same word everywhere.
func TestChatErrorHasTheFieldsOfAnError(t *testing.T) {
	b := newBox(t)
	b.sleeper("asleep")
	var fields map[string]any
	got := b.do("POST", "/api/agents/asleep/chat", `{"message":"m"}`, header("Accept", "text/event-stream")).want(t, 503, nil)
	if err := json.Unmarshal(got.body, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"error", "code", "message", "hint", "retryable", "request_id", "agent"} {
		if fields[name] == nil {
			t.Errorf("no %s in %s", name, got.body)
		}
	}
	if got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", got.Header)
	}
}

// The seed's log line, as fields.
func TestChatIsLogged(t *testing.T) {
	var log bytes.Buffer
	b := newBox(t, func(o *options) { o.director.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	a := b.talker("coder", 1)
	var one, two api.ChatAccepted
	async := header("Prefer", "respond-async")
	b.do("POST", chatPath, `{"message":"m"}`, async).want(t, 202, &one)
	b.accept(a)
	b.do("POST", chatPath, `{"message":"m"}`, async).want(t, 202, &two)
	for _, line := range []string{
		"chat=submitted agent=coder execution=" + one.Execution.ID + " queue_status=running",
		"chat=submitted agent=coder execution=" + two.Execution.ID + " queue_status=queued:1",
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %q in %s", line, log.String())
		}
	}
}

// A caller that has gone before its task was stored leaves a task that is
// dealt with as it wished.
func TestChatWhoseCallerGoesAwayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		b.talker("coder", 1)
		gone, leave := context.WithCancel(t.Context())
		leave()
		b.ask("POST", chatPath, `{"message":"m","on_disconnect":"cancel"}`, func(r *http.Request) { *r = *r.WithContext(gone) }).answer()
		page, err := b.store.History(t.Context(), store.HistoryQuery{Limit: 10})
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].State != signalbox.Cancelled {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

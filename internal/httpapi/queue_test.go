package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const seedRequest = `{
  "prompt": "Task prompt here",
  "model": "sonnet",
  "timeout_seconds": 1800,
  "session_id": "optional-session-id",
  "source": "scheduler",
  "source_job": "nightly-maintenance"
}`

// The seed's bodies (work-queue, Queue API), with the fields that came later.
func TestTheSeedsBodies(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	first := b.Do("POST", "/api/queue/task", seedRequest)
	var got api.SubmitResponse
	first.Want(t, http.StatusCreated, &got)
	id := got.QueueID
	apitest.WantBody(t, first, http.StatusCreated, `{"queue_id":"`+id+`","position":1,"state":"pending","queue":"work"}`)
	c.Advance(time.Minute)
	second := b.Do("POST", "/api/task", `{"message":"Review pull request..."}`)
	second.Want(t, http.StatusAccepted, &got)
	apitest.WantBody(t, second, http.StatusAccepted, `{"queue_id":"`+got.QueueID+`","position":2,"state":"pending","queue":"work","message":"Task queued for execution"}`)
	c.Advance(4 * time.Minute)
	apitest.WantBody(t, b.Do("GET", "/api/queue", ""), http.StatusOK, `{"depth":2,"max_size":50,"oldest_age_seconds":300,"dispatched_count":0,"tasks":[`+
		`{"queue_id":"`+id+`","state":"pending","queue":"work","position":1,"created_at":"2025-01-17T10:00:00Z","attempts":0,"max_attempts":3,"source":"scheduler","source_job":"nightly-maintenance","on_lost":"fail","session_id":"optional-session-id","mode":"queue","prompt_preview":"Task prompt here"},`+
		`{"queue_id":"`+got.QueueID+`","state":"pending","queue":"work","position":2,"created_at":"2025-01-17T10:01:00Z","attempts":0,"max_attempts":3,"source":"web","on_lost":"fail","mode":"queue","prompt_preview":"Review pull request..."}]}`)
	apitest.WantBody(t, b.Do("GET", "/api/queue/"+id, ""), http.StatusOK, `{"queue_id":"`+id+`","state":"pending","queue":"work","position":1,"created_at":"2025-01-17T10:00:00Z","attempts":0,"max_attempts":3,"source":"scheduler","source_job":"nightly-maintenance","on_lost":"fail","session_id":"optional-session-id","mode":"queue","revision":1,`+
		`"prompt_preview":"Task prompt here","prompt":"Task prompt here","model":"sonnet","timeout_seconds":1800}`)
	a := b.AddAgent("coder", 1)
	b.Run(a)
	apitest.WantBody(t, b.Do("GET", "/api/queue/"+id, ""), http.StatusOK, `{"queue_id":"`+id+`","state":"working","queue":"work","created_at":"2025-01-17T10:00:00Z","dispatched_at":"2025-01-17T10:05:00Z","started_at":"2025-01-17T10:05:00Z","attempts":0,"max_attempts":3,"source":"scheduler","source_job":"nightly-maintenance","on_lost":"fail","session_id":"optional-session-id","mode":"queue",`+
		`"agent":"coder","agent_url":"http://127.0.0.1:9000","task_id":"task-1","fence":1,"revision":3,"prompt_preview":"Task prompt here","prompt":"Task prompt here","model":"sonnet","timeout_seconds":1800}`)
	apitest.WantBody(t, b.Do("POST", "/api/queue/"+got.QueueID+"/cancel", ""), http.StatusOK,
		`{"queue_id":"`+got.QueueID+`","state":"cancelled","was_dispatched":false,"message":"cancelled by a local caller"}`)
	apitest.WantBody(t, b.Do("GET", "/status", ""), http.StatusOK, `{"type":"view","interfaces":["statusable","observable","taskable"],"version":"1.0.0","state":"running","uptime_seconds":300,`+
		`"queue":{"depth":0,"max_size":50,"oldest_age_seconds":0,"dispatched_count":1},"agents":{"total":1,"up":1,"idle":1,"working":0},"store":{"kind":"memory","durability":"none: everything is gone when the process ends"},"open":true,"health":{"ok":true,"text":"All is well: 1 agent is connected.","attention":[]}}`)
	apitest.WantBody(t, b.Do("POST", "/api/agents/coder/queue/release", ""), http.StatusOK,
		`{"status":"released","agent":"coder","was_running":true,"warning":"Agent queue state has been reset. Any in-progress execution may still be running.","queue_ids":["`+id+`"]}`)
	apitest.WantBody(t, b.Do("POST", "/api/agents/coder/queue/clear", ""), http.StatusOK, `{"status":"cleared","agent":"coder","cleared_count":0}`)
}

func TestSeedsErrors(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 1 })
	for _, path := range []string{"/api/queue/task", "/api/task"} {
		for _, body := range []string{`{}`, `{"prompt":""}`, `{"prompt":" \n"}`, `{"prompt":null}`, `{"message":""}`} {
			e := b.Do("POST", path, body).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
			if e.Message != "prompt is required" || e.Field != "prompt" || e.Retryable {
				t.Errorf("%s %s: %+v", path, body, e)
			}
		}
	}
	b.Submit(`{"prompt":"p"}`)
	for path, text := range map[string]string{
		"/api/queue/task": "Queue is at capacity (1 tasks)",
		"/api/task":       "Queue is at capacity. Please try again later.",
	} {
		got := b.Do("POST", path, `{"prompt":"p"}`)
		e := got.WantError(t, http.StatusServiceUnavailable, signalbox.CodeQueueFull)
		if e.Message != text || !e.Retryable || e.RetryAfter != 30 || got.Header.Get("Retry-After") != "30" || e.Hint == "" {
			t.Errorf("%s: %+v", path, e)
		}
	}
}

// Retry-After follows the duration of runs, once enough are known.
func TestRetryAfterFollowsTheRuns(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c), func(o *apitest.Options) { o.Engine.MaxSize = 1 })
	a := b.AddAgent("coder", 1)
	for range 5 {
		b.Submit(`{"prompt":"p"}`)
		task := b.Run(a)
		c.Advance(90 * time.Second)
		b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{})
	}
	b.Submit(`{"prompt":"p"}`)
	b.Live.Set(engine.LiveAgent{Agent: a, Up: true, InUse: 1})
	c.Advance(time.Minute)
	if e := b.Do("POST", "/api/queue/task", `{"prompt":"p"}`).WantError(t, 503, signalbox.CodeQueueFull); e.RetryAfter != 90 {
		t.Errorf("%+v", e)
	}
}

func TestIdempotency(t *testing.T) {
	b := apitest.New(t)
	key := apitest.Header("Idempotency-Key", "key-1")
	for path, status := range map[string]int{"/api/queue/task": 201, "/api/task": 202} {
		key := apitest.Header("Idempotency-Key", "key"+strings.ReplaceAll(path, "/", "-"))
		var first, again api.SubmitResponse
		if b.Do("POST", path, `{"prompt":"p","env":{"A":"1"}}`, key).Want(t, status, &first).Header.Get("Idempotency-Replayed") != "" {
			t.Error("the first one counts as a replay")
		}
		got := b.Do("POST", path, `{"env":{"A":"1"}, "prompt":"p"}`, key).Want(t, status, &again)
		if again.QueueID != first.QueueID || !again.Replayed || got.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %+v", path, again)
		}
		b.Do("POST", path, `{"prompt":"p","env":{"A":"2"}}`, key).WantError(t, http.StatusUnprocessableEntity, signalbox.CodeIdempotency)
	}
	for _, bad := range []string{"", strings.Repeat("k", 256), "a\x7f", "a\tb"} {
		e := b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, apitest.Header("Idempotency-Key", bad)).WantError(t, 400, signalbox.CodeValidation)
		if e.Field != "Idempotency-Key" {
			t.Errorf("%q: %+v", bad, e)
		}
	}
	twice := func(r *http.Request) { r.Header.Add("Idempotency-Key", "key-2") }
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, key, twice).WantError(t, 400, signalbox.CodeValidation)
}

// Many concurrent callers, with one key and without keys.
func TestConcurrentSubmits(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 40 })
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, counts := map[string]bool{}, map[int]int{}
	for i := range 100 {
		wg.Go(func() {
			var edits []apitest.Edit
			if i%2 == 0 {
				edits = append(edits, apitest.Header("Idempotency-Key", "same"))
			}
			got := b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, edits...)
			var out api.SubmitResponse
			if err := json.Unmarshal(got.Body, &out); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[got.StatusCode]++
			if i%2 == 0 && out.QueueID != "" {
				ids[out.QueueID] = true
			}
		})
	}
	wg.Wait()
	if len(ids) > 1 {
		t.Errorf("one key made %d tasks", len(ids))
	}
	n, err := b.Engine.Read().Counts(t.Context())
	if err != nil || n.Pending != 40 || counts[201]+counts[503] != 100 {
		t.Errorf("%d pending, answers %v, %v", n.Pending, counts, err)
	}
}

func TestQueuePagesAndPositions(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	taken := b.Submit(`{"prompt":"taken"}`).QueueID
	b.Claim(a)
	var want []string
	for i := range 10 {
		body := fmt.Sprintf(`{"prompt":"p%d"}`, i)
		if i%3 == 0 {
			body = fmt.Sprintf(`{"prompt":"p%d","agent":"coder"}`, i)
		}
		want = append(want, b.Submit(body).QueueID)
	}
	var got []api.Task
	path := "/api/queue?limit=3"
	for next := path; next != ""; {
		var page api.Queue
		b.Do("GET", next, "").Want(t, 200, &page)
		if page.Depth != 10 || page.DispatchedCount != 1 || len(page.Tasks) > 4 { // a task that is being dispatched counts
			t.Fatalf("%+v", page)
		}
		got = append(got, page.Tasks...)
		if next = ""; page.Next != "" {
			next = path + "&after=" + page.Next
		}
	}
	if len(got) != 11 || got[0].QueueID != taken || got[0].State != "dispatching" || got[0].Position != 0 {
		t.Fatalf("%d tasks, the first %+v", len(got), got[0])
	}
	places := map[string]int{}
	for i, task := range got[1:] {
		places[task.Queue]++
		if task.QueueID != want[i] || task.Position != places[task.Queue] {
			t.Errorf("%d: %s at %d in %s", i, task.QueueID, task.Position, task.Queue)
		}
		if task.Prompt != "" {
			t.Error("a list carries whole prompts")
		}
	}
	var lane api.Queue
	b.Do("GET", "/api/queue?queue=agent:coder", "").Want(t, 200, &lane)
	if len(lane.Tasks) != 4 || lane.Tasks[3].Position != 4 {
		t.Errorf("%+v", lane)
	}
}

// failing is a store whose writes fail with an internal text.
type failing struct{ store.Store }

var errInner = errors.New("SELECT secret FROM /var/lib/db: disk I/O error")

func (failing) Submit(context.Context, store.Submission) (store.Submitted, error) {
	return store.Submitted{}, &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: errInner.Error(), Err: errInner}
}

func (failing) Counts(context.Context) (store.Counts, error) { return store.Counts{}, errInner }

func TestInnerTextDoesNotLeak(t *testing.T) {
	b := apitest.New(t)
	e := engine.New(failing{b.Store}, engine.Options{})
	d, err := httpapi.New(httpapi.Config{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	b.Server = d
	for path, code := range map[string]signalbox.Code{"/api/queue/task": signalbox.CodeStoreFailed, "/api/queue": signalbox.CodeInternal, "/readyz": signalbox.CodeUnavailable} {
		method, body := "GET", ""
		if strings.HasSuffix(path, "/task") {
			method, body = "POST", `{"prompt":"p"}`
		}
		got := b.Do(method, path, body)
		if got.StatusCode < 500 || strings.Contains(string(got.Body), "SELECT") || !strings.Contains(string(got.Body), string(code)) {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.Body)
		}
	}
}

// full is a store without room.
type full struct{ store.Store }

func (full) Submit(context.Context, store.Submission) (store.Submitted, error) {
	return store.Submitted{}, &signalbox.Error{Code: signalbox.CodeStoreFull, Message: "the disk of db.internal is full", Err: errInner}
}

// A submit to a full store says so, and what to do, but not where the store is.
func TestAFullStoreIsSaidToTheSubmitter(t *testing.T) {
	b := apitest.New(t)
	d, err := httpapi.New(httpapi.Config{Engine: engine.New(full{b.Store}, engine.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	b.Server = d
	e := b.Do("POST", "/api/queue/task", `{"prompt":"p"}`).WantError(t, http.StatusInsufficientStorage, signalbox.CodeStoreFull)
	if !e.Retryable || !strings.Contains(e.Message, "no room") || !strings.Contains(e.Hint, "make room on the disk") || strings.Contains(e.Message+e.Hint, "db.internal") {
		t.Errorf("%+v", e)
	}
}

func TestFindAndHistory(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	a := b.AddAgent("coder", 1)
	var ids []string
	for i := range 5 {
		ids = append(ids, b.Submit(fmt.Sprintf(`{"prompt":"billing %d","source":"cli"}`, i)).QueueID)
		task := b.Run(a)
		c.Advance(time.Hour)
		reason := signalbox.ReasonCompleted
		if i == 2 {
			reason = signalbox.ReasonAgentError
		}
		b.FinishTask(task, reason, signalbox.Result{Output: "done"})
	}
	var found api.Found
	b.Do("GET", "/api/find/"+ids[3][len(ids[3])-6:], "").Want(t, 200, &found)
	if len(found.QueueIDs) != 1 || found.QueueIDs[0] != ids[3] {
		t.Errorf("%v", found)
	}
	b.Do("GET", "/api/find/zzzzzzzz", "").Want(t, 200, &found)
	if found.QueueIDs == nil || len(found.QueueIDs) != 0 {
		t.Errorf("%v", found)
	}
	for query, want := range map[string]int{
		"": 5, "?state=failed": 1, "?reason=agent_error": 1, "?agent=coder": 5, "?agent=nobody": 0, "?source=cli": 5, "?source=web": 0, "?q=BILLING%203": 1, "?queue=work": 5,
		"?since=150m": 3, "?until=150m": 2, "?since=2025-01-17T12:00:00Z&until=2025-01-17T14:00:00Z": 2, "?since=7d": 5, "?limit=2": 2, "?session_id=none": 0, "?source_job=none": 0,
	} {
		var h api.History
		b.Do("GET", "/api/history"+query, "").Want(t, 200, &h)
		if len(h.Tasks) != want {
			t.Errorf("%s: %d tasks, want %d", query, len(h.Tasks), want)
		}
	}
	var got []string
	for next := "/api/history?limit=2"; next != ""; {
		var h api.History
		b.Do("GET", next, "").Want(t, 200, &h)
		for _, task := range h.Tasks {
			got = append(got, task.QueueID)
		}
		if next = ""; h.Next != "" {
			next = "/api/history?limit=2&before=" + h.Next
		}
	}
	if len(got) != 5 || got[0] != ids[4] || got[4] != ids[0] {
		t.Errorf("%v", got)
	}
}

package standalone_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/standalone"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// fixture is a standalone scheduler with a director.
type fixture struct {
	t        *testing.T
	director *director
	handler  http.Handler
}

func newFixture(t *testing.T, change func(*standalone.ServerOptions), jobs ...signalbox.Schedule) *fixture {
	t.Helper()
	r := &fixture{t: t, director: newDirector(t)}
	store, queue := openStore(t, t.TempDir()), r.director.queue()
	counted := telemetry.NewScheduleMetrics(time.Now)
	s, err := schedule.New(counted.Store(store), queue, schedule.Options{Zone: "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	counted.Watch(s)
	if err := s.Sync(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	o := standalone.ServerOptions{Scheduler: s, Store: store, Queue: queue, Version: "1.0.0", Metrics: counted, Log: quiet, Hosts: []string{"jobs.example"}}
	if change != nil {
		change(&o)
	}
	server := standalone.NewServer(o)
	server.DisableEndedCache()
	r.handler = server.Handler()
	return r
}

// do sends a request and returns the status and the body.
func (r *fixture) do(method, path string, edits ...func(*http.Request)) (status int, body string) {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), method, "http://127.0.0.1:9100"+path, nil)
	req.RemoteAddr = "127.0.0.1:40000"
	for _, f := range edits {
		f(req)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	data, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(data)
}

func (r *fixture) status() api.SchedulerStatus {
	r.t.Helper()
	code, body := r.do("GET", "/status")
	var out api.SchedulerStatus
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != 200 {
		r.t.Fatalf("%d %s", code, body)
	}
	return out
}

// trigger fires a job; the answer must contain parts.
func (r *fixture) trigger(job string, want int, parts ...string) {
	r.t.Helper()
	code, body := r.do("POST", "/trigger/"+job)
	for _, part := range parts {
		if !strings.Contains(body, part) {
			r.t.Errorf("%s: no %s in %s", job, part, body)
		}
	}
	if code != want {
		r.t.Errorf("%s: %d %s, want %d", job, code, body, want)
	}
}

func job(name string, overlap signalbox.Overlap) signalbox.Schedule {
	return signalbox.Schedule{Name: name, Cron: "0 1 29 2 *", Prompt: "p", Enabled: true, Overlap: overlap}
}

func TestStatusMatchesSeed(t *testing.T) {
	off := job("off", "")
	off.Enabled = false
	r := newFixture(t, nil, job("nightly", ""), off)
	s := r.status()
	if s.Type != "helper" || strings.Join(s.Interfaces, " ") != "statusable observable" || s.Version != "1.0.0" || s.State != "running" || s.Director != r.director.URL || len(s.Jobs) != 2 {
		t.Fatalf("%+v", s)
	}
	j := s.Jobs[0]
	if j.Name != "nightly" || j.Schedule != "0 1 29 2 *" || j.Timezone != "Europe/Berlin" || !j.Enabled || j.NextRun == nil || len(j.NextRuns) != 3 || j.LastRun != nil || j.LastStatus != "" || j.IsRunning {
		t.Errorf("%+v", j)
	}
	if o := s.Jobs[1]; o.Enabled || o.NextRun != nil {
		t.Errorf("%+v", o)
	}
	r.trigger("nightly", 201, `"status":"queued"`, `"queue_id":"queue-00000000000000000000000001"`, `"job":"nightly"`)
	if j = r.status().Jobs[0]; j.LastStatus != "queued" || j.LastQueueID != "queue-00000000000000000000000001" || j.LastRun == nil || !j.IsRunning {
		t.Errorf("%+v", j)
	}
	r.director.set(func() { r.director.tasks[j.LastQueueID] = "completed" })
	if r.status().Jobs[0].IsRunning {
		t.Error("its task has ended")
	}
	asked := 0
	r.director.set(func() { asked = r.director.asked[j.LastQueueID] })
	r.status()
	r.director.set(func() {
		if r.director.asked[j.LastQueueID] != asked {
			t.Error("a task that was seen to end is asked for again")
		}
	})
}

func TestTriggerAnswersMatchSeed(t *testing.T) {
	r := newFixture(t, nil, job("skip", signalbox.OverlapSkip), job("queue", signalbox.OverlapQueue), job("full", ""), job("bad", ""))
	r.trigger("nope", 404, `"error":"job_not_found"`, `"message":`)
	r.trigger(strings.Repeat("x", 300), 404, `"error":"job_not_found"`)
	r.trigger("skip", 201)
	r.trigger("skip", 409, `"error":"job_already_running"`)
	r.trigger("queue", 201)
	r.trigger("queue", 202, `"status":"held"`)
	r.trigger("queue", 409, `"error":"job_already_running"`)
	r.director.set(func() {
		r.director.refuse = &api.Error{Error: "queue_full", Message: "Queue is at capacity (50 tasks)", RetryAfter: 503}
	})
	r.trigger("full", 503, `"error":"queue_full"`)
	if j := r.status().Jobs[1]; j.Name != "full" || j.LastStatus != "skipped_queue_full" || j.IsRunning {
		t.Errorf("%+v", j)
	}
	r.director.set(func() {
		r.director.refuse = &api.Error{Error: "not_found", Field: "agent", Message: "no agent is named coder", RetryAfter: 404}
	})
	r.trigger("bad", 502, `"error":"submit_failed"`, "no agent is named coder")
	if j := r.status().Jobs[0]; j.LastStatus != "skipped_error" || !strings.Contains(j.LastError, "no agent") {
		t.Errorf("%+v", j)
	}
	_, text := r.do("GET", "/metrics")
	for _, want := range []string{`signalbox_schedules{state="enabled"} 4`, `signalbox_schedule_failing{schedule="bad"} 1`, `signalbox_schedules{state="failing"} 2`, `signalbox_schedule_firings_total{status="skipped_error"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestHostTokenAndOriginAreChecked(t *testing.T) {
	r := newFixture(t, func(o *standalone.ServerOptions) { o.Token = "sesame" }, job("a", ""))
	at := func(host string) func(*http.Request) { return func(q *http.Request) { q.Host = host } }
	with := func(name, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(name, value) }
	}
	token := with("Authorization", "Bearer sesame")
	for _, x := range []struct {
		method, path string
		want         int
		edits        []func(*http.Request)
	}{
		{"GET", "/status", 401, nil},
		{"GET", "/status", 401, []func(*http.Request){with("Authorization", "Bearer sesam")}},
		{"GET", "/status", 401, []func(*http.Request){with("Authorization", "Basic sesame")}},
		{"POST", "/trigger/a", 401, nil},
		{"GET", "/metrics", 401, nil},
		{"GET", "/healthz", 200, nil},
		{"GET", "/status", 200, []func(*http.Request){token}},
		{"GET", "/status", 200, []func(*http.Request){token, at("localhost:9100")}},
		{"GET", "/status", 200, []func(*http.Request){token, at("[::1]:9100")}},
		{"GET", "/status", 200, []func(*http.Request){token, at("JOBS.example:9100")}},
		{"GET", "/status", 403, []func(*http.Request){token, at("evil.example")}},
		{"GET", "/status", 403, []func(*http.Request){token, at("192.0.2.1:9100")}},
		{"GET", "/healthz", 403, []func(*http.Request){at("evil.example")}},
		{"POST", "/trigger/a", 403, []func(*http.Request){token, with("Origin", "https://evil.example")}},
		{"POST", "/trigger/a", 403, []func(*http.Request){token, with("Sec-Fetch-Site", "cross-site")}},
		{"GET", "/trigger/a", 405, []func(*http.Request){token}},
		{"GET", "/", 404, []func(*http.Request){token}},
		{"GET", "/trigger/a/b", 404, []func(*http.Request){token}},
	} {
		code, body := r.do(x.method, x.path, x.edits...)
		if code != x.want || code >= 400 && !strings.Contains(body, `"error":"`) {
			t.Errorf("%s %s: %d %s, want %d", x.method, x.path, code, body, x.want)
		}
	}
	if len(r.director.bodies) != 0 {
		t.Error("something was submitted")
	}
}

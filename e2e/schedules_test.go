package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// scheduler starts a standalone scheduler with a file of jobs.
func (b *box) scheduler(director, jobs string, args ...string) *process {
	b.t.Helper()
	file := b.file("scheduler.yaml", "director_url: "+director+"\n"+jobs, 0o600)
	line := []string{"scheduler", "--config", file, "--data", filepath.Join(b.root, "scheduler"), "--addr", "127.0.0.1:0"}
	p := b.serve(append(line, args...)...)
	p.says("scheduler ready")
	return p
}

// jobsOf are the jobs of a scheduler, by name.
func (b *box) jobsOf(scheduler *process) map[string]api.SchedulerJob {
	b.t.Helper()
	resp, err := http.Get(scheduler.url + "/status")
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var status api.SchedulerStatus
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || resp.StatusCode != http.StatusOK || status.Type != "helper" {
		b.t.Fatalf("%d %+v %v", resp.StatusCode, status, err)
	}
	out := map[string]api.SchedulerJob{}
	for _, j := range status.Jobs {
		out[j.Name] = j
	}
	return out
}

// trigger fires a job and returns the status and body of the answer.
func (b *box) trigger(scheduler *process, job string) (int, string) {
	b.t.Helper()
	resp, err := http.Post(scheduler.url+"/trigger/"+job, "", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestSeedSchedulerQueueIntegration is the integration test of the work-queue
// seed, with the same steps.
func TestSeedSchedulerQueueIntegration(t *testing.T) {
	// 1. Start director, agent, scheduler.
	b := newBox(t)
	b.vars["AG_QUEUE_MAX_SIZE"] = "2" // the seed's name for the limit
	director := b.director()
	gate, command := b.gated()
	b.agent("worker", director.url, command...)
	c := b.client(director.url)
	scheduler := b.scheduler(director.url, `
jobs:
  - name: test-job
    schedule: "0 1 * * *"
    prompt: nightly maintenance
    model: sonnet
    timeout: 30m
    overlap: allow
`)

	// 2. Make the agent busy.
	blocking := gate.holdWith(c, "blocking task")

	// 3. Trigger the scheduler's job.
	if code, body := b.trigger(scheduler, "test-job"); code != http.StatusCreated || !strings.Contains(body, "queue-") {
		t.Fatalf("%d %s", code, body)
	}

	// 4. Verify the task is queued, not rejected.
	job := b.jobsOf(scheduler)["test-job"]
	if job.LastStatus != "queued" || !job.IsRunning {
		t.Fatalf("%+v", job)
	}
	queued := job.LastQueueID
	task, err := c.Task(b.ctx(), queued)
	if err != nil || task.State != "pending" || task.Source != "scheduler" || task.SourceJob != "test-job" || task.Model != "sonnet" || task.TimeoutSeconds != 1800 {
		t.Errorf("queued as %+v, %v", task, err)
	}
	scheduler.says("job=test-job action=queued queue_id=" + queued)
	// If the queue is full, the run is skipped, nothing is stored, and the log
	// says so.
	b.trigger(scheduler, "test-job")
	second := b.jobsOf(scheduler)["test-job"].LastQueueID
	if code, body := b.trigger(scheduler, "test-job"); code != http.StatusServiceUnavailable || !strings.Contains(body, `"error":"queue_full"`) {
		t.Errorf("with a full queue: %d %s", code, body)
	}
	if job = b.jobsOf(scheduler)["test-job"]; job.LastStatus != "skipped_queue_full" || job.LastQueueID != second {
		t.Errorf("with a full queue: %+v", job)
	}
	scheduler.says("job=test-job action=skipped reason=queue_full")
	director.says("queue=submit_rejected reason=queue_full depth=2")
	if code, body := b.trigger(scheduler, "other-job"); code != http.StatusNotFound || !strings.Contains(body, `"error":"job_not_found"`) {
		t.Errorf("%d %s", code, body)
	}

	// 5. Wait for the agent to complete.
	gate.open()
	b.completed(c, blocking)

	// 6. Verify the queued task is dispatched and the queue is empty.
	b.completed(c, queued)
	b.completed(c, second)
	if queue, err := c.Queue(b.ctx(), client.QueueOptions{}); err != nil || queue.Depth != 0 {
		t.Errorf("the queue is not empty: %+v, %v", queue, err)
	}
	past, err := c.History(b.ctx(), client.HistoryOptions{SourceJob: "test-job"})
	if err != nil || len(past.Tasks) != 2 {
		t.Errorf("the job's history: %+v, %v", past, err)
	}
	b.until("the job knows that its tasks have ended", func() bool { return !b.jobsOf(scheduler)["test-job"].IsRunning })
	scheduler.stop()
}

// cutter is a proxy between a scheduler and a director that drops the reply
// to the first submission.
func (b *box) cutter(director string, cut func()) *httptest.Server {
	to, err := url.Parse(director)
	if err != nil {
		b.t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	var first atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !first.CompareAndSwap(false, true) {
			pass.ServeHTTP(w, r)
			return
		}
		pass.ServeHTTP(httptest.NewRecorder(), r)
		cut()
		panic(http.ErrAbortHandler)
	}))
	b.t.Cleanup(s.Close)
	return s
}

// TestIncidentLostReplyToTheScheduler kills the director after it has stored a
// scheduler's submission and before it could answer. The scheduler retries with
// the same key until a director is up: one task, one run.
func TestIncidentLostReplyToTheScheduler(t *testing.T) {
	b := newBox(t)
	director := b.director("--addr", freePort(t))
	addr := strings.TrimPrefix(director.url, "http://")
	between := b.cutter(director.url, director.kill)
	scheduler := b.scheduler(between.URL, `
jobs:
  - {name: test-job, schedule: "0 1 * * *", prompt: nightly maintenance}
`)
	asked, forget := context.WithCancel(b.ctx())
	defer forget()
	go func() { // it answers when the outcome is known, or that this takes long
		req, _ := http.NewRequestWithContext(asked, http.MethodPost, scheduler.url+"/trigger/test-job", nil)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	director.exits()
	scheduler.says("job=test-job action=retry")
	if job := b.jobsOf(scheduler)["test-job"]; job.LastStatus != "firing" || !job.IsRunning {
		t.Errorf("while the director is away: %+v", job)
	}
	director = b.director("--addr", addr)
	b.agent("worker", director.url)
	c := b.client(director.url)
	b.until("the firing is decided", func() bool { return b.jobsOf(scheduler)["test-job"].LastStatus == "queued" })
	id := b.jobsOf(scheduler)["test-job"].LastQueueID
	b.completed(c, id)
	past, err := c.History(b.ctx(), client.HistoryOptions{SourceJob: "test-job"})
	queue, err2 := c.Queue(b.ctx(), client.QueueOptions{})
	if err != nil || err2 != nil || len(past.Tasks) != 1 || past.Tasks[0].QueueID != id || queue.Depth != 0 {
		t.Errorf("%+v %+v, %v, %v", past, queue, err, err2)
	}
	b.executedOnce(id)
	scheduler.stop()
}

// A scheduler follows its file, and an invalid file changes nothing.
func TestTheSchedulerFollowsItsFile(t *testing.T) {
	b := newBox(t)
	const one = "  - {name: a, schedule: \"0 1 * * *\", prompt: p}\n"
	scheduler := b.scheduler("http://127.0.0.1:1", "jobs:\n"+one)
	write := func(jobs string) {
		b.file("scheduler.yaml", "director_url: http://127.0.0.1:1\njobs:\n"+jobs, 0o600)
		scheduler.signal(syscall.SIGHUP)
	}
	write(one + "  - {name: b, schedule: \"30 2 * * *\", prompt: p, timezone: Europe/Berlin, enabled: false}\n")
	b.until("both jobs are there", func() bool { return len(b.jobsOf(scheduler)) == 2 })
	if j := b.jobsOf(scheduler)["b"]; j.Enabled || j.Timezone != "Europe/Berlin" || j.Schedule != "30 2 * * *" {
		t.Errorf("%+v", j)
	}
	write(one + "  - {name: c, schedule: \"0 0 31 2 *\", prompt: p}\n")
	scheduler.says("scheduler.yaml:4: jobs[1].schedule: ")
	if jobs := b.jobsOf(scheduler); len(jobs) != 2 {
		t.Errorf("%+v", jobs)
	}
	write("  - {name: d, schedule: \"0 1 * * *\", prompt: p}\n")
	b.until("the other jobs are gone", func() bool { return len(b.jobsOf(scheduler)) == 1 && b.jobsOf(scheduler)["d"].Enabled })

	// No other scheduler may use its folder meanwhile.
	got := b.cli("scheduler", "--config", filepath.Join(b.root, "scheduler.yaml"), "--data", filepath.Join(b.root, "scheduler"), "--addr", "127.0.0.1:0")
	if got.code != 1 || !strings.Contains(got.err, "another scheduler uses the folder") {
		t.Errorf("%+v", got)
	}
	scheduler.stop()
	if said := b.want(1, "scheduler", "--open", "--addr", "0.0.0.0:0", "--data", filepath.Join(b.root, "scheduler")).err; !strings.Contains(said, "needs a token") {
		t.Errorf("%s", said)
	}
}

// Without a director a firing is skipped, and the log says so; a director
// that is started later is found.
func TestTheSchedulerFindsTheDirectorOfThisHost(t *testing.T) {
	b := newBox(t)
	file := b.file("jobs.yaml", "jobs:\n  - {name: a, schedule: \"0 1 * * *\", prompt: p}\n", 0o600)
	scheduler := b.serve("scheduler", "--config", file, "--data", filepath.Join(b.root, "scheduler"), "--addr", "127.0.0.1:0")
	scheduler.says("No director is configured, and none runs here")
	scheduler.says("scheduler ready")
	if code, body := b.trigger(scheduler, "a"); code != http.StatusServiceUnavailable || !strings.Contains(body, `"error":"no_director"`) {
		t.Errorf("%d %s", code, body)
	}
	if j := b.jobsOf(scheduler)["a"]; j.LastStatus != "skipped_no_director" {
		t.Errorf("%+v", j)
	}
	scheduler.says("job=a action=skipped reason=no_director_url")
	director := b.director()
	b.agent("worker", director.url)
	began := time.Now()
	code, body := b.trigger(scheduler, "a")
	if code != http.StatusCreated {
		t.Fatalf("%d %s after %s", code, body, time.Since(began))
	}
	b.completed(b.client(director.url), b.jobsOf(scheduler)["a"].LastQueueID)
	if got := fmt.Sprint(b.want(0, "activities", "--type", "schedule_start", "--director", director.url).out); !strings.Contains(got, "schedule_start") {
		t.Errorf("%s", got)
	}
}

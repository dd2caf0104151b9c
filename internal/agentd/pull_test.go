package agentd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// director is a fake director for a pulling agent: it answers what the test
// says, and records the reports.
type director struct {
	t      *testing.T
	server *httptest.Server
	say    chan api.PullAnswer // answers to claims, one for each claim

	mu      sync.Mutex
	closed  bool // it answers 503
	claims  []api.PullClaim
	reports []told
	refuse  map[string]int   // statuses of reports, by queue_id
	logs    map[string]int64 // the log position that it has of each run
	states  []string         // of heartbeats
	news    chan struct{}
}

type told struct {
	id string
	api.PullReport
}

func newDirector(t *testing.T) *director {
	d := &director{t: t, say: make(chan api.PullAnswer, 10), refuse: map[string]int{}, logs: map[string]int64{}, news: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/agents", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, http.StatusCreated, api.Agent{}) })
	mux.HandleFunc("POST /api/agents/{name}/claim", d.claim)
	mux.HandleFunc("POST /api/agents/{name}/tasks/{id}/report", d.report)
	mux.HandleFunc("POST /api/agents/{name}/heartbeat", func(w http.ResponseWriter, r *http.Request) {
		var b api.Heartbeat
		d.read(r, &b)
		d.note(func() { d.states = append(d.states, b.State) })
		d.answer(w, http.StatusOK, api.HeartbeatAnswer{IntervalSeconds: 1})
	})
	d.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		d.server.CloseClientConnections()
		d.server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return d
}

func (d *director) read(r *http.Request, into any) {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		d.t.Error(err)
	}
}

func (d *director) answer(w http.ResponseWriter, status int, v any) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		status, v = http.StatusServiceUnavailable, api.Error{Error: "unavailable", Message: "closed"}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (d *director) note(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.news)
	d.news = make(chan struct{})
}

func (d *director) claim(w http.ResponseWriter, r *http.Request) {
	var c api.PullClaim
	d.read(r, &c)
	d.note(func() { d.claims = append(d.claims, c) })
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	select {
	case a := <-d.say:
		d.answer(w, http.StatusOK, a)
	case <-time.After(wait):
		d.answer(w, http.StatusOK, api.PullAnswer{})
	case <-r.Context().Done():
	}
}

func (d *director) report(w http.ResponseWriter, r *http.Request) {
	var rep api.PullReport
	d.read(r, &rep)
	id := r.PathValue("id")
	d.mu.Lock()
	status, closed := d.refuse[id], d.closed
	d.mu.Unlock()
	if !closed {
		d.note(func() { d.reports = append(d.reports, told{id, rep}) })
	}
	if status != 0 {
		d.answer(w, status, api.Error{Error: map[int]string{409: "stale_fence", 404: "not_found"}[status]})
		return
	}
	var out api.PullReported
	if rep.Output != nil {
		d.mu.Lock()
		if at, follows := d.logs[id]; !follows || rep.Output.Seq == at || rep.Output.Truncated {
			d.logs[id] = rep.Output.Next
		}
		out.Next = d.logs[id]
		d.mu.Unlock()
	}
	d.answer(w, http.StatusOK, out)
}

func (d *director) shut(closed bool) { d.note(func() { d.closed = closed }) }

// hears waits for a report.
func (d *director) hears(what string, is func(told) bool) told {
	d.t.Helper()
	over := time.After(long)
	for {
		d.mu.Lock()
		i, news := slices.IndexFunc(d.reports, is), d.news
		var got told
		if i >= 0 {
			got = d.reports[i]
		}
		d.mu.Unlock()
		if i >= 0 {
			return got
		}
		select {
		case <-news:
		case <-over:
			d.t.Fatalf("not in time: %s", what)
		}
	}
}

func (d *director) finished(id string) api.AgentTaskStatus {
	d.t.Helper()
	return *d.hears("the end of "+id, func(r told) bool { return r.id == id && r.Finished != nil }).Finished
}

func (d *director) accepted(id string) {
	d.t.Helper()
	d.hears("that "+id+" is accepted", func(r told) bool { return r.id == id && r.Accepted != nil })
}

func (d *director) count(is func(told) bool) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.reports {
		if is(r) {
			n++
		}
	}
	return n
}

func pulling(t *testing.T) agentd.Config {
	t.Helper()
	cfg := config(t, "command")
	cfg.Name, cfg.Pull, cfg.Runner.Command = "far", true, []string{"/bin/sh", "-c", "{prompt}"}
	return cfg
}

// pulls runs an agent; stop ends it as SIGTERM does.
func pulls(t *testing.T, cfg agentd.Config, urls ...string) (stop func()) {
	t.Helper()
	daemon, err := agentd.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all []*client.Client
	for _, u := range urls {
		c, err := client.New(u, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- daemon.Pull(ctx, all) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func task(n int, script string) *api.AgentTask {
	return &api.AgentTask{Prompt: script, QueueID: fmt.Sprintf("queue-%d", n), Fence: int64(n), Director: "store"}
}

func TestPullExecutesAndReports(t *testing.T) {
	d := newDirector(t)
	stop := pulls(t, pulling(t), d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "echo one; echo two")}
	end := d.finished("queue-1")
	if end.State != "completed" || end.Output != "one\ntwo\n" || end.TaskID == "" || end.Fence != 1 {
		t.Errorf("%+v", end)
	}
	d.say <- api.PullAnswer{Task: task(2, "exit 3")}
	if end := d.finished("queue-2"); end.State != "failed" || end.Error == nil || end.Error.Type != "exit_nonzero" {
		t.Errorf("%+v", end)
	}
	d.say <- api.PullAnswer{Task: task(3, " ")}
	no := d.hears("the refusal", func(r told) bool { return r.id == "queue-3" && r.Refused != nil }).Refused
	if no.Status != 400 || no.Error != "validation_error" {
		t.Errorf("%+v", no)
	}
	d.say <- api.PullAnswer{Ask: []api.PullAsk{{QueueID: "queue-9", Fence: 9}, {QueueID: "queue-1", Fence: 1}}}
	d.hears("that it is not known", func(r told) bool { return r.id == "queue-9" && r.Unknown && r.Fence == 9 })
	stop()
	if n := d.count(func(r told) bool { return r.id == "queue-1" && r.Finished != nil }); n < 1 {
		t.Errorf("%d", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.states, "stopping") || d.claims[0].Slots != 1 || d.claims[0].Instance == "" {
		t.Errorf("%v %+v", d.states, d.claims[0])
	}
}

// The same execution given twice runs once, and claims list it while it runs.
func TestPullSameTaskTwiceIsOneExecution(t *testing.T) {
	d := newDirector(t)
	cfg := pulling(t)
	pulls(t, cfg, d.server.URL)
	for range 3 {
		d.say <- api.PullAnswer{Task: task(1, "sleep 0.3; echo once")}
	}
	d.finished("queue-1")
	d.say <- api.PullAnswer{}
	if n := strings.Count(read(t, cfg.ExecLog), `"start"`); n != 1 {
		t.Errorf("%d executions", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.claims, func(c api.PullClaim) bool {
		return len(c.Runs) == 1 && c.Runs[0].QueueID == "queue-1" && c.Runs[0].Fence == 1 && c.HighestFence == 1 && c.Director == "store"
	}) {
		t.Errorf("%+v", d.claims)
	}
}

func TestPullStopsRun(t *testing.T) {
	for name, want := range map[string]string{"cancelled": "cancelled", "void": "stale_fence"} {
		t.Run(name, func(t *testing.T) {
			d := newDirector(t)
			pulls(t, pulling(t), d.server.URL)
			d.say <- api.PullAnswer{Task: task(1, "sleep 100")}
			d.accepted("queue-1")
			d.say <- api.PullAnswer{Stop: []api.PullStop{{QueueID: "queue-1", Fence: 7}}} // another execution
			d.say <- api.PullAnswer{Stop: []api.PullStop{{QueueID: "queue-1", Fence: 1, Void: name == "void"}}}
			if end := d.finished("queue-1"); end.Error == nil || end.Error.Type != want {
				t.Errorf("%+v", end)
			}
		})
	}
}

// A run that the director has revoked is stopped, and its final report is not
// repeated for ever.
func TestPullStaleReportStopsRun(t *testing.T) {
	d := newDirector(t)
	d.refuse["queue-1"] = http.StatusConflict
	pulls(t, pulling(t), d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "sleep 100")}
	if end := d.finished("queue-1"); end.Error == nil || end.Error.Type != "stale_fence" {
		t.Errorf("%+v", end)
	}
	d.say <- api.PullAnswer{Task: task(2, "echo next")} // the slot is free
	d.finished("queue-2")
	if n := d.count(func(r told) bool { return r.id == "queue-1" && r.Finished != nil }); n != 1 {
		t.Errorf("reported %d times", n)
	}
}

// The end of a run is kept until a director has acknowledged it, also across a
// restart of the agent. After that it is not reported again.
func TestPullReportsEndUntilAcknowledged(t *testing.T) {
	d := newDirector(t)
	cfg := pulling(t)
	stop := pulls(t, cfg, d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "sleep 0.2; echo kept")}
	d.accepted("queue-1")
	d.shut(true)
	testkit.Wait(t, "the run ends", func() bool { return strings.Contains(read(t, cfg.ExecLog), `"end"`) })
	stop()
	d.shut(false)
	again := pulls(t, cfg, d.server.URL)
	if end := d.finished("queue-1"); end.State != "completed" || end.Output != "kept\n" {
		t.Errorf("%+v", end)
	}
	again()
	pulls(t, cfg, d.server.URL)
	d.say <- api.PullAnswer{Task: task(2, "echo next")}
	d.finished("queue-2")
	if n := d.count(func(r told) bool { return r.id == "queue-1" && r.Finished != nil }); n != 1 {
		t.Errorf("reported %d times", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if first, last := d.claims[0].Instance, d.claims[len(d.claims)-1].Instance; first != last {
		t.Errorf("it was %s and is %s", first, last)
	}
}

// If one director does not answer, the agent uses the next.
func TestPullFailsOverToNextDirector(t *testing.T) {
	d, away := newDirector(t), newDirector(t)
	away.server.Close()
	pulls(t, pulling(t), away.server.URL, d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "echo there")}
	d.finished("queue-1")
}

// The output of a run is reported while it runs, each part once; of an output
// that exceeds the cap, the end is reported.
func TestPullReportsOutput(t *testing.T) {
	d := newDirector(t)
	pulls(t, pulling(t), d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "echo first; sleep 0.5; echo second; sleep 0.3")}
	d.hears("the first line", func(r told) bool {
		return r.Output != nil && strings.HasPrefix(r.Output.Text, "first\n") && r.Finished == nil
	})
	d.finished("queue-1")
	d.mu.Lock()
	var text strings.Builder
	for _, r := range d.reports {
		if r.Output != nil && r.Finished == nil {
			text.WriteString(r.Output.Text)
		}
	}
	d.mu.Unlock()
	if got := text.String(); got != "first\nsecond\n" && got != "first\n" {
		t.Errorf("%q", got)
	}
	d.say <- api.PullAnswer{Task: task(2, "i=0; while [ $i -lt 20000 ]; do echo line $i of many; i=$((i+1)); done")}
	last := d.hears("the end", func(r told) bool { return r.id == "queue-2" && r.Finished != nil })
	if o := last.Output; o == nil || !o.Truncated || !strings.HasSuffix(o.Text, "line 19999 of many\n") || o.Next != last.Finished.OutputSeq || o.Next-o.Seq > 128<<10 {
		t.Errorf("%d to %d, truncated %v", o.Seq, o.Next, o.Truncated)
	}
}

// If another director takes over a run that prints nothing more, it has no log
// of the run and gets it from the agent.
func TestPullResendsOutputToNewDirector(t *testing.T) {
	d := newDirector(t)
	cfg := pulling(t)
	cfg.OutputCheck = 50 * time.Millisecond
	pulls(t, cfg, d.server.URL)
	gate := filepath.Join(t.TempDir(), "gate")
	d.say <- api.PullAnswer{Task: task(1, "echo first; until [ -e "+gate+" ]; do sleep 0.05; done")}
	first := func(r told) bool { return r.Output != nil && r.Output.Text == "first\n" && r.Finished == nil }
	d.hears("the first line", first)
	d.note(func() { d.reports, d.logs["queue-1"] = nil, 0 })
	if again := d.hears("the first line anew", first); again.Output.Seq != 0 {
		t.Errorf("%+v", again.Output)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.finished("queue-1")
}

// A stopping agent reports how its runs ended.
func TestPullStopsWithItsRuns(t *testing.T) {
	d := newDirector(t)
	stop := pulls(t, pulling(t), d.server.URL)
	d.say <- api.PullAnswer{Task: task(1, "sleep 100")}
	d.accepted("queue-1")
	stop()
	if end := d.finished("queue-1"); end.Error == nil || end.Error.Type != "interrupted" {
		t.Errorf("%+v", end)
	}
}

// read returns the content of a file; "" if it does not exist.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

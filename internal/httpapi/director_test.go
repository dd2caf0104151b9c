package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a director over an empty memory store, with a fake dispatcher.
type box struct {
	t      *testing.T
	store  *memory.Store
	engine *engine.Engine
	id     *identity.Keeper
	dir    *httpapi.Server
	runs   *fakeRuns
	live   *fakeLive
	server *httptest.Server // nil until serve
}

type options struct {
	engine   engine.Options
	director httpapi.Config
}

func newBox(t *testing.T, change ...func(*options)) *box {
	t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, store: memory.New(memory.Options{}), runs: newFakeRuns(), live: &fakeLive{}}
	o := options{engine: engine.Options{Sealer: sealer}, director: httpapi.Config{Runs: b.runs, Version: "1.0.0"}}
	for _, f := range change {
		f(&o)
	}
	b.engine = engine.New(b.store, o.engine)
	b.engine.SetLive(b.live)
	b.live.changed = b.engine.AgentChanged
	o.director.Engine = b.engine
	if b.id, err = identity.New(context.Background(), b.store, identity.Options{ // a fuzz test has no context
		Static: o.director.Token, Now: b.engine.Now, Random: o.engine.Random, Cost: identity.Cost{MemoryKiB: 8, Passes: 1},
	}); err != nil {
		t.Fatal(err)
	}
	o.director.Identity = b.id
	if b.dir, err = httpapi.New(o.director); err != nil {
		t.Fatal(err)
	}
	return b
}

// serve puts the director behind a real listener.
func (b *box) serve() *box {
	b.server = httptest.NewServer(b.dir.Handler())
	b.t.Cleanup(func() {
		b.dir.Stop()
		http.DefaultClient.CloseIdleConnections()
		b.server.Close()
	})
	return b
}

// reply is an answer, read to its end.
type reply struct {
	*http.Response
	body []byte
}

// edit changes a request before it is sent.
type edit func(*http.Request)

func header(name, value string) edit {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func from(addr string) edit { return func(r *http.Request) { r.RemoteAddr = addr } }

// do sends a request straight to the handler. A body goes as JSON.
func (b *box) do(method, path, body string, edits ...edit) reply {
	b.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(b.t.Context(), method, "http://127.0.0.1:8080"+path, in)
	r.RemoteAddr = "127.0.0.1:40000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edits {
		f(r)
	}
	w := httptest.NewRecorder()
	b.dir.Handler().ServeHTTP(w, r)
	resp := w.Result()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{Response: resp, body: data}
}

// want fails unless the answer has that status, and decodes it.
func (r reply) want(t *testing.T, status int, into any) reply {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", r.StatusCode, status, r.body)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
	}
	return r
}

// wantError fails unless the answer is that error.
func (r reply) wantError(t *testing.T, status int, code signalbox.Code) api.Error {
	t.Helper()
	var e api.Error
	r.want(t, status, &e)
	if e.Error != string(code) || e.Message == "" || e.RequestID == "" {
		t.Fatalf("got %+v, want code %s with a message and a request id", e, code)
	}
	return e
}

func (b *box) submit(body string) api.SubmitResponse {
	b.t.Helper()
	var out api.SubmitResponse
	b.do("POST", "/api/queue/task", body).want(b.t, http.StatusCreated, &out)
	return out
}

func (b *box) agent(name string, slots int) signalbox.Agent {
	b.t.Helper()
	a, err := b.engine.PutAgent(b.t.Context(), signalbox.Agent{
		Name: name, Kind: "demo", URL: "http://127.0.0.1:9000", Slots: slots, Source: signalbox.AgentRegistered,
	}, "")
	if err != nil {
		b.t.Fatal(err)
	}
	b.live.set(engine.LiveAgent{Agent: a, Up: true})
	return a
}

// claim gives the next task to an agent; work also has it accepted.
func (b *box) claim(a signalbox.Agent) signalbox.Task {
	b.t.Helper()
	c, found, err := b.engine.Claim(b.t.Context(), a, 0)
	if err != nil || !found {
		b.t.Fatalf("claim: found %v, %v", found, err)
	}
	return c.Task
}

func (b *box) work(a signalbox.Agent) signalbox.Task {
	b.t.Helper()
	t, err := b.engine.Accept(b.t.Context(), b.claim(a), "task-1", "")
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *box) finish(t signalbox.Task, reason signalbox.Reason, res signalbox.Result) {
	b.t.Helper()
	if _, err := b.engine.Finish(b.t.Context(), t, engine.Outcome{Reason: reason, Result: &res}); err != nil {
		b.t.Fatal(err)
	}
}

// fakeLive is a fleet as a dispatcher would see it.
type fakeLive struct {
	changed func(name string) // nil: nobody is told
	mu      sync.Mutex
	agents  []engine.LiveAgent
	index   map[string]int // of agents, where they are many; nil: they are looked for
}

func (f *fakeLive) Agents() []engine.LiveAgent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]engine.LiveAgent(nil), f.agents...)
}

func (f *fakeLive) LiveAgent(name string) (engine.LiveAgent, bool) {
	if f.index != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.agents[f.index[name]], true
	}
	for _, a := range f.Agents() {
		if a.Name == name {
			return a, true
		}
	}
	return engine.LiveAgent{}, false
}

func (f *fakeLive) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.agents = slices.DeleteFunc(f.agents, func(a engine.LiveAgent) bool { return a.Name == name })
}

func (f *fakeLive) set(a engine.LiveAgent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed != nil {
		defer f.changed(a.Name)
	}
	for i := range f.agents {
		if f.agents[i].Name == a.Name {
			f.agents[i] = a
			return
		}
	}
	f.agents = append(f.agents, a)
}

// fakeRuns follows runs whose logs a test writes.
type fakeRuns struct {
	mu    sync.Mutex
	logs  map[string]string
	grew  chan struct{}
	beats map[string]api.Heartbeat
	// answers names the agents that are there when they are asked.
	answers map[string]bool
}

func newFakeRuns() *fakeRuns {
	return &fakeRuns{logs: map[string]string{}, grew: make(chan struct{}), beats: map[string]api.Heartbeat{}}
}

func (f *fakeRuns) print(id, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs[id] += text
	close(f.grew)
	f.grew = make(chan struct{})
}

// end stops following a run.
func (f *fakeRuns) end(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.logs, id)
	close(f.grew)
	f.grew = make(chan struct{})
}

func (f *fakeRuns) Output(ctx context.Context, id string, after int64, wait time.Duration) (api.Output, bool) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		f.mu.Lock()
		log, ok := f.logs[id]
		grew := f.grew
		f.mu.Unlock()
		out := api.Output{Seq: after, Next: after}
		if !ok {
			return out, false
		}
		if after < int64(len(log)) {
			out.Text, out.Next = log[after:], int64(len(log))
			return out, true
		}
		select {
		case <-grew:
		case <-over.C:
			return out, true
		case <-ctx.Done():
			return out, true
		}
	}
}

func (f *fakeRuns) Heartbeat(name string, beat api.Heartbeat) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beats[name] = beat
	return true
}

func (f *fakeRuns) Answers(_ context.Context, name string) bool { return f.answers[name] }

func (f *fakeRuns) HeartbeatInterval() time.Duration { return 5 * time.Second }

package push_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Parallel tests here mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("3")
	}
	goleak.VerifyTestMain(m)
}

// ttl is the slot lease in the tests.
const ttl = 600 * time.Second

// clock is the time of a fixture. It runs like the real one, the wall clock scale times as fast, and can
// jump.
type clock struct {
	begun      time.Time
	scale      time.Duration
	wall, mono atomic.Int64 // jumps so far
}

func (c *clock) now() time.Time {
	return c.begun.Add(time.Since(c.begun)*c.scale + time.Duration(c.wall.Load()))
}
func (c *clock) monotonic() time.Time       { return time.Now().Add(time.Duration(c.mono.Load())) }
func (c *clock) jumpWall(d time.Duration)   { c.wall.Add(int64(d)) }
func (c *clock) silenceFor(d time.Duration) { c.mono.Add(int64(d)) }

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fixture is a director without HTTP: a store, an engine and dispatchers.
type fixture struct {
	t      testing.TB
	store  store.Store
	engine *engine.Engine
	d      *push.Dispatcher
	clock  *clock
	log    *lines
	opts   push.Options
	eo     engine.Options
}

// setting changes how a fixture is made.
type setting func(h *fixture, eo *engine.Options)

// noTick leaves only events to wake agents, which are not probed periodically either.
func noTick(h *fixture, _ *engine.Options) { h.opts.Tick, h.opts.Probe = time.Hour, time.Hour }

// fast makes backoffs and other delays a thousand times shorter.
func fast(h *fixture, _ *engine.Options) { h.clock.scale = 1000 }

// shortTimeouts shortens the timeouts of requests.
func shortTimeouts(h *fixture, _ *engine.Options) {
	h.opts.DispatchTimeout, h.opts.AskTimeout = 400*time.Millisecond, 400*time.Millisecond // a well-behaved agent answers within it even on a busy machine
}

// mostOfFlood is how much is read of an answer that never ends.
var mostOfFlood = soak.Pick(256<<10, push.DefaultMaxAnswer)

func shortAnswers(h *fixture, _ *engine.Options) { h.opts.MaxAnswer = mostOfFlood }

// freshConnections makes a new connection for every request, so that an old one never hides that an agent
// refuses connections.
func freshConnections(h *fixture, _ *engine.Options) {
	h.opts.Transport = &http.Transport{DisableKeepAlives: true}
}

// on makes the fixture use a store.
func on(s store.Store) setting { return func(h *fixture, _ *engine.Options) { h.store = s } }

func attempts(n int) setting { return func(_ *fixture, eo *engine.Options) { eo.MaxAttempts = n } }

// newFixture returns a fixture, and checks the general invariants at the end of the test.
func newFixture(t testing.TB, settings ...setting) *fixture {
	t.Helper()
	h := &fixture{t: t, clock: &clock{begun: time.Now(), scale: 1}, log: &lines{}, store: memory.New(memory.Options{ID: "rig"})}
	h.opts = push.Options{
		DispatchTimeout: 10 * time.Second, AskTimeout: 5 * time.Second, PollInterval: 5 * time.Millisecond, FollowWait: 5 * time.Second,
		Confirm: 5 * time.Millisecond, Probe: 50 * time.Millisecond, Options: execution.Options{Tick: 5 * time.Millisecond},
	}
	eo := engine.Options{ExecutionTTL: ttl, MaxSize: 10000, Now: h.clock.now}
	for _, s := range settings {
		s(h, &eo)
	}
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	eo.Sealer, eo.Now = sealer, h.clock.now
	eo.Log = slog.New(slog.NewTextHandler(h.log, nil))
	h.opts.Log, h.opts.Monotonic = eo.Log, h.clock.monotonic
	h.eo = eo
	h.engine = engine.New(h.store, eo)
	t.Cleanup(func() {
		h.stop()
		if err := invariant.Check(context.Background(), h.store); err != nil {
			t.Errorf("invariants: %v", err)
		}
		h.checkJournal()
		if t.Failed() || os.Getenv("SIGNALBOX_LOG") != "" {
			t.Logf("log:\n%s", h.log)
		}
	})
	return h
}

// rekey replaces the engine by one with another key.
func (h *fixture) rekey() {
	h.t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{1}, seal.KeyBytes))
	if err != nil {
		h.t.Fatal(err)
	}
	h.eo.Sealer = sealer
	h.engine = engine.New(h.store, h.eo)
}

// start starts a new dispatcher.
func (h *fixture) start() *fixture {
	h.t.Helper()
	h.d = push.New(h.engine, h.opts)
	if err := h.d.Start(context.Background()); err != nil {
		h.t.Fatalf("start: %v", err)
	}
	return h
}

func (h *fixture) stop() {
	if h.d != nil {
		if err := h.d.CheckBooks(); err != nil {
			h.t.Errorf("books: %v", err)
		}
		h.d.Stop()
		h.d = nil
	}
}

// restart stops the dispatcher like a crash, and starts another one.
func (h *fixture) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// agent starts a fake agent and registers it.
func (h *fixture) agent(o agenttest.Options) *agenttest.Agent {
	h.t.Helper()
	a := agenttest.New(h.t, o)
	a.SetClock(h.clock.now)
	h.put(a.Row(), o.Token)
	return a
}

func (h *fixture) put(row signalbox.Agent, token string) {
	h.t.Helper()
	if _, err := h.engine.PutAgent(context.Background(), row, token); err != nil {
		h.t.Fatalf("put agent: %v", err)
	}
}

// submit stores a task and returns its id.
func (h *fixture) submit(n engine.NewTask) string {
	h.t.Helper()
	if n.Prompt == "" {
		n.Prompt = "do it"
	}
	r, err := h.engine.Submit(context.Background(), n)
	if err != nil {
		h.t.Fatalf("submit: %v", err)
	}
	return r.Task.ID
}

func (h *fixture) task(id string) signalbox.Task {
	h.t.Helper()
	t, err := h.store.Task(context.Background(), id)
	if err != nil {
		h.t.Fatalf("task %s: %v", id, err)
	}
	return t
}

// until waits until ok returns true for the task.
func (h *fixture) until(id, what string, ok func(signalbox.Task) bool) signalbox.Task {
	h.t.Helper()
	t, err := h.engine.Wait(context.Background(), id, 20*time.Second, ok)
	if err != nil || !ok(t) {
		h.t.Fatalf("task %s is not %s: %v, it is %+v", id, what, err, t)
	}
	return t
}

func (h *fixture) untilState(id string, s signalbox.State) signalbox.Task {
	h.t.Helper()
	return h.until(id, string(s), func(t signalbox.Task) bool { return t.State == s })
}

// ends waits for the end of a task and checks its reason.
func (h *fixture) ends(id string, want signalbox.Reason) signalbox.Task {
	h.t.Helper()
	t := h.until(id, "ended", engine.Ended)
	if t.Reason != want || t.Message == "" {
		h.t.Fatalf("task %s ended %s (%s: %q), want reason %s", id, t.State, t.Reason, t.Message, want)
	}
	return t
}

// await waits for a condition that no signal announces.
func (h *fixture) await(what string, ok func() bool) {
	h.t.Helper()
	testkit.Wait(h.t, what, ok)
}

// live returns the dispatcher's view of an agent.
func (h *fixture) live(name string) engine.LiveAgent {
	for _, a := range h.engine.LiveAgents() {
		if a.Name == name {
			return a
		}
	}
	return engine.LiveAgent{}
}

func (h *fixture) untilUp(name string) {
	h.t.Helper()
	h.await(name+" is up", func() bool { return h.live(name).Up })
}

func (h *fixture) cancel(id string) signalbox.Task {
	h.t.Helper()
	t, err := h.engine.Cancel(context.Background(), id, "tester")
	if err != nil {
		h.t.Fatalf("cancel: %v", err)
	}
	return t
}

func (h *fixture) release(agent string) []string {
	h.t.Helper()
	ids, err := h.engine.ReleaseLane(context.Background(), agent, "tester")
	if err != nil {
		h.t.Fatalf("release: %v", err)
	}
	return ids
}

func (h *fixture) journal() []signalbox.Entry {
	h.t.Helper()
	entries, err := h.store.Journal(context.Background(), 0, 1_000_000)
	if err != nil {
		h.t.Fatalf("journal: %v", err)
	}
	return entries
}

// checkJournal checks that every task ended at most once, and that nothing happened to it afterwards.
func (h *fixture) checkJournal() {
	h.t.Helper()
	ended := map[string]signalbox.Entry{}
	for _, e := range h.journal() {
		if first, over := ended[e.QueueID]; over {
			h.t.Errorf("task %s had ended (%s) when %s happened to it", e.QueueID, first.Kind, e.Kind)
		}
		if e.State.Terminal() {
			ended[e.QueueID] = e
		}
	}
}

func failure(message string) *api.AgentError {
	return &api.AgentError{Type: "claude_error", Message: message}
}

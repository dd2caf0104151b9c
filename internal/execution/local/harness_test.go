package local_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/local"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that must happen.
const patience = time.Minute

// provider has tools whose behaviour a test sets.
type provider struct {
	mu    sync.Mutex
	tools []gateway.Tool
	play  map[string]func(ctx context.Context, c gateway.Call) (gateway.Result, error)
	check func(c gateway.Call) error
	state gateway.State // "": ready
}

func (p *provider) Name() string                        { return "s" }
func (p *provider) Start(context.Context, func()) error { return nil }
func (p *provider) EndSession(string)                   {}
func (p *provider) Close() error                        { return nil }
func (p *provider) Server() gateway.Server {
	return gateway.Server{Name: "s", State: cmp.Or(p.state, gateway.StateReady), Tools: len(p.tools)}
}

func (p *provider) Tools() []gateway.Tool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]gateway.Tool(nil), p.tools...)
}

func (p *provider) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	p.mu.Lock()
	play := p.play[c.Tool]
	p.mu.Unlock()
	if play == nil {
		return said("done"), nil
	}
	return play(ctx, c)
}

func (p *provider) Check(c gateway.Call) error {
	if p.check == nil {
		return nil
	}
	return p.check(c)
}

// said is a result with one text.
func said(text string) gateway.Result {
	b, _ := json.Marshal([]map[string]string{{"type": "text", "text": text}})
	return gateway.Result{Content: b}
}

// async is an async tool without a queue.
func async(name string, change ...func(*gateway.Tool)) gateway.Tool {
	t := gateway.Tool{Name: name, Server: "s", Kind: gateway.KindREST, Async: true, Definition: json.RawMessage(`{"name":"` + name + `"}`)}
	for _, f := range change {
		f(&t)
	}
	return t
}

// plain is a tool of a queue.
func plain(name, queue string) gateway.Tool {
	return async(name, func(t *gateway.Tool) { t.Async, t.Queue, t.Timeout = false, queue, time.Hour })
}

func inQueue(queue string) func(*gateway.Tool) { return func(t *gateway.Tool) { t.Queue = queue } }

// fixture is a store, with what outlives an executor: a test may run one executor after another over it.
type fixture struct {
	t        *testing.T
	store    store.Store
	engine   *engine.Engine
	provider *provider
	gateway  *gateway.Gateway
	queues   *toolqueue.Queues
	log      *logged

	options local.Options
}

type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newFixture(t *testing.T, tools ...gateway.Tool) *fixture {
	t.Helper()
	return newFixtureOver(t, memory.New(memory.Options{}), tools...)
}

// openStore opens the default store of a director.
func openStore(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "signalbox.db"), Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func newFixtureOver(t *testing.T, s store.Store, tools ...gateway.Tool) *fixture {
	t.Helper()
	h := &fixture{t: t, store: s, log: &logged{}, provider: &provider{tools: tools, play: map[string]func(context.Context, gateway.Call) (gateway.Result, error){}}}
	h.queues = toolqueue.New(toolqueue.Hooks{})
	if err := h.queues.Configure(map[string]toolqueue.Config{"one": {Concurrent: 1}}); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.gateway, err = gateway.New(gateway.Options{Queues: h.queues, Providers: []gateway.Provider{h.provider}}); err != nil {
		t.Fatal(err)
	}
	h.must(h.gateway.Start(t.Context()))
	t.Cleanup(func() { h.must(h.gateway.Close()) })
	h.engine = h.newEngine(engine.Options{})
	return h
}

func (h *fixture) newEngine(o engine.Options) *engine.Engine {
	sealer, err := seal.New(bytes.Repeat([]byte{3}, seal.KeyBytes))
	h.must(err)
	o.Sealer, o.Log = sealer, slog.New(slog.NewTextHandler(h.log, nil))
	return engine.New(h.store, o)
}

// play sets the behaviour of a tool.
func (h *fixture) play(tool string, f func(ctx context.Context, c gateway.Call) (gateway.Result, error)) {
	h.provider.mu.Lock()
	defer h.provider.mu.Unlock()
	h.provider.play[tool] = f
}

// open starts an executor that is stopped at the end of the test.
func (h *fixture) open() *local.Executor {
	h.t.Helper()
	x := h.make()
	h.must(x.Start(h.t.Context()))
	return x
}

func (h *fixture) make() *local.Executor {
	o := h.options
	o.Engine, o.Gateway, o.Log = h.engine, h.gateway, slog.New(slog.NewTextHandler(h.log, nil))
	x := local.New(o)
	h.engine.AddLive(x)
	h.t.Cleanup(x.Stop)
	return x
}

func (h *fixture) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func call(tool string, change ...func(*gateway.TaskCall)) gateway.TaskCall {
	c := gateway.TaskCall{Call: gateway.Call{Tool: tool}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func with(args string) func(*gateway.TaskCall) {
	return func(c *gateway.TaskCall) { c.Arguments = json.RawMessage(args) }
}

func (h *fixture) submit(x *local.Executor, tool string, change ...func(*gateway.TaskCall)) string {
	h.t.Helper()
	v, err := x.Submit(h.t.Context(), call(tool, change...))
	h.must(err)
	return v.Task.ID
}

// end waits for the end of a task.
func (h *fixture) end(x *local.Executor, id string) gateway.ToolTask {
	h.t.Helper()
	v, err := x.Wait(h.t.Context(), id, patience)
	h.must(err)
	if !v.Task.State.Terminal() {
		h.t.Fatalf("task %s has not ended: %s\n%s", id, v.Task.State, h.log)
	}
	return v
}

// reaches waits until a task is in a state.
func (h *fixture) reaches(id string, state signalbox.State) signalbox.Task {
	h.t.Helper()
	t, err := h.engine.Wait(h.t.Context(), id, patience, func(t signalbox.Task) bool { return t.State == state })
	h.must(err)
	if t.State != state {
		h.t.Fatalf("task %s is %s (%s), want %s", id, t.State, t.Message, state)
	}
	return t
}

func (h *fixture) task(id string) signalbox.Task {
	h.t.Helper()
	t, err := h.engine.Read().Task(h.t.Context(), id)
	h.must(err)
	return t
}

func (h *fixture) result(id string) signalbox.Result {
	h.t.Helper()
	r, err := h.engine.Read().Result(h.t.Context(), id)
	h.must(err)
	return r
}

// slots fails unless that many slots are in use.
func (h *fixture) slots(want int) {
	h.t.Helper()
	slots, err := h.engine.Read().Slots(h.t.Context())
	h.must(err)
	if len(slots) != want {
		h.t.Errorf("%d slots in use, want %d: %+v", len(slots), want, slots)
	}
}

// got receives a value that must come.
func got[T any](h *fixture, c <-chan T) T {
	h.t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		h.t.Fatalf("nothing came\n%s", h.log)
		panic("unreachable")
	}
}

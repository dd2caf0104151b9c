package engine_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// fixture is an engine over an empty store, with a clock and a fleet that the test sets.
type fixture struct {
	*engine.Engine
	t     *testing.T
	store store.Store
	log   *bytes.Buffer

	mu    sync.Mutex
	now   time.Time
	fleet []engine.LiveAgent
	seen  []engine.Applied
}

// newFixture returns a fixture over a store of the kind that the suite runs on.
func newFixture(t *testing.T, change ...func(*engine.Options)) *fixture {
	t.Helper()
	return newFixtureOver(t, openStore(t), change...)
}

// newMemoryFixture is for tests in simulated time, which does not advance while a connection waits for its
// server.
func newMemoryFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOver(t, memory.New(memory.Options{}))
}

func newFixtureOver(t *testing.T, s store.Store, change ...func(*engine.Options)) *fixture {
	t.Helper()
	b := &fixture{t: t, store: s, log: &bytes.Buffer{}, now: time.Date(2025, 1, 17, 10, 0, 0, 0, time.UTC)}
	o := engine.Options{Sealer: newSealer(t), Now: b.clock, Random: rand.NewChaCha8([32]byte{7}), Log: slog.New(slog.NewTextHandler(b.log, nil))}
	for _, f := range change {
		f(&o)
	}
	b.Engine = engine.New(b.store, o)
	telemetry.LogTasks(b.Engine, o.Log)
	b.SetLive(b)
	b.Observe(func(a *engine.Applied) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seen = append(b.seen, *a)
	})
	return b
}

func newSealer(t *testing.T) *seal.Sealer {
	t.Helper()
	s, err := seal.New(bytes.Repeat([]byte{3}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *fixture) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *fixture) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// Agents makes the fixture the engine.Live of its engine.
func (b *fixture) Agents() []engine.LiveAgent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]engine.LiveAgent(nil), b.fleet...)
}

func (b *fixture) LiveAgent(name string) (engine.LiveAgent, bool) {
	for _, a := range b.Agents() {
		if a.Name == name {
			return a, true
		}
	}
	return engine.LiveAgent{}, false
}

// see sets how the dispatcher sees an agent.
func (b *fixture) see(a engine.LiveAgent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.fleet {
		if b.fleet[i].Name == a.Name {
			b.fleet[i] = a
			return
		}
	}
	b.fleet = append(b.fleet, a)
}

func (b *fixture) agent(name, kind string, slots int) signalbox.Agent {
	b.t.Helper()
	a, err := b.PutAgent(b.t.Context(), signalbox.Agent{Name: name, Kind: kind, URL: "http://127.0.0.1:9000", Slots: slots}, "")
	b.must(err)
	b.see(engine.LiveAgent{Agent: a, Up: true})
	return a
}

func (b *fixture) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// wantCode fails unless err has that code and, if field is not empty, that field.
func wantCode(t *testing.T, err error, code signalbox.Code, field string) {
	t.Helper()
	if signalbox.CodeOf(err) != code {
		t.Fatalf("error %v (%s), want code %s", err, signalbox.CodeOf(err), code)
	}
	if e, ok := err.(*signalbox.Error); ok && field != "" && e.Field != field {
		t.Fatalf("error about %q, want %q: %v", e.Field, field, err)
	}
}

func (b *fixture) submit(n engine.NewTask) signalbox.Task {
	b.t.Helper()
	if n.Prompt == "" {
		n.Prompt = "p"
	}
	r, err := b.Submit(b.t.Context(), n)
	b.must(err)
	return r.Task
}

func (b *fixture) task(id string) signalbox.Task {
	b.t.Helper()
	t, err := b.Read().Task(b.t.Context(), id)
	b.must(err)
	return t
}

func (b *fixture) claim(a signalbox.Agent) engine.Claimed {
	b.t.Helper()
	c, found, err := b.Claim(b.t.Context(), a, 0)
	b.must(err)
	if !found {
		b.t.Fatal("nothing to claim")
	}
	return c
}

// next claims a task, and reports whether there was one.
func (b *fixture) next(a signalbox.Agent) (signalbox.Task, bool) {
	b.t.Helper()
	c, found, err := b.Claim(b.t.Context(), a, 0)
	b.must(err)
	return c.Task, found
}

func (b *fixture) work(a signalbox.Agent) signalbox.Task {
	b.t.Helper()
	c := b.claim(a)
	t, err := b.Accept(b.t.Context(), c.Task, "task-1", c.Task.SessionID)
	b.must(err)
	return t
}

func (b *fixture) finish(t signalbox.Task, reason signalbox.Reason) signalbox.Task {
	b.t.Helper()
	t, err := b.Finish(b.t.Context(), t, engine.Outcome{Reason: reason, Result: &signalbox.Result{Output: "done"}})
	b.must(err)
	return t
}

// run claims the next task of an agent and runs it for that long.
func (b *fixture) run(a signalbox.Agent, d time.Duration) signalbox.Task {
	b.t.Helper()
	t := b.work(a)
	b.pass(d)
	return b.finish(t, signalbox.ReasonCompleted)
}

func (b *fixture) slotsInUse() int {
	b.t.Helper()
	slots, err := b.Read().Slots(b.t.Context())
	b.must(err)
	return len(slots)
}

func otherSealer(t *testing.T) *seal.Sealer {
	t.Helper()
	s, err := seal.New(bytes.Repeat([]byte{4}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

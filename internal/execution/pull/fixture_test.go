package pull_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long bounds every wait of a test; none should take that long.
const long = time.Minute

// ttl is the slot lease in the tests.
const ttl = 600 * time.Second

// fixture is a director without HTTP, with pull agents.
type fixture struct {
	t       *testing.T
	store   store.Store
	engine  *engine.Engine
	lanes   *pull.Lanes
	skipped atomic.Int64 // how far the clocks are ahead of the real one
}

type setting func(*pull.Options, *engine.Options)

// noTick disables the backstop, so that only events wake agents.
func noTick(o *pull.Options, _ *engine.Options) { o.Tick = time.Hour }

// brisk makes rounds frequent.
func brisk(o *pull.Options, _ *engine.Options) { o.Tick = 5 * time.Millisecond }

func newFixture(t *testing.T, settings ...setting) *fixture {
	t.Helper()
	return newFixtureOver(t, memory.New(memory.Options{ID: "rig"}), settings...)
}

func newFixtureOver(t *testing.T, s store.Store, settings ...setting) *fixture {
	t.Helper()
	return newFixtureLater(t, s, 0, settings...)
}

// newFixtureLater returns a fixture whose clocks are ahead from the start.
func newFixtureLater(t *testing.T, s store.Store, ahead time.Duration, settings ...setting) *fixture {
	t.Helper()
	h := &fixture{t: t, store: s}
	h.pass(ahead)
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	h.must(err)
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	po, eo := pull.Options{Options: execution.Options{Log: log, Monotonic: h.now}}, engine.Options{Sealer: sealer, ExecutionTTL: ttl, MaxSize: 10000, Now: h.now, Log: log}
	for _, f := range settings {
		f(&po, &eo)
	}
	h.engine = engine.New(h.store, eo)
	h.lanes = pull.New(h.engine, po)
	h.must(h.lanes.Start(t.Context()))
	t.Cleanup(func() {
		h.lanes.Stop()
		if err := invariant.Check(context.Background(), h.store); err != nil {
			t.Errorf("invariants: %v", err)
		}
	})
	return h
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b))
	return len(b), nil
}

func (h *fixture) now() time.Time       { return time.Now().Add(time.Duration(h.skipped.Load())) }
func (h *fixture) pass(d time.Duration) { h.skipped.Add(int64(d)) }

func (h *fixture) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// puller is a pull agent as a director sees it. The test sets what it runs.
type puller struct {
	h    *fixture
	name string
	c    api.PullClaim
}

func (h *fixture) agent(name string, slots int) *puller {
	h.t.Helper()
	a := &puller{h, name, api.PullClaim{Instance: "instance-of-" + name, Slots: slots}}
	_, err := h.engine.PutAgent(h.t.Context(), signalbox.Agent{
		Name: name, Kind: "demo", Slots: slots, Fencing: true, Source: signalbox.AgentPull, URL: signalbox.PullURL(a.c.Instance),
	}, "")
	h.must(err)
	return a
}

// claim sends a claim.
func (a *puller) claim(wait time.Duration) api.PullAnswer {
	a.h.t.Helper()
	got, err := a.h.lanes.Claim(a.h.t.Context(), a.name, a.c, wait)
	a.h.must(err)
	return got
}

// claiming sends a claim in the background.
func (a *puller) claiming(wait time.Duration) <-chan api.PullAnswer {
	c := a.c
	done := make(chan api.PullAnswer, 1)
	go func() {
		got, err := a.h.lanes.Claim(a.h.t.Context(), a.name, c, wait)
		if err != nil && !errors.Is(err, context.Canceled) {
			a.h.t.Error(err)
		}
		done <- got
	}()
	return done
}

// parked waits until that many agents wait for a task.
func (h *fixture) parked(n int) {
	h.t.Helper()
	testkit.Wait(h.t, fmt.Sprintf("%d wait", n), func() bool { return h.lanes.Parked() == n })
}

// begins claims a task, which the agent then runs.
func (a *puller) begins() *api.AgentTask {
	a.h.t.Helper()
	got := a.claim(long)
	if got.Task == nil {
		a.h.t.Fatalf("no task: %+v", got)
	}
	a.has(got.Task)
	return got.Task
}

func (a *puller) has(t *api.AgentTask) {
	a.c.Runs = append(a.c.Runs, api.PullRun{QueueID: t.QueueID, Fence: t.Fence, Slot: t.Slot, Isolated: t.Isolated})
}

func (a *puller) report(id string, r api.PullReport) (api.PullReported, error) {
	r.Instance = a.c.Instance
	return a.h.lanes.Report(a.h.t.Context(), a.name, id, r)
}

func (a *puller) accepts(t *api.AgentTask) {
	a.h.t.Helper()
	_, err := a.report(t.QueueID, api.PullReport{Fence: t.Fence, Accepted: &api.PullAccepted{TaskID: "task-of-" + t.QueueID}})
	a.h.must(err)
}

func completed(t *api.AgentTask, answer string) api.PullReport {
	return api.PullReport{Fence: t.Fence, Finished: &api.AgentTaskStatus{TaskID: "task-of-" + t.QueueID, State: "completed", Output: answer}}
}

func (a *puller) completes(t *api.AgentTask, answer string) {
	a.h.t.Helper()
	a.c.Runs = nil
	_, err := a.report(t.QueueID, completed(t, answer))
	a.h.must(err)
}

func (h *fixture) submit(n engine.NewTask) string {
	h.t.Helper()
	if n.Prompt == "" {
		n.Prompt = "p"
	}
	got, err := h.engine.Submit(h.t.Context(), n)
	h.must(err)
	return got.Task.ID
}

func (h *fixture) task(id string) signalbox.Task {
	h.t.Helper()
	t, err := h.store.Task(h.t.Context(), id)
	h.must(err)
	return t
}

func (h *fixture) reaches(id string, s signalbox.State) signalbox.Task {
	h.t.Helper()
	testkit.Wait(h.t, id+" is "+string(s), func() bool { return h.task(id).State == s })
	return h.task(id)
}

func refusedWith(t *testing.T, err error, code signalbox.Code) {
	t.Helper()
	if signalbox.CodeOf(err) != code {
		t.Errorf("%v, want %s", err, code)
	}
}

package push_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// stores are those that latencies are measured on.
var stores = map[string]func(t testing.TB) store.Store{
	"memory": func(testing.TB) store.Store { return memory.New(memory.Options{}) },
	"sqlite": openSQLite,
}

func openSQLite(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "signalbox.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// quiet is a fixture with production settings, but without a log.
func quiet(b *testing.B, s store.Store) *fixture {
	h := newFixture(b, on(s), func(h *fixture, eo *engine.Options) {
		h.opts.Tick, h.opts.Probe, h.opts.PollInterval = time.Second, 5*time.Second, 5*time.Second
		eo.Log = slog.New(slog.DiscardHandler)
	})
	return h
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSubmitToAccepted measures from the call of Submit until an idle agent has started the task.
func BenchmarkSubmitToAccepted(b *testing.B) {
	for name, open := range stores {
		b.Run(name, func(b *testing.B) {
			h := quiet(b, open(b))
			a := h.agent(agenttest.Options{})
			h.start()
			h.untilUp("fake")
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				id := h.submit(engine.NewTask{})
				a.AwaitStart(len(took) + 1)
				took = append(took, time.Since(begun))
				h.untilState(id, "working")
				a.Finish(id, agenttest.End{})
				h.ends(id, "completed")
				h.await("the slot is free", func() bool { return h.live("fake").InUse == 0 })
			}
			report(b, took)
		})
	}
}

// BenchmarkEndToNextAccepted measures from the end of a task on the agent until its next task has started.
func BenchmarkEndToNextAccepted(b *testing.B) {
	for name, open := range stores {
		b.Run(name, func(b *testing.B) {
			h := quiet(b, open(b))
			a := h.agent(agenttest.Options{})
			h.start()
			h.untilUp("fake")
			var took []time.Duration
			var ids []string
			ids = append(ids, h.submit(engine.NewTask{}))
			for b.Loop() {
				n := len(took)
				ids = append(ids, h.submit(engine.NewTask{Prompt: fmt.Sprint("task ", n)}))
				a.AwaitStart(n + 1)
				h.untilState(ids[n], "working")
				begun := time.Now()
				a.Finish(ids[n], agenttest.End{Output: "fine"})
				a.AwaitStart(n + 2)
				took = append(took, time.Since(begun))
			}
			report(b, took)
		})
	}
}

package push_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// idleAgents is a transport to any number of idle agents.
type idleAgents struct{ requests atomic.Int64 }

func (i *idleAgents) RoundTrip(r *http.Request) (*http.Response, error) {
	i.requests.Add(1)
	body, err := json.Marshal(api.AgentStatus{Type: "agent", AgentKind: "demo", State: "idle", Slots: 1, Fencing: true, LongPoll: true})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// idlers returns a fixture with production settings, with n agents of that transport.
func idlers(t *testing.T, n int) (*fixture, *idleAgents) {
	t.Helper()
	agents := &idleAgents{}
	h := newFixture(t, func(h *fixture, eo *engine.Options) {
		h.opts.Tick, h.opts.Probe, h.opts.PollInterval, h.opts.Confirm = time.Second, 5*time.Second, 5*time.Second, time.Second
		h.opts.Transport = agents
		eo.Log = slog.New(slog.DiscardHandler)
	})
	for i := range n {
		if err := h.store.PutAgent(t.Context(), idler(i), signalbox.Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	h.start()
	return h, agents
}

func nth(i int) string { return fmt.Sprintf("agent-%04d", i) }

func idler(i int) signalbox.Agent {
	return signalbox.Agent{
		Name: nth(i), Kind: "demo", URL: fmt.Sprintf("http://127.0.0.1:%d", 10_000+i), Slots: 1, Fencing: true, Source: signalbox.AgentRegistered,
	}
}

// Agents that register one after another are each asked for their own status: a new one causes no requests to
// others.
func TestRegisteringAgentsDoNotLoadOthers(t *testing.T) {
	const n = 200
	h, agents := idlers(t, 0)
	for i := range n {
		h.put(idler(i), "a-token-of-its-own")
		h.await("it is up", func() bool { return h.live(nth(i)).Up })
	}
	if got := agents.requests.Load(); got > 3*n {
		t.Errorf("%d agents were asked %d times while they registered", n, got)
	}
}

// A thousand idle agents that send heartbeats get no requests, and cost almost no CPU time (bubble_test.go
// tests it for longer).
func TestThousandIdleAgents(t *testing.T) {
	const n = 1000
	h, agents := idlers(t, n)
	h.await("all are up", func() bool {
		for _, a := range h.engine.LiveAgents() {
			if !a.Up {
				return false
			}
		}
		return true
	})
	asked := agents.requests.Load()
	if asked != n {
		t.Errorf("a start asked %d agents %d times", n, asked)
	}
	// This is for the whole test process, with the race detector, on a machine that may be busy: the start
	// takes a while, and the garbage collector runs. Work that never ends shows each time.
	share := 1.0
	for try := 0; try < 5 && share > 0.1; try++ {
		share = min(share, h.costOfBeats(60, n))
	}
	if got := agents.requests.Load() - asked; got != 0 {
		t.Errorf("agents that beat were asked %d times", got)
	}
	if share > 0.1 {
		t.Errorf("agents that only beat take %.0f %% of a processor", 100*share)
	}
}

// costOfBeats makes some of n idle agents send as many heartbeats as all together would, and returns the
// share of a processor that the process used meanwhile.
func (h *fixture) costOfBeats(some, n int) float64 {
	pause := h.d.HeartbeatInterval() / time.Duration(n)
	used, begun := cpu(h.t), time.Now()
	for i := range some {
		if !h.d.Heartbeat(nth(i), api.Heartbeat{State: "idle"}) {
			h.t.Fatalf("the heartbeat of %s was refused", nth(i))
		}
		time.Sleep(pause)
	}
	return float64(cpu(h.t)-used) / float64(time.Since(begun))
}

func TestHeartbeatIntervalGrowsWithAgents(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 10 * time.Second, 1: 10 * time.Second, 300: 10 * time.Second, 450: 15 * time.Second, 900: 30 * time.Second, 1200: 30 * time.Second,
	} {
		h, _ := idlers(t, n)
		if got := h.d.HeartbeatInterval(); got != want {
			t.Errorf("%d agents beat every %s, want %s", n, got, want)
		}
		h.stop()
	}
}

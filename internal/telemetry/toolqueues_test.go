package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"net/http/httptest"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// held is a provider whose calls last until they are released.
type held struct {
	begun, letGo chan struct{}
}

func (h *held) Name() string                        { return "s" }
func (h *held) Start(context.Context, func()) error { return nil }
func (h *held) EndSession(string)                   {}
func (h *held) Server() gateway.Server              { return gateway.Server{Name: "s", State: gateway.StateReady} }
func (h *held) Close() error                        { return nil }
func (h *held) Tools() []gateway.Tool {
	return []gateway.Tool{{Name: "s__x", Server: "s", Kind: gateway.KindMCP, Queue: "browser", Definition: json.RawMessage(`{"name":"s__x"}`)}}
}

func (h *held) Call(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
	h.begun <- struct{}{}
	select {
	case <-h.letGo:
	case <-ctx.Done():
	}
	return gateway.Result{}, ctx.Err()
}

// tools is a gateway with its metrics.
type tools struct {
	*gateway.Gateway
	*held
	metrics *telemetry.ToolMetrics
	queues  *toolqueue.Queues
	queued  chan struct{} // a call has started to wait
}

func newTools(t *testing.T, m *telemetry.ToolMetrics, o gateway.Options) *tools {
	t.Helper()
	s := &tools{held: &held{begun: make(chan struct{}, 10), letGo: make(chan struct{})}, metrics: m, queued: make(chan struct{}, 10)}
	seen := toolqueue.Hooks{Queued: func(string, toolqueue.Who, int, int) { s.queued <- struct{}{} }}
	s.queues = toolqueue.New(gateway.Hooks(slog.New(slog.DiscardHandler), m.Hooks(), seen))
	if err := s.queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1, MaxWaiters: 2}, "default": {Concurrent: 64}}); err != nil {
		t.Fatal(err)
	}
	m.Watch(s.queues)
	o.Queues, o.Providers, o.Ended = s.queues, []gateway.Provider{s.held}, m.Ended
	g, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Gateway = g
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *tools) call(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Gateway.Call(ctx, gateway.Call{Tool: "s__x"})
		done <- err
	}()
	return done
}

func read(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	return w.Body.String()
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no line %s", want)
		}
	}
}

// Seed tool-queue-manager, steps 7 and 9: depth, last wait and histogram, under our names and the seed's.
func TestToolQueueMetricsFollowTheQueues(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := newTools(t, telemetry.NewToolMetrics(reg, true), gateway.Options{})
	has(t, read(t, reg),
		`signalbox_tool_queue_depth{queue="browser"} 0`, `signalbox_tool_queue_in_use{queue="default"} 0`, `signalbox_tool_queue_capacity{queue="default"} 64`,
		`signalbox_tool_queue_last_wait_ms{queue="browser"} 0`, `signalbox_tool_queue_wait_duration_ms_count{queue="browser"} 0`,
		`signalbox_tool_queue_refusals_total{queue="browser",reason="full"} 0`)

	first := s.call(t.Context())
	<-s.begun
	second := s.call(t.Context())
	<-s.queued
	ctx, cancel := context.WithCancel(t.Context())
	third := s.call(ctx)
	<-s.queued
	if err := <-s.call(t.Context()); err == nil {
		t.Error("a third waiter of two")
	}
	has(t, read(t, reg), `signalbox_tool_queue_depth{queue="browser"} 2`, `signalbox_tool_queue_in_use{queue="browser"} 1`,
		`ai_agent_queue_depth{name="browser"} 2`, `ai_agent_queue_in_use{name="browser"} 1`, `ai_agent_queue_capacity{name="browser"} 1`)

	cancel()
	if err := <-third; err == nil {
		t.Error("no error for the one that was cancelled")
	}
	s.letGo <- struct{}{}
	s.letGo <- struct{}{}
	if a, b := <-first, <-second; a != nil || b != nil {
		t.Errorf("%v %v", a, b)
	}
	_, _ = s.Gateway.Call(t.Context(), gateway.Call{Tool: "made-up"})
	text := read(t, reg)
	has(t, text,
		`signalbox_tool_queue_depth{queue="browser"} 0`, `signalbox_tool_queue_in_use{queue="browser"} 0`,
		`signalbox_tool_queue_wait_duration_ms_count{queue="browser"} 1`, `ai_agent_queue_wait_duration_ms_count{name="browser"} 1`,
		`signalbox_tool_queue_refusals_total{queue="browser",reason="full"} 1`, `signalbox_tool_queue_refusals_total{queue="browser",reason="cancelled"} 1`,
		`signalbox_tool_calls_total{outcome="ok",server="s"} 2`, `signalbox_tool_calls_total{outcome="tool_queue_full",server="s"} 1`,
		`signalbox_tool_calls_total{outcome="cancelled",server="s"} 1`, `signalbox_tool_calls_total{outcome="not_found",server=""} 1`,
		`signalbox_tool_call_duration_seconds_count{server="s"} 4`)
	for _, last := range []string{`signalbox_tool_queue_last_wait_ms{queue="browser"} `, `ai_agent_queue_last_wait_ms{name="browser"} `} {
		_, rest, _ := strings.Cut(text, "\n"+last)
		if value, _, _ := strings.Cut(rest, "\n"); value == "" || value == "0" {
			t.Errorf("%s is %q", last, value)
		}
	}
	if strings.Contains(text, "made-up") {
		t.Error("a caller can make series")
	}
}

// Incident (tool-queue-manager): an abort left the depth gauge stale until the next change. Now it is read
// from the queue itself.
func TestIncidentAbortLeavesTheDepthGaugeStale(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := newTools(t, telemetry.NewToolMetrics(reg, false), gateway.Options{})
	first := s.call(t.Context())
	<-s.begun
	ctx, cancel := context.WithCancel(t.Context())
	second := s.call(ctx)
	<-s.queued
	has(t, read(t, reg), `signalbox_tool_queue_depth{queue="browser"} 1`)
	until := time.Now().Add(time.Minute).Truncate(time.Second)
	if err := s.queues.CloseUntil("browser", "", until, ""); err != nil {
		t.Fatal(err)
	}
	text := read(t, reg)
	has(t, text, `signalbox_tool_queue_held{queue="browser"} 1`, `signalbox_tool_queue_held{queue="default"} 0`, `signalbox_tool_queue_closed_until_seconds{queue="default"} 0`)
	var said float64
	_, rest, _ := strings.Cut(text, "signalbox_tool_queue_closed_until_seconds{queue=\"browser\"} ")
	if _, err := fmt.Sscan(rest, &said); err != nil || math.Abs(said-float64(until.Unix())) > 0.002 {
		t.Errorf("closed until %v, want %d", said, until.Unix())
	}
	if err := s.queues.Open("browser", ""); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-second
	text = read(t, reg)
	has(t, text, `signalbox_tool_queue_depth{queue="browser"} 0`)
	if strings.Contains(text, "ai_agent_") {
		t.Error("the seed's names, though nobody asked for them")
	}
	close(s.letGo)
	<-first
}

func TestServerSeriesAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := telemetry.NewToolMetrics(reg, false)
	for i := range 300 {
		m.Ended(gateway.Ended{Server: fmt.Sprintf("server-%d", i), Outcome: gateway.OutcomeOK})
	}
	text := read(t, reg)
	if n := strings.Count(text, "\nsignalbox_tool_calls_total{"); n > 101 {
		t.Errorf("%d series", n)
	}
	has(t, text, `signalbox_tool_calls_total{outcome="ok",server="other"} 200`)
}

// The metrics of tools and of the engine are in the same answer.
func TestToolMetricsAreInTheSameAnswer(t *testing.T) {
	e, _, _ := newEngine(t)
	m := telemetry.NewMetrics(e)
	newTools(t, m.Tools(true), gateway.Options{})
	has(t, scrape(t, m), `signalbox_tool_queue_capacity{queue="browser"} 1`, `ai_agent_queue_depth{name="default"} 0`, `signalbox_store_up 1`)
}

func TestVerboseIsALevelOfItsOwn(t *testing.T) {
	if got := line(t, "text", telemetry.LevelVerbose, "queued", "queue", "browser"); got != "2025-01-17T10:00:00Z VRB queued queue=browser\n" {
		t.Errorf("text: %q", got)
	}
	if got := line(t, "json", telemetry.LevelVerbose, "queued"); !strings.Contains(got, `"level":"VRB"`) {
		t.Errorf("JSON: %s", got)
	}
	for name, want := range map[string]slog.Level{"debug": slog.LevelDebug, "verbose": telemetry.LevelVerbose, "Verbose": telemetry.LevelVerbose, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := telemetry.ParseLevel(name); err != nil || got != want {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	if _, err := telemetry.ParseLevel("loud"); err == nil {
		t.Error("loud is no level")
	}
	if telemetry.LevelVerbose >= slog.LevelInfo || telemetry.LevelVerbose <= slog.LevelDebug {
		t.Error("verbose is not between debug and info")
	}
}

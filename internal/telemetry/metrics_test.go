package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// fleet is one agent that is up.
type fleet struct{ signalbox.Agent }

func (f fleet) LiveAgent(name string) (engine.LiveAgent, bool) {
	return engine.LiveAgent{Agent: f.Agent, Up: true}, name == f.Name
}
func (f fleet) Agents() []engine.LiveAgent {
	return []engine.LiveAgent{{Agent: f.Agent, Up: true, Steps: &engine.Steps{Limit: 3, Calls: map[string]int64{"executed": 7, "refused": 2}, Queued: 1, Exempt: 4}}}
}

func newSealer() (*seal.Sealer, error) { return seal.New(bytes.Repeat([]byte{1}, seal.KeyBytes)) }

func sealer(t *testing.T) *seal.Sealer {
	t.Helper()
	sealer, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

func newEngine(t *testing.T) (*engine.Engine, *memory.Store, signalbox.Agent) {
	t.Helper()
	s := memory.New(memory.Options{})
	e := engine.New(s, engine.Options{Sealer: sealer(t), MaxSize: 1000})
	a, err := e.PutAgent(t.Context(), signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 9}, "")
	if err != nil {
		t.Fatal(err)
	}
	e.SetLive(fleet{a})
	return e, s, a
}

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func submit(t *testing.T, e *engine.Engine, n engine.NewTask) {
	t.Helper()
	n.Prompt = "p"
	if _, err := e.Submit(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func TestMetricsFollowTheTasks(t *testing.T) {
	e, _, a := newEngine(t)
	m := telemetry.NewMetrics(e)
	for range 4 {
		submit(t, e, engine.NewTask{Source: signalbox.SourceWeb})
	}
	ctx := t.Context()
	done := claim(t, e, a)
	running, err := e.Accept(ctx, done.Task, "task-1", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Finish(ctx, running, engine.Outcome{Reason: signalbox.ReasonAgentError}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Busy(ctx, claim(t, e, a).Task, ""); err != nil {
		t.Fatal(err)
	}
	claim(t, e, a)
	m.Refused(signalbox.CodeQueueFull)
	m.Request("submit", 201, time.Millisecond)
	m.Request("/etc/passwd", 404, -1)
	text := scrape(t, m)
	for _, want := range []string{
		`signalbox_tasks_submitted_total{source="web"} 4`,
		`signalbox_tasks_submitted_total{source="cli"} 0`,
		`signalbox_tasks_ended_total{reason="agent_error",state="failed"} 1`,
		`signalbox_queue_depth{queue="work"} 2`,
		`signalbox_queue_max_size 1000`,
		`signalbox_tasks_in_flight{state="dispatching"} 1`,
		`signalbox_tasks_in_flight{state="working"} 0`,
		`signalbox_dispatch_failures_total{kind="busy"} 1`,
		`signalbox_submit_refusals_total{code="queue_full"} 1`,
		`signalbox_http_requests_total{route="submit",status="201"} 1`,
		`signalbox_http_requests_total{route="",status="404"} 1`,
		`signalbox_task_wait_seconds_count{queue_kind="work"} 3`,
		`signalbox_task_run_seconds_count{queue_kind="work"} 1`,
		`signalbox_agents{state="up"} 1`,
		`signalbox_agents{state="idle"} 1`,
		`signalbox_store_info{kind="memory"} 1`,
		`signalbox_store_up 1`,
		`signalbox_queue_oldest_age_seconds `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %s", want)
		}
	}
	if strings.Contains(text, "passwd") {
		t.Error("a caller can make series")
	}
}

// A tool task waits for no agent: its times are separate.
func TestToolTaskTimesAreSeparate(t *testing.T) {
	e, _, a := newEngine(t)
	m := telemetry.NewMetrics(e)
	ctx := t.Context()
	executor, err := e.PutExecutor(ctx, signalbox.ExecutorCommands, signalbox.DefaultInstance, 2)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.Submit(ctx, engine.NewTask{Mode: signalbox.ModeTool, Tool: "report"}); err != nil {
			t.Fatal(err)
		}
	}
	running, err := e.Accept(ctx, claim(t, e, executor).Task, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Finish(ctx, running, engine.Outcome{Reason: signalbox.ReasonCompleted}); err != nil {
		t.Fatal(err)
	}
	claim(t, e, executor)
	submit(t, e, engine.NewTask{})
	claim(t, e, a)
	has(t, scrape(t, m),
		`signalbox_task_wait_seconds_count{queue_kind="work"} 1`, `signalbox_task_run_seconds_count{queue_kind="work"} 0`,
		`signalbox_tool_task_wait_seconds_count{queue="commands"} 2`, `signalbox_tool_task_run_seconds_count{queue="commands"} 1`,
		`signalbox_tool_task_wait_seconds_count{queue="calls"} 0`, `signalbox_tool_task_run_seconds_count{queue="calls"} 0`)
}

func claim(t *testing.T, e *engine.Engine, a signalbox.Agent) engine.Claimed {
	t.Helper()
	c, found, err := e.Claim(t.Context(), a, 0)
	if err != nil || !found {
		t.Fatalf("claim: found %v, %v", found, err)
	}
	return c
}

func TestQueueSeriesAreBounded(t *testing.T) {
	e, _, _ := newEngine(t)
	m := telemetry.NewMetrics(e)
	for i := range 300 {
		submit(t, e, engine.NewTask{Kind: fmt.Sprintf("kind-%d", i)})
	}
	submit(t, e, engine.NewTask{})
	text := scrape(t, m)
	if n := strings.Count(text, "\nsignalbox_queue_depth{"); n > 101 {
		t.Errorf("%d series of depth", n)
	}
	for _, want := range []string{`signalbox_queue_depth{queue="work"} 1`, `signalbox_queue_depth{queue="other"} 201`} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %s", want)
		}
	}
}

func TestScrapeOfDeadStoreReportsIt(t *testing.T) {
	e, s, _ := newEngine(t)
	m := telemetry.NewMetrics(e)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, m)
	if !strings.Contains(text, "signalbox_store_up 0") || strings.Contains(text, "signalbox_queue_depth{") {
		t.Error("figures of a store that does not answer")
	}
}

func BenchmarkObserve(b *testing.B) {
	sealer, _ := seal.New(bytes.Repeat([]byte{1}, seal.KeyBytes))
	e := engine.New(memory.New(memory.Options{}), engine.Options{Sealer: sealer, MaxSize: 1 << 30})
	telemetry.NewMetrics(e)
	start := time.Now()
	for b.Loop() {
		if _, err := e.Submit(context.Background(), engine.NewTask{Prompt: "p"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "submits/s")
}

// The slots of the director's own executor are counted, but not among agents'.
func TestToolTaskSlots(t *testing.T) {
	e, _, _ := newEngine(t)
	e.AddLive(executors{})
	got := scrape(t, telemetry.NewMetrics(e))
	for _, want := range []string{
		`signalbox_tool_task_slots{queue="commands"} 10`, `signalbox_tool_task_slots_in_use{queue="commands"} 3`, `signalbox_agents{state="up"} 1`, `signalbox_agents{state="idle"} 1`,
		`signalbox_agent_step_limit{agent="coder"} 3`, `signalbox_agent_step_calls_total{agent="coder",outcome="executed"} 7`,
		`signalbox_agent_step_calls_total{agent="coder",outcome="refused"} 2`, `signalbox_agent_step_queued_total{agent="coder"} 1`, `signalbox_agent_step_exempt_total{agent="coder"} 4`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in:\n%s", want, got)
		}
	}
}

type executors struct{}

func (executors) Agents() []engine.LiveAgent {
	return []engine.LiveAgent{{Agent: signalbox.Agent{Name: "commands@local", Slots: 10}, Up: true, InUse: 3}}
}
func (executors) LiveAgent(string) (engine.LiveAgent, bool) { return engine.LiveAgent{}, false }

func TestMetricsOfUsage(t *testing.T) {
	e, _, a := newEngine(t)
	m := telemetry.NewMetrics(e)
	for _, usd := range []float64{0.25, 0.5, 0} {
		submit(t, e, engine.NewTask{})
		c := claim(t, e, a)
		result := &signalbox.Result{CostUSD: usd}
		if usd > 0 {
			result.InputTokens, result.OutputTokens = 10, 2
		}
		if _, err := e.Finish(t.Context(), c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: result}); err != nil {
			t.Fatal(err)
		}
	}
	text := scrape(t, m)
	for _, want := range []string{
		`signalbox_usage_cost_usd_total{agent="coder"} 0.75`,
		`signalbox_usage_tokens_total{agent="coder",direction="input"} 20`,
		`signalbox_usage_tokens_total{agent="coder",direction="output"} 4`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}

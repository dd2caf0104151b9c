package agentd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// A run reports its usage while it runs, no later than its output, and ends when its budget is
// used up. The final report has the complete usage.
func TestARunReportsUsageAndEndsAtItsBudget(t *testing.T) {
	a := start(t, config(t, "demo"))
	acc := a.submit(api.AgentTask{Prompt: "spend 1 sleep 400ms", Budget: &api.Budget{USD: 0.3}})
	var out api.AgentOutput
	a.do("GET", "/task/"+acc.TaskID+"/output?wait=30s", nil, &out)
	if out.Text == "" || out.TokenUsage == nil || out.CostUSD < 0.25 && out.Final == nil {
		t.Errorf("with the first piece: %+v", out)
	}
	end := a.end(acc.TaskID)
	wantError(t, end, "failed", "budget", "spent $0.50 of its budget of $0.30 (55,000 tokens)")
	if end.CostUSD != 0.5 || end.TokenUsage == nil || *end.TokenUsage != (api.TokenUsage{Input: 50_000, Output: 5_000}) {
		t.Errorf("it has used %+v, $%v", end.TokenUsage, end.CostUSD)
	}
	if log := a.says(acc.TaskID, "step 2"); strings.Contains(log, "step 3") {
		t.Errorf("it went on: %s", log)
	}
	for name, b := range map[string]*api.Budget{"the last step uses it up": {USD: 1}, "no bound": {}, "enough": {USD: 2, Tokens: 1_000_000}} {
		if end := a.end(a.submit(api.AgentTask{Prompt: "spend 1 sleep 10ms", Budget: b}).TaskID); end.State != "completed" || end.CostUSD != 1 {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// The status of a running task has its usage. After kill -9 of the agent the final status has the
// usage until then.
func TestUsageSurvivesTheAgent(t *testing.T) {
	a, cmd := process(t, config(t, "demo"))
	acc := a.submit(api.AgentTask{Prompt: "spend 4 sleep 1h", Budget: &api.Budget{USD: 5}})
	b := a.submit(api.AgentTask{Prompt: "spend 4 sleep 4s", Isolated: true, Budget: &api.Budget{USD: 5}})
	testkit.Wait(t, "it reports a usage", func() bool { s := a.get(b.TaskID); return s.State == "working" && s.CostUSD > 0 && s.TokenUsage != nil })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	after := start(t, a.cfg)
	s := after.get(b.TaskID)
	wantError(t, s, "failed", "interrupted", "restarted")
	if s.CostUSD < 1 || s.TokenUsage == nil || s.TokenUsage.Input < 100_000 {
		t.Errorf("it has used $%v, %+v", s.CostUSD, s.TokenUsage)
	}
	if s := after.get(acc.TaskID); s.CostUSD != 0 || s.TokenUsage != nil {
		t.Errorf("a run without usage: %+v", s)
	}
}

func TestInvalidBudgets(t *testing.T) {
	a := start(t, config(t, "demo"))
	for _, b := range []string{`{"usd": -0.01}`, `{"tokens": -1}`, `{"usd": 1e300}`, `{"tokens": 9223372036854775807}`, `{"usd": 1e-12}`, `{"usd": "1"}`, `{"tokens": 0.5}`, `{"euro": 1}`, `[]`, `5`} {
		if ref := a.refused(json.RawMessage(`{"prompt": "x", "budget": `+b+`}`), 400, "validation_error"); !strings.Contains(ref.Message, "budget") && !strings.Contains(ref.Message, "body") {
			t.Errorf("%s: %s", b, ref.Message)
		}
	}
	for _, usd := range []float64{math.NaN(), math.Inf(1)} { // over the Go API
		if _, err := a.daemon.Accept(t.Context(), api.AgentTask{Prompt: "x", Budget: &api.Budget{USD: usd}}); err == nil {
			t.Errorf("a budget of %v is taken", usd)
		}
	}
	c := start(t, command(t, "echo", "x"))
	s := c.end(c.submit(api.AgentTask{Prompt: "x", Budget: &api.Budget{Tokens: 1}}).TaskID)
	if log := c.says(s.TaskID, "x"); s.State != "completed" || !strings.Contains(log, "its budget is not kept") {
		t.Errorf("%+v %q", s, log)
	}
}

// When the budget is used up, neither the model nor a tool is called again. The conversation can
// continue later.
func TestLLMEndsAtItsBudget(t *testing.T) {
	var used atomic.Int64
	s := newToolServer(t)
	s.tool("fs__read", func(context.Context, string) string { used.Add(1); return "read" })
	for _, vendor := range llmtest.Vendors {
		t.Run(string(vendor), func(t *testing.T) {
			used.Store(0)
			replies := make([]llmtest.Reply, 5)
			for i := range replies[:4] {
				replies[i] = llmtest.Reply{Text: fmt.Sprintf("Step %d.", i), Calls: calls(1)}
			}
			replies[3], replies[4] = llmtest.Reply{Text: "Well."}, llmtest.Reply{Text: "Well again."}
			m := llmtest.New(t, vendor, llmtest.Script(replies...))
			cfg := withTools(llmConfig(t, m), s)
			cfg.Runner.Prices = runner.Prices{"script*": {Input: 5e5, Output: 1e6}} // $12.50 per answer
			a := start(t, cfg)
			end := a.end(a.submit(api.AgentTask{Prompt: "read on", SessionID: "talk", Budget: &api.Budget{USD: 30}}).TaskID)
			wantError(t, end, "failed", "budget", "spent $37.50 of its budget of $30.00 (54 tokens)")
			if n := m.Last().Turn; n != 3 || used.Load() != 2 || end.CostUSD != 37.5 || end.TokenUsage.Input != 33 || end.TokenUsage.Output != 21 {
				t.Errorf("%d requests, %d tool calls, $%v, %+v", n, used.Load(), end.CostUSD, end.TokenUsage)
			}
			// The answer that uses up the budget would be the last one anyway.
			end = a.end(a.submit(api.AgentTask{Prompt: "go on", SessionID: "talk", Budget: &api.Budget{Tokens: 1}}).TaskID)
			if end.State != "completed" || end.Output != "Well." || end.CostUSD != 12.5 {
				t.Errorf("%+v %+v", end, end.Error)
			}
		})
	}
}

// If there is no price or the endpoint reports no usage, the run says that the budget is not
// enforced.
func TestLLMBudgetThatCannotBeEnforced(t *testing.T) {
	s := newToolServer(t)
	s.tool("fs__read", echo)
	m := llmtest.New(t, llmtest.OpenAI, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Raw: `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"fs__read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"}
	})
	a := start(t, withTools(llmConfig(t, m), s))
	if ref := a.refused(api.AgentTask{Prompt: "x", Budget: &api.Budget{USD: 1}}, 400, "validation_error"); !strings.Contains(ref.Message, "agent.prices") {
		t.Errorf("%s", ref.Message)
	}
	end := a.end(a.submit(api.AgentTask{Prompt: "x", Budget: &api.Budget{Tokens: 1_000_000}}).TaskID)
	wantError(t, end, "failed", "budget", "model scripted does not say how many tokens it used")
	if m.Last().Turn != 1 {
		t.Errorf("%d requests", m.Last().Turn)
	}
}

// A pulling agent gets budgets with its tasks, and reports usage together with output.
func TestPullReportsUsage(t *testing.T) {
	d := newDirector(t)
	cfg := config(t, "demo")
	cfg.Name, cfg.Pull = "far", true
	pulls(t, cfg, d.server.URL)
	one := task(1, "spend 1 sleep 800ms")
	one.Budget = &api.Budget{USD: 0.7}
	d.say <- api.PullAnswer{Task: one}
	d.hears("what it has used", func(r told) bool {
		return r.id == one.QueueID && r.Finished == nil && r.Output != nil && r.CostUSD >= 0.25 && r.TokenUsage != nil && r.TokenUsage.Input >= 25_000
	})
	wantError(t, d.finished(one.QueueID), "failed", "budget", "spent $0.75 of its budget of $0.70")
	two := task(2, "x")
	two.Budget = &api.Budget{Tokens: -1}
	d.say <- api.PullAnswer{Task: two}
	if got := d.hears("that it is refused", func(r told) bool { return r.id == two.QueueID && r.Refused != nil }); got.Refused.Status != 400 {
		t.Errorf("%+v", got.Refused)
	}
}

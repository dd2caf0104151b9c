package telemetry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// Each limited figure has a series; those of used-up budgets come first.
func TestMetricsOfBudgets(t *testing.T) {
	agents := map[string]signalbox.Budget{"coder": {NanoUSD: 2e9, Tokens: 1000}, "zoe": {Tokens: 5}}
	for n := range 120 {
		agents[fmt.Sprintf("a-%03d", n)] = signalbox.Budget{Tokens: 9}
	}
	e := engine.New(memory.New(memory.Options{}), engine.Options{Sealer: sealer(t), Budgets: signalbox.Budgets{Agents: agents}})
	for name, spent := range map[string]signalbox.Result{"coder": {CostUSD: 1.5, InputTokens: 100}, "zoe": {OutputTokens: 6}} {
		a, err := e.PutAgent(t.Context(), signalbox.Agent{Name: name, Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 1}, "")
		if err != nil {
			t.Fatal(err)
		}
		submit(t, e, engine.NewTask{Agent: name})
		c, found, err := e.Claim(t.Context(), a, 0)
		if err != nil || !found {
			t.Fatal(found, err)
		}
		if _, err := e.Finish(t.Context(), c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &spent}); err != nil {
			t.Fatal(err)
		}
	}
	text := scrape(t, telemetry.NewMetrics(e))
	has(t, text, `signalbox_budget_used_ratio{name="zoe",scope="agent",unit="tokens"} 1.2`, `signalbox_budget_used_ratio{name="a-000",scope="agent",unit="tokens"} 0`)
	if n := strings.Count(text, "\nsignalbox_budget_used_ratio{"); n != 100 {
		t.Errorf("%d series, want 100", n)
	}
}

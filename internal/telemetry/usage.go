package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox"
)

// maxUsageAgents bounds the agents with their own counters: later ones are counted together.
const maxUsageAgents = 1000

const otherAgents = "other"

// usage counts the usage of runs that ended at this director.
type usage struct {
	tokens, cost *prometheus.CounterVec

	mu     *sync.Mutex
	agents map[string]bool
}

func newUsage(reg prometheus.Registerer) usage {
	return usage{
		tokens: counters(reg, "signalbox_usage_tokens_total", "Tokens that runs reported, by agent and direction.", "agent", "direction"),
		cost:   counters(reg, "signalbox_usage_cost_usd_total", "Costs that runs reported, in US dollars, by agent.", "agent"),
		mu:     new(sync.Mutex), agents: map[string]bool{},
	}
}

func (u *usage) add(used *signalbox.Usage) {
	agent := u.label(used.Agent)
	u.tokens.WithLabelValues(agent, "input").Add(float64(used.InputTokens))
	u.tokens.WithLabelValues(agent, "output").Add(float64(used.OutputTokens))
	u.cost.WithLabelValues(agent).Add(used.USD())
}

func (u *usage) label(agent string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.agents[agent] && len(u.agents) >= maxUsageAgents {
		return otherAgents
	}
	u.agents[agent] = true
	return agent
}

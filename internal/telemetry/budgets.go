package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox/internal/budget"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// maxBudgets bounds the series of budgets, whose names come from callers: used-up budgets come first, then by
// scope and name.
const maxBudgets = 100

// budgetGauges reads the budgets when it is scraped.
type budgetGauges struct {
	engine *engine.Engine
	ratio  *prometheus.Desc
}

func newBudgetGauges(e *engine.Engine) *budgetGauges {
	return &budgetGauges{engine: e, ratio: prometheus.NewDesc("signalbox_budget_used_ratio",
		"How much of a budget of the day has been spent, 1 is all of it; of more than 100 budgets those that are used up, and the first by scope and name.",
		[]string{"scope", "name", "unit"}, nil)}
}

// Describe implements prometheus.Collector.
func (g *budgetGauges) Describe(c chan<- *prometheus.Desc) { c <- g.ratio }

// Collect implements prometheus.Collector.
func (g *budgetGauges) Collect(c chan<- prometheus.Metric) {
	rows := g.engine.Budgets().Rows(g.engine.Now())
	slices.SortStableFunc(rows, func(a, b budget.Row) int { return btoi(a.Gate == nil) - btoi(b.Gate == nil) })
	for _, r := range rows[:min(len(rows), maxBudgets)] {
		set := func(unit string, spent, of int64) {
			if of > 0 {
				c <- prometheus.MustNewConstMetric(g.ratio, prometheus.GaugeValue, float64(spent)/float64(of), string(r.Scope), r.Name.Name, unit)
			}
		}
		set("usd", r.Spent.NanoUSD, r.Budget.NanoUSD)
		set("tokens", r.Spent.Tokens(), r.Budget.Tokens)
	}
}

package execution

import (
	"context"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// ReportUsage records what a run has used so far, as its agent reports it. Mu is held.
func (b *Registry[A, R]) ReportUsage(r *Run, usage *api.TokenUsage, usd float64) {
	told := signalbox.Result{CostUSD: usd}
	if usage != nil {
		told.InputTokens, told.OutputTokens = usage.Input, usage.Output
	}
	more := told.Spent().Beyond(r.Spent)
	if more == (signalbox.Spent{}) {
		return
	}
	r.Spent = r.Spent.Plus(more)
	if b.overBudget(r) != "" {
		b.stopOver.Request()
	}
}

func (b *Registry[A, R]) overBudget(r *Run) string {
	return b.Engine.Budgets().Report(&r.Task, r.Spent, b.Engine.Now())
}

// stopOverBudget stops the runs whose budget is used up, by themselves or together with others.
func (b *Registry[A, R]) stopOverBudget(ctx context.Context) error {
	var due []StopOrder
	b.Mu.Lock()
	for _, f := range b.Runs {
		r := f.Execution()
		if over := b.overBudget(r); over != "" && r.Task.State == signalbox.Working {
			due = append(due, StopOrder{Task: r.Task, Reason: signalbox.ReasonBudget, Message: over})
		}
	}
	b.Mu.Unlock()
	for _, o := range InOrder(due) {
		Enforce(ctx, b.Engine, b.Log, o) // a postponed stop is due again at the next tick
	}
	return nil
}

// LostResult is the result of a run without a final report: its output and usage so far.
func (b *Registry[A, R]) LostResult(r *Run) *signalbox.Result {
	b.Mu.Lock()
	result := &signalbox.Result{InputTokens: r.Spent.InputTokens, OutputTokens: r.Spent.OutputTokens, CostUSD: r.Spent.USD()}
	b.Mu.Unlock()
	r.Tail.Result(result)
	result.Output = strings.TrimSpace(result.Tail)
	return result
}

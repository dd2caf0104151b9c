package push

import (
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// StepsOf is what an agent tells of its steps; nil where it tells of none.
// Figures that cannot be are 0.
func StepsOf(s *api.AgentSteps) *engine.Steps {
	if s == nil {
		return nil
	}
	calls := map[string]int64{
		"executed": s.Executed, "failed": s.Failed, "refused": s.Refused, "needs_approval": s.NeedsApproval, "aborted": s.Aborted,
	}
	for outcome, n := range calls {
		calls[outcome] = max(0, n)
	}
	return &engine.Steps{Limit: max(0, s.Limit), Calls: calls, Queued: max(0, s.Queued), Exempt: max(0, s.Exempt)}
}

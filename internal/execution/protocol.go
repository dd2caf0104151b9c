package execution

import (
	"cmp"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// What a director says to an agent and hears from it, whichever of the two makes
// the connection.

// Offer is a claimed task as its agent gets it from the director of that
// store. An isolated one has no conversation, and a slot number of those alone.
func Offer(c engine.Claimed, director string) api.AgentTask {
	t, q := &c.Task, &c.Request
	a := api.AgentTask{
		Prompt: q.Prompt, Model: q.Model, Tier: q.Tier, TimeoutSeconds: q.TimeoutSeconds, SessionID: t.SessionID,
		Env: c.Env, Thinking: q.Thinking, Source: string(t.Source), SourceJob: t.SourceJob,
		QueueID: t.ID, Fence: t.Fence, Slot: t.Slot, Director: director,
		EnvBy: string(cmp.Or(q.EnvBy, signalbox.EnvByAdmin)),
	}
	if q.Project != nil {
		a.Project = &api.Project{Name: q.Project.Name, Path: q.Project.Path}
	}
	if signalbox.Isolated(t.Slot) {
		a.Isolated, a.Slot, a.SessionID = true, t.Slot-signalbox.FirstIsolatedSlot, ""
		a.AllowedTools, a.SystemPrompt = q.AllowedTools, q.SystemPrompt
	}
	return a
}

// Ended reports whether a state of an agent is final. A state that is not
// known, such as the seed's queued, is not.
func Ended(state string) bool {
	return state == "completed" || state == "failed" || state == "cancelled" || state == "timeout"
}

// MaxAgentID bounds an agent's own id of a task, which is stored.
const MaxAgentID = 256

// maxText bounds what an agent says for people: it goes into rows and logs.
const maxText = 1000

// Sayable is an agent's text as it may be stored and logged.
func SanitizeText(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		if end := strings.LastIndexByte(s, ' '); end > maxText/2 { // not in mid-word
			s = s[:end]
		}
		s += "..."
	}
	return strings.ToValidUTF8(s, "")
}

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

// Traces says of which trace an execution is a part; *telemetry.Traces does.
type Traces interface {
	// Execution is told of an execution before its agent is, or, where adopted
	// says so, before it is followed in place of a director that is gone.
	// stored is the traceparent of its submit, "" for none. It returns the
	// traceparent for the agent, "" for none.
	Execution(t *signalbox.Task, stored string, adopted bool) (traceparent string)
}

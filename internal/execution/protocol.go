package execution

import (
	"cmp"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// The messages between director and agent, common to push and pull.

// Offer is a claimed task as its agent gets it from the director of that store. An isolated
// one has no session, and its slot is numbered among isolated slots.
func Offer(e *engine.Engine, c engine.Claimed, director string) api.AgentTask {
	t, q := &c.Task, &c.Request
	a := api.AgentTask{
		Prompt: q.Prompt, Model: q.Model, Tier: q.Tier, TimeoutSeconds: q.TimeoutSeconds, SessionID: t.SessionID,
		Env: c.Env, Thinking: q.Thinking, Source: string(t.Source), SourceJob: t.SourceJob,
		QueueID: t.ID, Fence: t.Fence, Slot: t.Slot, Director: director,
		EnvBy: string(cmp.Or(q.EnvBy, signalbox.EnvByAdmin)),
	}
	for _, c := range q.Checking.Checks {
		a.Checks = append(a.Checks, api.TaskCheck(c))
	}
	a.CheckRetries = q.Checking.Retries
	for _, h := range c.Holds {
		if !strings.Contains(h.Resource, ":") {
			a.Holds = append(a.Holds, api.AgentHold{Resource: h.Resource, N: h.N, Values: h.Values, Env: cmp.Or(e.Options().Resources[h.Resource].Env, signalbox.ResourceEnv(h.Resource))})
		}
	}
	if l := q.Land; l != nil {
		a.Land = &api.AgentLand{Task: l.Task, SessionID: l.SessionID, Onto: l.Onto, Method: l.Method, FastForward: l.FastForward, Title: l.Title}
	}
	if left := e.Budgets().Left(t, e.Now()); left != (signalbox.Budget{}) {
		a.Budget = &api.Budget{USD: left.USD(), Tokens: left.Tokens}
	}
	if p := t.Parking; p != nil && !signalbox.Isolated(t.Slot) {
		a.Resume = &api.AgentResume{Text: p.Next, Began: p.Began}
	}
	w := q.Workspace.Said()
	a.Workspace, a.Repo, a.Base = w.Kind, w.Repo, w.Base
	if q.Project != nil {
		a.Project = &api.Project{Name: q.Project.Name, Path: q.Project.Path}
	}
	if signalbox.Isolated(t.Slot) {
		a.Isolated, a.Slot, a.SessionID = true, t.Slot-signalbox.FirstIsolatedSlot, ""
		a.AllowedTools, a.SystemPrompt = q.AllowedTools, q.SystemPrompt
	}
	return a
}

// Ended reports whether a state reported by an agent is final. Unknown states, such as the
// seed's queued, are not.
func Ended(state string) bool {
	return state == "completed" || state == "failed" || state == "cancelled" || state == "timeout"
}

// MaxAgentID bounds an agent's own task id, in bytes, since it is stored.
const MaxAgentID = 256

// maxText bounds an agent's messages in rows and logs, in bytes.
const maxText = 1000

// SanitizeText returns an agent's text as it may be stored and logged: valid UTF-8, cut to
// maxText.
func SanitizeText(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		if end := strings.LastIndexByte(s, ' '); end > maxText/2 { // not within a word
			s = s[:end]
		}
		s += "..."
	}
	return strings.ToValidUTF8(s, "")
}

// StepsOf converts an agent's step statistics; nil if it reports none. Negative figures
// become 0.
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

// Traces provides the trace context of executions; *telemetry.Traces implements it.
type Traces interface {
	// Execution is called before an execution is offered or, with adopted, before it is
	// followed in place of another director. stored is the traceparent of its submit, ""
	// for none. It returns the traceparent for the agent, "" for none.
	Execution(t *signalbox.Task, stored string, adopted bool) (traceparent string)
}

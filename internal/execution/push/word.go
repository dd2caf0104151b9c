package push

import (
	"cmp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// What a director says to an agent and hears from it, whichever of the two
// makes the connection: package pull speaks as the dispatcher does.

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

// Outcome reads an agent's last word on a task. lost says that the execution
// did not end by itself: the agent was restarted, or a newer fence voided it.
func Outcome(s api.AgentTaskStatus) (o engine.Outcome, lost bool) { return outcome(s) }

// Ended reports whether a state of an agent is final.
func Ended(state string) bool { return ended(state) }

// Sayable is an agent's text as it may be stored and logged.
func Sayable(text string) string { return sayable(text) }

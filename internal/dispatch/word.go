package dispatch

import (
	"maps"
	"slices"
	"strings"

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

// maskFrom is the length from which an env value is a secret: shorter ones,
// such as 1 or true, stand in every text.
const maskFrom = 6

// Mask hides the values of a task's env in what an agent says for people,
// since that goes into rows, the journal and logs. Agents like to quote what
// they could not use. A value that another begins with comes after that one, of
// which it would leave the end.
func Mask(text string, env map[string]string) string {
	for _, value := range slices.SortedFunc(maps.Values(env), func(a, b string) int { return len(b) - len(a) }) {
		if len(value) >= maskFrom {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}

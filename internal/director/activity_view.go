package director

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// The types and states of the seed's activities.
const (
	typeChat          = "chat_start"
	typeTask          = "task_start"
	typeSchedule      = "schedule_start"
	typeCollaboration = "agent_collaboration"
	typeTool          = "tool_call"

	activityQueued    = "queued"
	activityStarted   = "started"
	activityCompleted = "completed"
	activityFailed    = "failed"
)

// activityView is a task in the words of the seed's activity stream.
func activityView(t *signalbox.Task) api.Activity {
	v := api.Activity{
		ID: t.ID, Type: activityType(t), State: activityState(t.State), AgentName: agentOf(t), ParentActivityID: t.ParentID,
		TriggeredBy: seedSource(t), RelatedExecutionID: t.ID, CreatedAt: t.CreatedAt, CompletedAt: timePtr(t.EndedAt),
		Details: api.ActivityDetails{
			ExecutionID: t.ID, QueueStatus: t.QueueStatus(), WasQueued: t.WasQueued(), Message: t.Preview,
			Tool: t.Tool, SessionID: t.SessionID, Job: t.SourceJob, Depth: t.Depth, Reason: string(t.Reason),
		},
	}
	v.UserID, _ = signalbox.OwnerUser(t.Owner)
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	if isTool(t) { // it is put in line, and nobody looks for a free slot first
		v.Details.QueueStatus = activityQueued
	}
	if t.State != signalbox.Pending {
		v.StartedAt = timePtr(t.StartedAt)
	}
	if v.StartedAt != nil && v.CompletedAt != nil {
		ms := max(0, t.EndedAt.Sub(t.StartedAt).Milliseconds()) // whatever the clocks did in between
		v.DurationMS = &ms
	}
	if v.State == activityFailed {
		v.Error = t.Message
	}
	return v
}

// activityType says what kind of activity a task is. What an agent asks of
// another is a collaboration, also when it asks by a chat; what it asks of a
// tool is a call of the tool, and what a schedule asks is a schedule's.
func activityType(t *signalbox.Task) string {
	_, byAgent := signalbox.OwnerAgent(t.Owner)
	switch {
	case isTool(t):
		return typeTool
	case t.Source == signalbox.SourceScheduler && t.Mode == signalbox.ModeQueue: // also that of an agent's schedule: no agent says so of its own calls
		return typeSchedule
	case byAgent:
		return typeCollaboration
	case t.Mode == signalbox.ModeChat:
		return typeChat
	}
	return typeTask
}

func activityState(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching:
		return activityQueued
	case signalbox.Working, signalbox.Cancelling:
		return activityStarted
	case signalbox.Completed:
		return activityCompleted
	}
	return activityFailed
}

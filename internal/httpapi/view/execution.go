package view

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

func Executions(tasks []signalbox.Task) []api.Execution {
	views := make([]api.Execution, len(tasks))
	for i := range tasks {
		views[i] = Execution(&tasks[i])
	}
	return views
}

// Execution is a task in the terms of the seed execution-queue.
func Execution(t *signalbox.Task) api.Execution {
	v := api.Execution{
		ID: t.ID, AgentName: AgentOf(t), Source: SeedSource(t), SourceUserEmail: t.OwnerEmail, Message: t.Preview,
		QueuedAt: t.CreatedAt, Status: SeedStatus(t.State),
	}
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	v.SourceUserID, _ = signalbox.OwnerUser(t.Owner)
	if !t.State.Waiting() { // a waiting row may still have fields of a failed execution
		v.StartedAt = Time(t.StartedAt)
	}
	return v
}

// AgentOf is the agent that runs or ran a task, or else the only one that may; "" if it is
// not known yet.
func AgentOf(t *signalbox.Task) string {
	if t.Mode == signalbox.ModeTool {
		return "" // the director's own executor is not an agent
	}
	if !t.State.Waiting() && t.Agent != "" {
		return t.Agent
	}
	name, _ := signalbox.OnlyAgent(t.Queue)
	return name
}

// SeedSource is the seed's term for the source of a task.
func SeedSource(t *signalbox.Task) string {
	if t.Source == signalbox.SourceScheduler { // also for the schedule of an agent
		return "schedule"
	}
	if _, ok := signalbox.OwnerAgent(t.Owner); ok || t.Source == signalbox.SourceAgent {
		return "agent"
	}
	return "user"
}

// SeedStatus is the seed's term for a state (design §2).
func SeedStatus(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching, signalbox.Parked:
		return "queued"
	case signalbox.Working, signalbox.Cancelling:
		return "running"
	}
	return string(s)
}

// Limits of the Retry-After of a full queue, in seconds. The seed's value is 30.
const (
	DefaultRetryAfter = 30
	maxRetryAfter     = 300
)

// RetryAfter estimates in seconds when the first waiting task of a queue starts, which
// makes room. It returns the seed's 30 if there is no estimate.
func RetryAfter(ctx context.Context, e *engine.Engine, queue string) int {
	eta := e.ETA(ctx, &signalbox.Task{State: signalbox.Pending, Queue: queue}, store.Position{N: 1})
	if eta == nil {
		return DefaultRetryAfter
	}
	return min(max(1, int(eta.High/time.Second)), maxRetryAfter)
}

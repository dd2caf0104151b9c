package httpapi

import (
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// taskView is a task as lists show it.
func taskView(t *signalbox.Task) api.Task {
	v := api.Task{
		QueueID: t.ID, State: string(t.State), Reason: string(t.Reason), Message: t.Message, Queue: t.Queue,
		CreatedAt: t.CreatedAt, EndedAt: timePtr(t.EndedAt), NotBefore: timePtr(t.NotBefore),
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, LastError: t.LastError,
		Source: string(t.Source), SourceJob: t.SourceJob, Priority: t.Priority, OnLost: string(t.OnLost),
		SessionID: t.SessionID, RetryOf: t.RetryOf, CancelRequested: t.CancelRequested, PromptPreview: t.Preview,
		Mode: modeView(t.Mode), Tool: t.Tool, SourceUserEmail: t.OwnerEmail, ParentID: t.ParentID, Depth: t.Depth,
	}
	v.SourceUserID, _ = signalbox.OwnerUser(t.Owner)
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	if name, ok := strings.CutPrefix(t.Owner, string(signalbox.PrincipalService)+":"); ok {
		v.SourceService = name
	}
	if t.State == signalbox.Pending {
		return v // what the row keeps of its last claim would look as if an agent had it
	}
	v.Agent, v.AgentURL, v.TaskID, v.Fence = t.Agent, t.AgentURL, t.TaskID, t.Fence
	v.DispatchedAt, v.StartedAt = timePtr(t.DispatchedAt), timePtr(t.StartedAt)
	return v
}

func modeView(m signalbox.Mode) string {
	if m == signalbox.ModeQueue {
		return "queue"
	}
	return string(m)
}

// staleViews are the words of executions that had lost their slot.
func staleViews(stales []signalbox.Stale) []api.StaleResult {
	views := make([]api.StaleResult, len(stales))
	for i := range stales {
		s := &stales[i]
		views[i] = api.StaleResult{Fence: s.Fence, Agent: s.Agent, TaskID: s.TaskID, At: s.At, State: s.State, Message: s.Message, Result: plainResult(&s.Result)}
	}
	return views
}

// addRequest adds what lists leave out.
func addRequest(v *api.Task, r *signalbox.Request) {
	v.Prompt, v.Model, v.Tier, v.TimeoutSeconds, v.Thinking = r.Prompt, r.Model, r.Tier, r.TimeoutSeconds, r.Thinking
	v.Arguments, v.Metadata, v.TimeoutMS = r.Arguments, r.Metadata, r.TimeoutMS
	v.Project = (*api.Project)(r.Project)
}

// resultView is nil for a task that never ran.
func resultView(t *signalbox.Task, r *signalbox.Result) *api.Result {
	if t.StartedAt.IsZero() && r.Output == "" && r.Tail == "" && r.ErrorType == "" {
		return nil
	}
	v := plainResult(r)
	if v.DurationSeconds == 0 && !t.StartedAt.IsZero() {
		v.DurationSeconds = max(0, t.EndedAt.Sub(t.StartedAt).Seconds())
	}
	return &v
}

func plainResult(r *signalbox.Result) api.Result {
	v := api.Result{
		Output: r.Output, Tail: r.Tail, Truncated: r.Truncated, ExitCode: r.ExitCode, CostUSD: r.CostUSD, ToolCount: r.ToolCount,
		DurationSeconds: max(0, r.DurationSeconds), ErrorType: r.ErrorType,
	}
	if r.InputTokens != 0 || r.OutputTokens != 0 {
		v.TokenUsage = &api.TokenUsage{Input: r.InputTokens, Output: r.OutputTokens}
	}
	return v
}

func etaView(e *engine.ETA) *api.ETA {
	if e == nil {
		return nil
	}
	return &api.ETA{LowSeconds: e.Low.Seconds(), HighSeconds: e.High.Seconds(), Runs: e.Runs}
}

func pauseViews(pauses []signalbox.Pause) []api.Pause {
	views := make([]api.Pause, len(pauses))
	for i, p := range pauses {
		views[i] = api.Pause{Queue: p.Queue, Reason: p.Reason, By: p.By, Since: time.UnixMilli(p.AtMS).UTC()}
		if p.UntilMS != 0 {
			views[i].Until = timePtr(time.UnixMilli(p.UntilMS).UTC())
		}
	}
	return views
}

// queueStatus is the seed's block of figures, all from one snapshot. A task that
// is being sent or cancelled has its agent: depth and dispatched_count together
// are all that has not ended.
func queueStatus(c store.Counts, maxSize int, now time.Time) api.QueueStatus {
	q := api.QueueStatus{
		Depth: c.Pending - waitingTools(c), MaxSize: maxSize,
		DispatchedCount: c.InFlight[signalbox.Dispatching] + c.InFlight[signalbox.Working] + c.InFlight[signalbox.Cancelling],
	}
	if !c.Oldest.IsZero() {
		q.OldestAgeSeconds = max(0, int64(now.Sub(c.Oldest).Seconds()))
	}
	return q
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

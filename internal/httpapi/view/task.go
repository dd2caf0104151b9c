package view

import (
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/resources"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Task is the API form of a task for lists.
func Task(t *signalbox.Task) api.Task {
	v := api.Task{
		QueueID: t.ID, State: string(t.State), Reason: string(t.Reason), Message: t.Message, FailureLine: t.Failure, Cause: t.Cause, Queue: t.Queue,
		CreatedAt: t.CreatedAt, EndedAt: Time(t.EndedAt), NotBefore: Time(t.NotBefore), EditedAt: Time(t.EditedAt), EditedBy: t.EditedBy,
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, LastError: t.LastError,
		Source: string(t.Source), SourceJob: t.SourceJob, Priority: t.Priority, OnLost: string(t.OnLost),
		SessionID: t.SessionID, RetryOf: t.RetryOf, CancelRequested: t.CancelRequested, PromptPreview: t.Preview,
		Mode: mode(t.Mode), Tool: t.Tool, SourceUserEmail: t.OwnerEmail, ParentID: t.ParentID, Depth: t.Depth,
		TokenUsage: tokens(t.Spent.InputTokens, t.Spent.OutputTokens), CostUSD: t.Spent.USD(), Budget: Budget(t.Budget), Needs: resources.Units(t.Needs),
	}
	v.Landing = Landing(t, 0)
	v.SourceUserID, _ = signalbox.OwnerUser(t.Owner)
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	if name, ok := strings.CutPrefix(t.Owner, string(signalbox.PrincipalService)+":"); ok {
		v.SourceService = name
	}
	v.WaitingFor = parkedAt(t)
	if t.Parking != nil {
		v.Parks = t.Parking.Count
	}
	if t.State.Waiting() {
		return v // a waiting row may still have fields of its last claim
	}
	v.Agent, v.AgentURL, v.TaskID, v.Fence = t.Agent, t.AgentURL, t.TaskID, t.Fence
	v.DispatchedAt, v.StartedAt = Time(t.DispatchedAt), Time(t.StartedAt)
	return v
}

func mode(m signalbox.Mode) string {
	if m == signalbox.ModeQueue {
		return "queue"
	}
	return string(m)
}

// Course adds the history of a task: its requeues and tool calls.
func Course(v *api.Task, t *signalbox.Task, calls []signalbox.ToolCall) {
	v.QueuedAs = t.QueuedAs
	if t.Requeues != nil {
		for _, r := range *t.Requeues {
			v.Requeues = append(v.Requeues, api.Requeue{Event: string(r.Kind), Agent: r.Agent, ClaimedAt: Time(r.ClaimedAt), At: r.At, Message: r.Message})
		}
	}
	for _, c := range calls {
		v.Calls = append(v.Calls, api.RunCall{
			Tool: c.Tool, Queue: c.Queue, Outcome: c.Outcome, At: c.At, WaitedSeconds: c.Waited.Seconds(), TookSeconds: c.Took.Seconds(),
		})
	}
}

// Stale is the API form of reports of executions that had lost their slot.
func Stale(stales []signalbox.Stale) []api.StaleResult {
	views := make([]api.StaleResult, len(stales))
	for i := range stales {
		s := &stales[i]
		views[i] = api.StaleResult{Fence: s.Fence, Agent: s.Agent, TaskID: s.TaskID, At: s.At, State: s.State, Message: s.Message, Result: plainResult(&s.Result)}
	}
	return views
}

// AddRequest adds the fields of the request, which lists leave out.
func AddRequest(v *api.Task, r *signalbox.Request) {
	v.Prompt, v.Model, v.Tier, v.TimeoutSeconds, v.Thinking = r.Prompt, r.Model, r.Tier, r.TimeoutSeconds, r.Thinking
	v.Arguments, v.Metadata, v.TimeoutMS = r.Arguments, r.Metadata, r.TimeoutMS
	v.Project = (*api.Project)(r.Project)
	v.Checks, v.CheckRetries = Checks(r.Checking.Checks), r.Checking.Retries
	w := r.Workspace.Said()
	v.Workspace, v.Repo, v.Base = w.Kind, w.Repo, w.Base
}

// Result is the API form of a task's result; nil if the task never ran.
func Result(t *signalbox.Task, r *signalbox.Result) *api.Result {
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
	v.TokenUsage, v.Model = tokens(r.InputTokens, r.OutputTokens), r.Model
	if r.Changes != nil {
		c := Changes(r.Changes)
		c.Files, c.Patch = c.Files[:min(len(c.Files), shownFiles)], ""
		v.Changes = &c
	}
	if c := r.Checked; c != nil {
		v.Checks = &api.AgentChecks{State: string(c.State), Rounds: c.Rounds, Message: c.Message}
		for _, one := range c.Results {
			v.Checks.Results = append(v.Checks.Results, api.CheckResult{
				Name: one.Name, State: string(one.State), ExitCode: one.ExitCode, Seconds: one.Seconds, Output: one.Output,
			})
		}
	}
	return v
}

// shownFiles is how many changed files a task shows; its diff has them all.
const shownFiles = 100

// Changes is the API form of a run's changes.
func Changes(c *signalbox.Changes) api.Changes {
	v := api.Changes{
		Workspace: c.Workspace, Dir: c.Dir, Branch: c.Branch, BaseBranch: c.BaseBranch, Base: c.Base, Head: c.Head, Commits: c.Commits, Uncommitted: c.Uncommitted,
		FilesChanged: c.FilesChanged, Insertions: c.Insertions, Deletions: c.Deletions, Patch: c.Patch, PatchBytes: c.PatchBytes,
	}
	for _, f := range c.Files {
		v.Files = append(v.Files, api.ChangedFile{
			Path: f.Path, From: f.From, Status: string(f.Status), Insertions: f.Insertions, Deletions: f.Deletions, Binary: f.Binary,
		})
	}
	return v
}

// ETA is the API form of an estimate; nil if there is none.
func ETA(e *engine.ETA) *api.ETA {
	if e == nil {
		return nil
	}
	return &api.ETA{LowSeconds: e.Low.Seconds(), HighSeconds: e.High.Seconds(), Runs: e.Runs}
}

// Pauses is the API form of pauses.
func Pauses(pauses []signalbox.Pause) []api.Pause {
	views := make([]api.Pause, len(pauses))
	for i, p := range pauses {
		views[i] = api.Pause{Queue: p.Queue, Reason: p.Reason, By: p.By, Since: time.UnixMilli(p.AtMS).UTC()}
		if p.UntilMS != 0 {
			views[i].Until = Time(time.UnixMilli(p.UntilMS).UTC())
		}
	}
	return views
}

// QueueStatus is the seed's block of counts, all from one snapshot. Tasks that are being
// sent or cancelled count as dispatched, so depth and dispatched_count together are all
// tasks that have not ended.
func QueueStatus(c store.Counts, maxSize int, now time.Time) api.QueueStatus {
	q := api.QueueStatus{
		Depth: c.Pending - c.WaitingCalls(), MaxSize: maxSize,
		DispatchedCount: c.InFlight[signalbox.Dispatching] + c.InFlight[signalbox.Working] + c.InFlight[signalbox.Cancelling],
	}
	if !c.Oldest.IsZero() {
		q.OldestAgeSeconds = max(0, int64(now.Sub(c.Oldest).Seconds()))
	}
	return q
}

// Time is nil for the zero time, so that JSON omits it.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// LiveTask is the API form of a task as a row of a list.
func LiveTask(t *signalbox.Task) api.LiveTask {
	v := api.LiveTask{
		QueueID: t.ID, State: string(t.State), Reason: string(t.Reason), Message: t.Message, FailureLine: t.Failure, Cause: t.Cause, Queue: t.Queue,
		Mode: mode(t.Mode), Tool: t.Tool, PromptPreview: t.Preview, Source: string(t.Source), SourceJob: t.SourceJob, RetryOf: t.RetryOf,
		By: askedBy(t), Attempts: t.Attempts, CreatedAt: t.CreatedAt, EndedAt: Time(t.EndedAt),
		CostUSD: t.Spent.USD(), Tokens: t.Spent.InputTokens + t.Spent.OutputTokens,
	}
	if !t.State.Waiting() { // a waiting row may still have fields of its last claim
		v.Agent, v.Slot, v.Fence, v.StartedAt = t.Agent, t.Slot, t.Fence, Time(t.StartedAt)
		if signalbox.Isolated(t.Slot) {
			v.Slot -= signalbox.FirstIsolatedSlot
		}
	}
	return v
}

// askedBy is the submitter of a task, for display.
func askedBy(t *signalbox.Task) string {
	if t.OwnerEmail != "" {
		return t.OwnerEmail
	}
	kind, id, _ := strings.Cut(t.Owner, ":")
	return strings.TrimSpace(kind + " " + id)
}

// VisiblePauses omits the queues of agents that the caller may not use.
func VisiblePauses(pauses []signalbox.Pause, who signalbox.Principal) []signalbox.Pause {
	return slices.DeleteFunc(slices.Clone(pauses), func(p signalbox.Pause) bool {
		name, ok := signalbox.OnlyAgent(p.Queue)
		return ok && !who.MayUse(name)
	})
}

// TaskURL is the path of a task.
func TaskURL(id string) string { return "/api/queue/" + id }

// Checks is the API form of checks.
func Checks(list []signalbox.Check) (out []api.TaskCheck) {
	for _, c := range list {
		out = append(out, api.TaskCheck(c))
	}
	return out
}

// Checking converts checks from the API. It does not validate them.
func Checking(list []api.TaskCheck, retries *int) signalbox.Checking {
	c := signalbox.Checking{Retries: retries}
	for _, one := range list {
		c.Checks = append(c.Checks, signalbox.Check(one))
	}
	return c
}

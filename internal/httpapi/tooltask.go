package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// ToolTasks runs tool calls as tasks; *local.Executor implements it.
type ToolTasks interface {
	gateway.Tasks
	// Output is Runs.Output for the tasks that run in the director itself.
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
}

// toolTaskHandlers are about tool tasks.
type toolTaskHandlers struct {
	tools      *toolHandlers
	engine     *engine.Engine
	audit      *access.AuditLog
	metrics    Metrics
	life       context.Context
	cancelWait time.Duration
}

// createToolTask is POST /api/tools/{tool}/tasks.
func (h *toolTaskHandlers) createToolTask(w http.ResponseWriter, r *http.Request) error {
	tasks, err := h.tools.toolTasksOr(signalbox.CodeUnsupported)
	if err != nil {
		return err
	}
	var req api.NewToolTask
	if err := httpio.DecodeCall(w, r, &req); err != nil {
		return refused(h.metrics, err)
	}
	call, err := h.taskCall(r, req)
	if err != nil {
		return refused(h.metrics, err)
	}
	t, err := tasks.Submit(gateway.WithTrace(r.Context(), r.Header), call)
	if err != nil {
		return h.toolTaskError(r, err)
	}
	if t.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	v, err := h.toolTaskView(r.Context(), &t)
	if err != nil {
		return err
	}
	w.Header().Set("Location", toolTaskPath+t.Task.ID)
	return httpio.Answer(w, http.StatusCreated, v)
}

const toolTaskPath = "/api/tools/tasks/"

// taskCall makes a call from a request.
func (h *toolTaskHandlers) taskCall(r *http.Request, req api.NewToolTask) (gateway.TaskCall, error) {
	if req.TimeoutMS < 0 || req.TimeoutMS > engine.MaxToolTimeoutMS {
		return gateway.TaskCall{}, signalbox.Invalid("timeout_ms", "timeout_ms must be 1 to %d, or 0 for the tool's own, not %d", engine.MaxToolTimeoutMS, req.TimeoutMS)
	}
	if req.Priority < signalbox.MinPriority || req.Priority > signalbox.MaxPriority {
		return gateway.TaskCall{}, signalbox.Invalid("priority", "priority must be %d to %d, not %d", signalbox.MinPriority, signalbox.MaxPriority, req.Priority)
	}
	key, err := httpio.IdempotencyKey(r)
	if err != nil {
		return gateway.TaskCall{}, err
	}
	who, err := h.tools.toolCaller(r, "")
	if err != nil {
		return gateway.TaskCall{}, err
	}
	return gateway.TaskCall{
		Call: gateway.Call{
			Tool: r.PathValue("tool"), Arguments: req.Arguments, Meta: req.Metadata, Caller: who,
			Limit: time.Duration(req.TimeoutMS) * time.Millisecond,
		},
		Source: signalbox.SourceAPI, IdempotencyKey: key, Priority: req.Priority,
	}, nil
}

// toolTaskError converts the error of a task that was not stored for its caller.
func (h *toolTaskHandlers) toolTaskError(r *http.Request, err error) error {
	_ = refused(h.metrics, err)
	if full, ok := errors.AsType[*signalbox.Error](err); ok && full.Code == signalbox.CodeQueueFull {
		copied := *full
		return &httpio.Refusal{
			Err: &copied, RetryAfter: view.RetryAfter(r.Context(), h.engine, signalbox.QueueCommands),
			Hint: "try again later, or cancel what is no longer needed: signalbox tools tasks lists it",
		}
	}
	return h.tools.toolError(r, err)
}

// toolTask is GET /api/tools/tasks/{id}.
func (h *toolTaskHandlers) toolTask(w http.ResponseWriter, r *http.Request) error {
	v, err := h.waitedToolTask(r, r.PathValue("id"))
	return httpio.AnswerOr(w, v, err)
}

// getTaskStatus is GET /getTaskStatus (seed async-task-queue).
func (h *toolTaskHandlers) getTaskStatus(w http.ResponseWriter, r *http.Request) error {
	id := httpio.Param(r, "taskId")
	if id == "" {
		return &httpio.Refusal{Err: signalbox.Invalid("taskId", "Missing taskId"), Hint: "GET /getTaskStatus?taskId=ID"}
	}
	id, err := access.ImportedID(r.Context(), h.engine, id)
	if err != nil {
		return err
	}
	v, err := h.waitedToolTask(r, id)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.TaskStatus{Task: v})
}

// waitedToolTask reads a task that the caller may see, after it has ended or the requested
// wait is over.
func (h *toolTaskHandlers) waitedToolTask(r *http.Request, id string) (api.ToolTask, error) {
	wait, err := httpio.Wait(r)
	if err != nil {
		return api.ToolTask{}, err
	}
	t, err := h.seenToolTask(r, id)
	if err != nil {
		return api.ToolTask{}, err
	}
	if wait > 0 && !t.Task.State.Terminal() {
		ctx, cancel := httpio.Until(r.Context(), h.life)
		defer cancel()
		if t, err = h.tools.tasks.Wait(ctx, id, wait); err != nil {
			return api.ToolTask{}, err
		}
	}
	return h.toolTaskView(r.Context(), &t)
}

// seenToolTask returns a tool task. It returns the same CodeNotFound for an unknown task, a
// task that is not a tool task, and one that the caller may not see.
func (h *toolTaskHandlers) seenToolTask(r *http.Request, id string) (gateway.ToolTask, error) {
	tasks, err := h.tools.toolTasksOr(signalbox.CodeNotFound)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	none := httpio.Refuse(signalbox.CodeNotFound, "GET /api/tools/tasks lists the tool tasks", "there is no tool task %q: it never existed or has been pruned", httpio.Clip(id))
	if !signalbox.ValidID(id) {
		return gateway.ToolTask{}, none
	}
	t, err := tasks.Task(r.Context(), id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || err == nil && !seesToolTask(access.CallerOf(r).Who, &t.Task) {
		return gateway.ToolTask{}, none
	}
	return t, err
}

// seesToolTask reports whether a principal may see a tool task: its own tasks, and with the
// scope read all tasks that it may see in the queue. The scope tool alone does not show
// other callers' tasks.
func seesToolTask(who signalbox.Principal, t *signalbox.Task) bool {
	if key := who.Key(); key != "" && key == t.Owner {
		return true
	}
	return who.Has(signalbox.ScopeRead) && who.SeesTask(t)
}

// cancelToolTask is POST /api/tools/tasks/{id}/cancel.
func (h *toolTaskHandlers) cancelToolTask(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	t, err := h.seenToolTask(r, id)
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	own := who.Key() == t.Task.Owner
	if !own && !who.Has(signalbox.ScopeCancel) {
		return httpio.Refuse(signalbox.CodeForbidden, "use a token that has it, or that of the call's owner",
			"to cancel the call of another owner needs the scope %s, and %s has %s", signalbox.ScopeCancel, who.String(), access.ScopeWords(who.Scopes))
	}
	if t, err = h.tools.tasks.Cancel(r.Context(), id, who.String()); err != nil {
		return err
	}
	if !own {
		if err := h.audit.Write(r, signalbox.Audit{
			EventType: "task", Action: "cancel", AgentName: view.AgentOf(&t.Task), Resource: id, Details: signalbox.AuditDetails(map[string]any{"owner": t.Task.Owner, "tool": t.Task.Tool}),
		}); err != nil {
			return err
		}
	}
	if !t.Task.State.Terminal() {
		ctx, stop := httpio.Until(r.Context(), h.life)
		defer stop()
		if t, err = h.tools.tasks.Wait(ctx, id, h.cancelWait); err != nil {
			return err
		}
	}
	v, err := h.toolTaskView(r.Context(), &t)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !t.Task.State.Terminal() {
		status = http.StatusAccepted
		v.Message = stillStopping
	}
	return httpio.Answer(w, status, v)
}

// seedStatuses are the statuses of the seed async-task-queue, and cancelled.
var seedStatuses = []string{"pending", "running", "completed", "failed", "cancelled"}

// toolTasks is GET /api/tools/tasks.
func (h *toolTaskHandlers) toolTasks(w http.ResponseWriter, r *http.Request) error {
	tasks, err := h.tools.toolTasksOr(signalbox.CodeNotFound)
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	q := gateway.TaskQuery{
		Tool: httpio.Param(r, "tool"), Status: httpio.Param(r, "status"), Before: httpio.Param(r, "before"),
		Sees: func(t *signalbox.Task) bool { return seesToolTask(who, t) },
	}
	if q.Status != "" && !slices.Contains(seedStatuses, q.Status) {
		return signalbox.Invalid("status", "status must be one of %s, not %q", strings.Join(seedStatuses, ", "), httpio.Clip(q.Status))
	}
	if q.Limit, err = httpio.Limit(r); err != nil {
		return err
	}
	page, err := tasks.List(r.Context(), q)
	if err != nil {
		return err
	}
	out := api.ToolTasks{Tasks: make([]api.ToolTask, len(page.Tasks)), Next: page.Next}
	for i := range page.Tasks {
		out.Tasks[i] = plainToolTask(&page.Tasks[i])
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// retryTool repeats the call of an ended tool task. It goes through the gateway like a new
// call, because the tool may have changed.
func (h *toolTaskHandlers) retryTool(w http.ResponseWriter, r *http.Request, t *signalbox.Task, edit api.RetryRequest) error {
	call, err := h.callAgain(r, t, edit)
	if err != nil {
		return refused(h.metrics, err)
	}
	tasks, err := h.tools.toolTasksOr(signalbox.CodeUnsupported)
	if err != nil {
		return refused(h.metrics, err)
	}
	got, err := tasks.Submit(gateway.WithTrace(r.Context(), r.Header), call)
	if err != nil {
		return h.toolTaskError(r, err)
	}
	if got.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	return httpio.Answer(w, http.StatusCreated, api.SubmitResponse{
		QueueID: got.Task.ID, Position: got.Position, State: string(got.Task.State), Queue: got.Task.Queue,
		Message: got.Wait, Replayed: got.Replayed, RetryOf: t.ID,
	})
}

// callAgain returns the call of a task, with the edits of a retry, if the caller may make it.
func (h *toolTaskHandlers) callAgain(r *http.Request, t *signalbox.Task, edit api.RetryRequest) (call gateway.TaskCall, err error) {
	if who := access.CallerOf(r).Who; !who.Has(signalbox.ScopeTool) {
		return call, httpio.Refuse(signalbox.CodeForbidden, "use a token that has it", "task %s is a tool call: to repeat it needs the scope %s, and %s has %s",
			t.ID, signalbox.ScopeTool, who.String(), access.ScopeWords(who.Scopes))
	}
	if who := access.CallerOf(r).Who; !seesToolTask(who, t) { // a retry reveals the arguments and the answer
		return call, httpio.Refuse(signalbox.CodeForbidden, "use a token that has it, or that of the call's owner",
			"to repeat the call of another owner needs the scope %s, and %s has %s", signalbox.ScopeRead, who.String(), access.ScopeWords(who.Scopes))
	}
	if !t.State.Terminal() {
		return call, signalbox.Errorf(signalbox.CodeConflict, "task %s is %s: it can be retried when it has ended; cancel it first", t.ID, t.State)
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"prompt", edit.Prompt != ""}, {"model", edit.Model != ""}, {"env", edit.Env != nil}, {"agent", edit.Agent != nil}, {"kind", edit.Kind != nil}} {
		if f.given {
			return call, httpio.Refuse(signalbox.CodeValidation, "call it with other arguments: POST /api/tools/{tool}/tasks", "task %s is a call of the tool %s, which has no %s", t.ID, t.Tool, f.name)
		}
	}
	req, err := h.engine.Read().Request(r.Context(), t.ID)
	if err != nil {
		return call, err
	}
	if req.HadEnv {
		return call, httpio.Refuse(signalbox.CodeValidation, "call the tool with all its arguments: POST /api/tools/{tool}/tasks, or signalbox tools call --task",
			"the secret arguments of task %s were erased when it ended: it cannot be repeated", t.ID)
	}
	again := api.NewToolTask{Arguments: req.Arguments, Metadata: req.Metadata, TimeoutMS: req.TimeoutMS, Priority: t.Priority}
	if edit.TimeoutSeconds < 0 || edit.TimeoutSeconds > signalbox.MaxTimeoutSeconds {
		return call, signalbox.Invalid("timeout_seconds", "timeout_seconds must be 0 to %d, not %d", signalbox.MaxTimeoutSeconds, edit.TimeoutSeconds)
	}
	if edit.TimeoutSeconds > 0 {
		again.TimeoutMS = (time.Duration(edit.TimeoutSeconds) * time.Second).Milliseconds()
	}
	if call, err = h.taskCall(r, again); err != nil {
		return call, err
	}
	call.Tool, call.RetryOf = t.Tool, t.ID
	return call, nil
}

// plainToolTask is the form of a tool task in lists: the seed's keys, and additional ones.
func plainToolTask(t *gateway.ToolTask) api.ToolTask {
	row := &t.Task
	v := api.ToolTask{
		ID: row.ID, ToolName: row.Tool, Status: gateway.SeedStatus(row.State), CreatedAt: row.CreatedAt, UpdatedAt: t.UpdatedAt(),
		State: string(row.State), Reason: string(row.Reason), Message: row.Message, Owner: row.Owner,
	}
	switch {
	case !row.State.Terminal():
		v.Message, v.Position, v.PollIntervalMS = t.Wait, t.Position, t.Poll.Milliseconds()
	case v.Status == "failed":
		why := row.Message
		v.Error = &why
	case v.Status == "completed" && t.Result != nil:
		result := view.ToolResult(*t.Result)
		v.Result = &result
	}
	return v
}

// toolTaskView is a tool task with the fields that lists leave out.
func (h *toolTaskHandlers) toolTaskView(ctx context.Context, t *gateway.ToolTask) (api.ToolTask, error) {
	v := plainToolTask(t)
	got, err := h.engine.Read().Whole(ctx, v.ID)
	if err != nil {
		return v, err
	}
	v.TimeoutMS = got.Request.TimeoutMS
	if !t.Task.State.Terminal() {
		return v, nil
	}
	res := &got.Result
	v.ExitCode, v.Tail, v.TailSeq, v.Truncated = res.ExitCode, res.Tail, res.TailSeq, v.Result.Truncated()
	return v, nil
}

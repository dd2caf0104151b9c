package director

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
)

// ToolTasks makes tool calls into tasks; *local.Executor does.
type ToolTasks interface {
	gateway.Tasks
	// Output is Runs.Output for the tasks that run in the director itself.
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
}

// toolTasksOr returns who makes tool calls into tasks, or why nobody does.
func (d *Director) toolTasksOr(code signalbox.Code) (ToolTasks, error) {
	switch {
	case d.cfg.ToolTasks != nil:
		return d.cfg.ToolTasks, nil
	case d.cfg.Tools == nil:
		return nil, errNoTools()
	}
	return nil, refuse(code, "call the tool and wait for its answer (POST /api/tools/{tool}/call), or start signalbox up or signalbox director, which have a queue",
		"this gateway has no queue in which a call could wait as a task")
}

// createToolTask is POST /api/tools/{tool}/tasks.
func (d *Director) createToolTask(w http.ResponseWriter, r *http.Request) error {
	tasks, err := d.toolTasksOr(signalbox.CodeUnsupported)
	if err != nil {
		return err
	}
	var req api.NewToolTask
	if err := decodeCall(w, r, &req); err != nil {
		return d.refused(err)
	}
	call, err := d.taskCall(r, req)
	if err != nil {
		return d.refused(err)
	}
	t, err := tasks.Submit(gateway.WithTrace(r.Context(), r.Header), call)
	if err != nil {
		return d.toolTaskError(r, err)
	}
	if t.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	v, err := d.toolTaskView(r.Context(), &t)
	if err != nil {
		return err
	}
	w.Header().Set("Location", toolTaskPath+t.Task.ID)
	d.answer(w, http.StatusCreated, v)
	return nil
}

const toolTaskPath = "/api/tools/tasks/"

// taskCall makes a call of what was asked for.
func (d *Director) taskCall(r *http.Request, req api.NewToolTask) (gateway.TaskCall, error) {
	if req.TimeoutMS < 0 || req.TimeoutMS > engine.MaxToolTimeoutMS {
		return gateway.TaskCall{}, signalbox.Invalid("timeout_ms", "timeout_ms must be 1 to %d, or 0 for the tool's own, not %d", engine.MaxToolTimeoutMS, req.TimeoutMS)
	}
	if req.Priority < signalbox.MinPriority || req.Priority > signalbox.MaxPriority {
		return gateway.TaskCall{}, signalbox.Invalid("priority", "priority must be %d to %d, not %d", signalbox.MinPriority, signalbox.MaxPriority, req.Priority)
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return gateway.TaskCall{}, err
	}
	who, err := d.toolCaller(r, "")
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

// toolTaskError is what a caller is told of a task that was not stored.
func (d *Director) toolTaskError(r *http.Request, err error) error {
	_ = d.refused(err)
	var full *signalbox.Error
	if errors.As(err, &full) && full.Code == signalbox.CodeQueueFull {
		copied := *full
		return &refusal{
			err: &copied, retryAfter: d.retryAfter(r.Context(), signalbox.QueueCommands),
			hint: "try again later, or cancel what is no longer needed: signalbox tools tasks lists it",
		}
	}
	return d.toolError(r, err)
}

// toolTask is GET /api/tools/tasks/{id}.
func (d *Director) toolTask(w http.ResponseWriter, r *http.Request) error {
	v, err := d.waitedToolTask(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	d.answer(w, http.StatusOK, v)
	return nil
}

// getTaskStatus is GET /getTaskStatus (seed async-task-queue).
func (d *Director) getTaskStatus(w http.ResponseWriter, r *http.Request) error {
	id := param(r, "taskId")
	if id == "" {
		return &refusal{err: signalbox.Invalid("taskId", "Missing taskId"), hint: "GET /getTaskStatus?taskId=ID"}
	}
	id, err := d.importedID(r.Context(), id)
	if err != nil {
		return err
	}
	v, err := d.waitedToolTask(r, id)
	if err != nil {
		return err
	}
	d.answer(w, http.StatusOK, api.TaskStatus{Task: v})
	return nil
}

// waitedToolTask reads a task that the caller sees, once it has ended or the
// wait that the caller asked for is over.
func (d *Director) waitedToolTask(r *http.Request, id string) (api.ToolTask, error) {
	wait, err := waitOf(r)
	if err != nil {
		return api.ToolTask{}, err
	}
	t, err := d.seenToolTask(r, id)
	if err != nil {
		return api.ToolTask{}, err
	}
	if wait > 0 && !t.Task.State.Terminal() {
		ctx, cancel := d.untilStopped(r.Context())
		defer cancel()
		if t, err = d.cfg.ToolTasks.Wait(ctx, id, wait); err != nil {
			return api.ToolTask{}, err
		}
	}
	return d.toolTaskView(r.Context(), &t)
}

// seenToolTask returns a task of a tool, or CodeNotFound in the same words for
// one that is not there, is none of a tool, or is not for the caller to see.
func (d *Director) seenToolTask(r *http.Request, id string) (gateway.ToolTask, error) {
	tasks, err := d.toolTasksOr(signalbox.CodeNotFound)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	none := refuse(signalbox.CodeNotFound, "GET /api/tools/tasks lists those that there are", "there is no task %q of a tool: it never existed or has been pruned", clip(id))
	if !signalbox.ValidID(id) {
		return gateway.ToolTask{}, none
	}
	t, err := tasks.Task(r.Context(), id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || err == nil && !seesToolTask(callerOf(r).who, &t.Task) {
		return gateway.ToolTask{}, none
	}
	return t, err
}

// seesToolTask reports whether a principal may see a task of a tool: its own,
// and with the right to read all that it would see in the queue. The right to
// use tools does not show what others asked of them.
func seesToolTask(who signalbox.Principal, t *signalbox.Task) bool {
	if key := who.Key(); key != "" && key == t.Owner {
		return true
	}
	return who.Has(signalbox.ScopeRead) && who.SeesTask(t)
}

// cancelToolTask is POST /api/tools/tasks/{id}/cancel.
func (d *Director) cancelToolTask(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	t, err := d.seenToolTask(r, id)
	if err != nil {
		return err
	}
	who := callerOf(r).who
	own := who.Key() == t.Task.Owner
	if !own && !who.Has(signalbox.ScopeCancel) {
		return refuse(signalbox.CodeForbidden, "show a token that has it, or that of who called the tool",
			"to cancel what someone else asked for needs the scope %s, and %s has %s", signalbox.ScopeCancel, who.String(), scopeWords(who.Scopes))
	}
	if t, err = d.cfg.ToolTasks.Cancel(r.Context(), id, who.String()); err != nil {
		return err
	}
	if !own {
		if err := d.audit(r, signalbox.Audit{
			EventType: "task", Action: "cancel", AgentName: agentOf(&t.Task), Resource: id, Details: details(map[string]any{"owner": t.Task.Owner, "tool": t.Task.Tool}),
		}); err != nil {
			return err
		}
	}
	if !t.Task.State.Terminal() {
		ctx, stop := d.untilStopped(r.Context())
		defer stop()
		if t, err = d.cfg.ToolTasks.Wait(ctx, id, d.cancelWait); err != nil {
			return err
		}
	}
	v, err := d.toolTaskView(r.Context(), &t)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !t.Task.State.Terminal() {
		status = http.StatusAccepted
		v.Message = stillStopping
	}
	d.answer(w, status, v)
	return nil
}

// seedStatuses are the words of the seed async-task-queue, and cancelled.
var seedStatuses = []string{"pending", "running", "completed", "failed", "cancelled"}

// toolTasks is GET /api/tools/tasks.
func (d *Director) toolTasks(w http.ResponseWriter, r *http.Request) error {
	tasks, err := d.toolTasksOr(signalbox.CodeNotFound)
	if err != nil {
		return err
	}
	who := callerOf(r).who
	q := gateway.TaskQuery{
		Tool: param(r, "tool"), Status: param(r, "status"), Before: param(r, "before"),
		Sees: func(t *signalbox.Task) bool { return seesToolTask(who, t) },
	}
	if q.Status != "" && !slices.Contains(seedStatuses, q.Status) {
		return signalbox.Invalid("status", "status must be one of %s, not %q", strings.Join(seedStatuses, ", "), clip(q.Status))
	}
	if q.Limit, err = limitOf(r); err != nil {
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
	d.answer(w, http.StatusOK, out)
	return nil
}

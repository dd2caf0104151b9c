package director

import (
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// retryTool makes the call of an ended task of a tool anew. It goes through
// the gateway as a new call does: what the tool asks for may have changed.
func (d *Director) retryTool(w http.ResponseWriter, r *http.Request, t *signalbox.Task, edit api.RetryRequest) error {
	call, err := d.callAgain(r, t, edit)
	if err != nil {
		return d.refused(err)
	}
	tasks, err := d.toolTasksOr(signalbox.CodeUnsupported)
	if err != nil {
		return d.refused(err)
	}
	got, err := tasks.Submit(gateway.WithTrace(r.Context(), r.Header), call)
	if err != nil {
		return d.toolTaskError(r, err)
	}
	if got.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	d.answer(w, http.StatusCreated, api.SubmitResponse{
		QueueID: got.Task.ID, Position: got.Position, State: string(got.Task.State), Queue: got.Task.Queue,
		Message: got.Wait, Replayed: got.Replayed, RetryOf: t.ID,
	})
	return nil
}

// callAgain makes the call that a task was, as its retrier may and wants to
// make it.
func (d *Director) callAgain(r *http.Request, t *signalbox.Task, edit api.RetryRequest) (call gateway.TaskCall, err error) {
	if who := callerOf(r).who; !who.Has(signalbox.ScopeTool) {
		return call, refuse(signalbox.CodeForbidden, "show a token that has it", "task %s is a call of a tool: to make it anew needs the scope %s, and %s has %s",
			t.ID, signalbox.ScopeTool, who.String(), scopeWords(who.Scopes))
	}
	if who := callerOf(r).who; !seesToolTask(who, t) { // the arguments come with it, and what the tool says of them
		return call, refuse(signalbox.CodeForbidden, "show a token that has it, or that of who called the tool",
			"to make a call anew that someone else has made needs the scope %s, and %s has %s", signalbox.ScopeRead, who.String(), scopeWords(who.Scopes))
	}
	if !t.State.Terminal() {
		return call, signalbox.Errorf(signalbox.CodeConflict, "task %s is %s: it can be retried when it has ended; cancel it first", t.ID, t.State)
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"prompt", edit.Prompt != ""}, {"model", edit.Model != ""}, {"env", edit.Env != nil}} {
		if f.given {
			return call, refuse(signalbox.CodeValidation, "call it with other arguments: POST /api/tools/{tool}/tasks", "task %s is a call of the tool %s, which has no %s", t.ID, t.Tool, f.name)
		}
	}
	req, err := d.engine.Read().Request(r.Context(), t.ID)
	if err != nil {
		return call, err
	}
	if req.HadEnv {
		return call, refuse(signalbox.CodeValidation, "call the tool with all its arguments: POST /api/tools/{tool}/tasks, or signalbox tools call --task",
			"the secret arguments of task %s were erased when it ended: it cannot be made anew", t.ID)
	}
	again := api.NewToolTask{Arguments: req.Arguments, Metadata: req.Metadata, TimeoutMS: req.TimeoutMS, Priority: t.Priority}
	if edit.TimeoutSeconds < 0 || edit.TimeoutSeconds > engine.MaxTimeoutSeconds {
		return call, signalbox.Invalid("timeout_seconds", "timeout_seconds must be 0 to %d, not %d", engine.MaxTimeoutSeconds, edit.TimeoutSeconds)
	}
	if edit.TimeoutSeconds > 0 {
		again.TimeoutMS = (time.Duration(edit.TimeoutSeconds) * time.Second).Milliseconds()
	}
	if call, err = d.taskCall(r, again); err != nil {
		return call, err
	}
	call.Tool, call.RetryOf = t.Tool, t.ID
	return call, nil
}

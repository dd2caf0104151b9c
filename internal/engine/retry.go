package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// Edit is what a retry changes of the first task; empty fields keep it.
type Edit struct {
	Prompt         string
	Model          string
	TimeoutSeconds int
	Env            map[string]string
	IdempotencyKey string
	Source         signalbox.Source
	By             signalbox.Principal
	CallerID       string // as in NewTask
}

// Retry submits an ended task anew, as a new task that names the old one.
//
// Errors: those of Submit; CodeConflict while the task has not ended;
// CodeValidation if it had an env, which was erased, and none is given.
func (e *Engine) Retry(ctx context.Context, id string, edit Edit) (Receipt, error) {
	t, err := e.store.Task(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	if !t.State.Terminal() {
		return Receipt{}, signalbox.Errorf(signalbox.CodeConflict, "task %s is %s: it can be retried when it has ended; cancel it first", id, t.State)
	}
	r, err := e.store.Request(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	if t.Mode == signalbox.ModeTool {
		return e.retryTool(ctx, &t, &r, edit)
	}
	if r.HadEnv && edit.Env == nil {
		return Receipt{}, signalbox.Invalid("env", "the env of task %s was erased when it ended: give env anew, {} for none", id)
	}
	n := NewTask{
		Prompt: r.Prompt, Model: r.Model, Tier: r.Tier, TimeoutSeconds: r.TimeoutSeconds, Project: r.Project, Thinking: r.Thinking,
		SessionID: r.SessionID, Session: t.SessionMode, Source: edit.Source, SourceJob: t.SourceJob,
		Priority: t.Priority, OnLost: t.OnLost, RetryOf: id, Env: edit.Env, IdempotencyKey: edit.IdempotencyKey,
		Mode: t.Mode, NewSession: r.NewSession, AllowedTools: r.AllowedTools, SystemPrompt: r.SystemPrompt,
		By: edit.By, CallerID: edit.CallerID,
	}
	if n.SessionID == "" {
		n.Session = ""
	}
	if t.Mode == signalbox.ModeChat && t.Limit == signalbox.LimitWork {
		n.Overflow = signalbox.OverflowPersist
	}
	n.route(r.Queue)
	edit.apply(&n)
	return e.Submit(ctx, n)
}

// retryTool makes the same call again.
func (e *Engine) retryTool(ctx context.Context, t *signalbox.Task, r *signalbox.Request, edit Edit) (Receipt, error) {
	switch {
	case r.HadEnv:
		return Receipt{}, signalbox.Invalid("arguments", "task %s had secret arguments, which were erased when it ended: call the tool %s anew with all its arguments", t.ID, t.Tool)
	case edit.Prompt != "" || edit.Model != "" || edit.TimeoutSeconds != 0 || len(edit.Env) > 0:
		return Receipt{}, signalbox.Invalid("prompt", "a tool call is repeated as it was: call the tool %s anew to change something", t.Tool)
	}
	return e.Submit(ctx, NewTask{
		Mode: signalbox.ModeTool, Tool: t.Tool, Arguments: r.Arguments, Metadata: r.Metadata, TimeoutMS: r.TimeoutMS,
		Calls: r.Queue == signalbox.QueueCalls, Source: edit.Source, SourceJob: t.SourceJob, Priority: t.Priority, OnLost: t.OnLost,
		RetryOf: t.ID, IdempotencyKey: edit.IdempotencyKey, By: edit.By, CallerID: edit.CallerID,
	})
}

// route sets the agent or kind that the queue asked for stands for.
func (n *NewTask) route(queue string) {
	if name, ok := signalbox.OnlyAgent(queue); ok {
		n.Agent = name
	} else if kind, ok := signalbox.QueueKind(queue); ok {
		n.Kind = kind
	}
}

func (d Edit) apply(n *NewTask) {
	if d.Prompt != "" {
		n.Prompt = d.Prompt
	}
	if d.Model != "" {
		n.Model = d.Model
	}
	if d.TimeoutSeconds != 0 {
		n.TimeoutSeconds = d.TimeoutSeconds
	}
}

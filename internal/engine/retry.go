package engine

import (
	"cmp"
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/resources"
)

// RetryEdit is what a retry changes of the original task; empty fields are kept.
type RetryEdit struct {
	Prompt         string
	Model          string
	TimeoutSeconds int
	Env            map[string]string
	Route          *signalbox.Route
	IdempotencyKey string
	Source         signalbox.Source
	By             signalbox.Principal
	CallerID       string // see NewTask
}

// Retry submits an ended task again, as a new task with RetryOf.
//
// Errors: those of Submit; CodeForbidden if it belongs to someone else and the caller may
// not read it; CodeConflict while the task has not ended; CodeValidation if it had an env,
// which was erased, and none is given; CodeUnsupported for a tool call, which must go
// through the gateway again.
func (e *Engine) Retry(ctx context.Context, id string, edit RetryEdit) (Receipt, error) {
	whole, err := e.store.Whole(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	t, r := &whole.Task, &whole.Request
	if !mayRead(edit.By, t.Owner) {
		return Receipt{}, errNotOwner(edit.By, "task", id)
	}
	if err := t.CheckRetry(); err != nil {
		return Receipt{}, err
	}
	if r.HadEnv && edit.Env == nil {
		return Receipt{}, signalbox.Invalid("env", "the env of task %s was erased when it ended: give env anew, {} for none", id)
	}
	n := NewTask{
		Prompt: cmp.Or(edit.Prompt, r.Prompt), Model: cmp.Or(edit.Model, r.Model), TimeoutSeconds: cmp.Or(edit.TimeoutSeconds, r.TimeoutSeconds),
		Tier: r.Tier, Project: r.Project, Workspace: r.Workspace, Thinking: r.Thinking, SessionID: r.SessionID, Source: edit.Source, SourceJob: t.SourceJob,
		Priority: t.Priority, OnLost: t.OnLost, RetryOf: id, Env: edit.Env, IdempotencyKey: edit.IdempotencyKey,
		Mode: t.Mode, NewSession: r.NewSession, AllowedTools: r.AllowedTools, SystemPrompt: r.SystemPrompt, Checking: r.Checking,
		By: edit.By, CallerID: edit.CallerID, Budget: t.Budget.Least(e.opts.Budgets.Most(edit.By)), Needs: resources.Units(t.Needs), Landing: t.WishAgain(),
	}
	if n.SessionID != "" {
		n.Session = t.SessionMode
	}
	if t.Mode == signalbox.ModeChat && t.Limit == signalbox.LimitWork {
		n.Overflow = signalbox.OverflowPersist
	}
	n.Agent, _ = signalbox.OnlyAgent(r.Queue)
	if kind, ok := signalbox.QueueKind(r.Queue); ok {
		n.Kind = kind
	}
	if edit.Route != nil {
		n.Agent, n.Kind = edit.Route.Agent, edit.Route.Kind
	}
	return e.Submit(ctx, n)
}

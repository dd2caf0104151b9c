package engine

import (
	"cmp"
	"context"

	"github.com/signalbox-ai/signalbox"
)

// PutExecutor adds or updates the director's own executor of a kind. It may have fewer
// slots than are in use: then it gets no new calls until enough are free.
//
// Errors: CodeValidation; those of the store.
func (e *Engine) PutExecutor(ctx context.Context, kind, instance string, slots int) (signalbox.Agent, error) {
	a := signalbox.Agent{
		Name: signalbox.ExecutorName(kind, instance), Kind: "executor", Slots: slots, Fencing: true,
		Source: signalbox.AgentInternal, CreatedAt: e.Now(),
	}
	if !signalbox.IsExecutor(a.Name) {
		return a, signalbox.Invalid("kind", "%q is no kind of executor", signalbox.Clip(kind))
	}
	err := cmp.Or(signalbox.CheckName("instance", "the name of an instance", signalbox.Clip(instance)), signalbox.CheckRange("slots", slots, 1, signalbox.MaxAgentSlots))
	if err != nil {
		return a, err
	}
	known, err := e.Agent(ctx, a.Name)
	if err == nil {
		a.CreatedAt = known.CreatedAt
	} else if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		return a, err
	}
	entry := signalbox.Entry{At: e.Now(), Kind: signalbox.EventAgentAdded, Agent: a.Name}
	return a, e.announce(entry, e.store.PutAgent(ctx, a, entry))
}

// RemoveExecutor deletes the executor row of a director that is gone.
//
// Errors: CodeValidation; CodeConflict while it holds slots.
func (e *Engine) RemoveExecutor(ctx context.Context, name string) error {
	if !signalbox.IsExecutor(name) {
		return signalbox.Invalid("name", "%q is no executor", signalbox.Clip(name))
	}
	return e.removeAgent(ctx, name, "")
}

// Interrupt ends a waiting task because the director was restarted, for tools configured
// so.
func (e *Engine) Interrupt(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventUndeliverable, Reason: signalbox.ReasonInterrupted, Message: message})
}

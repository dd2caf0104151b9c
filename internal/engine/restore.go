package engine

import (
	"cmp"
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Transfer is a complete task on its way from one store to another, without env values.
type Transfer struct {
	Task    signalbox.Task
	Request signalbox.Request
	Result  *signalbox.Result // nil while the task has not ended
	Env     map[string]string // of a pending task, if the importer has the values
}

// Restore stores a task from another store. If it was in flight there, it is requeued or
// ends as interrupted.
//
// Errors: CodeValidation; CodeConflict if the task exists already.
func (e *Engine) Restore(ctx context.Context, in Transfer, requeue bool) (signalbox.Task, error) {
	now, t := e.Now(), &in.Task
	if err := store.AdoptForeign(t, &in.Request, requeue, now); err != nil {
		return signalbox.Task{}, err
	}
	if t.State == signalbox.Pending {
		if err := e.sealTransfer(&in); err != nil {
			return *t, err
		}
		in.Result, t.Agent, t.TaskID, t.AgentURL = nil, "", "", ""
	} else if in.Result == nil {
		in.Result = &signalbox.Result{}
	}
	t.SetFailure(in.Result)
	t.Slot, t.Fence = 0, 0 // fences are valid in one store only
	t.RequestSize, t.ResultSize = in.Request.Size(), 0
	if in.Result != nil {
		t.ResultSize, t.Spent = in.Result.Size(), cmp.Or(t.Spent, in.Result.Spent())
	}
	after, err := e.store.Restore(ctx, store.Restored{Task: *t, Request: in.Request, Result: in.Result, Now: now})
	if err != nil {
		return *t, err
	}
	e.Publish(Applied{Task: after, Kind: store.RestoreEntry(&after, now).Kind})
	return after, nil
}

// RestoreUsage implements store.UsageWriter.
func (e *Engine) RestoreUsage(ctx context.Context, u signalbox.Usage) error {
	return e.store.RestoreUsage(ctx, u)
}

// sealTransfer encrypts the environment of a pending task.
func (e *Engine) sealTransfer(in *Transfer) error {
	if len(in.Env) == 0 {
		if in.Task.HasEnv {
			return signalbox.Errorf(signalbox.CodeValidation, "it needs env values or secret arguments, which exports do not hold: put them into its env, or submit it again with them")
		}
		return nil
	}
	if err := signalbox.CheckEnv(in.Env); err != nil {
		return err
	}
	in.Task.HasEnv, in.Request.HadEnv = true, true
	in.Request.SealedEnv = e.sealEnv(in.Task.ID, in.Env)
	return nil
}

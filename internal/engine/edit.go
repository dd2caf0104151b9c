package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Edit changes a task that waits.
//
// Errors: those of signalbox.CheckEdit; CodeNotFound for an unknown task or agent;
// CodeConflict if the task has started, or has changed since edit.Rev; CodeAlreadyEnded.
func (e *Engine) Edit(ctx context.Context, id string, edit signalbox.Edit, by signalbox.Principal) (signalbox.Task, error) {
	t, err := e.store.Task(ctx, id)
	if err == nil {
		err = signalbox.CheckEdit(&t, &edit, by)
	}
	if to := edit.Route; err == nil && to != nil {
		n := NewTask{Agent: to.Agent, Kind: to.Kind, By: by}
		if err = n.checkRoute(); err == nil {
			err = e.checkRoute(ctx, n)
		}
	}
	if err == nil && edit.Budget != nil {
		b := edit.Budget.Or(e.opts.Budgets.Most(by))
		edit.Budget, err = &b, e.opts.Budgets.Check(b, by)
	}
	if err != nil {
		return t, err
	}
	edit.Bias = e.bias(*cmp.Or(edit.Priority, &t.Priority))
	if edit.Prompt != "" || edit.Route != nil {
		r, err := e.store.Request(ctx, id)
		if err != nil {
			return t, err
		}
		r.Prompt, r.Queue = cmp.Or(edit.Prompt, r.Prompt), t.Queue
		if edit.Route != nil {
			r.Queue = edit.Route.Queue()
		}
		edit.Request = &r
	}
	return e.apply(ctx, id, &t, signalbox.Event{Kind: signalbox.EventEdit, By: by.String(), Edit: &edit})
}

func (e *Engine) bias(priority int) time.Duration { return time.Duration(priority) * e.opts.AgeStep }

package local

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// recoverers is how many tasks of a predecessor are recovered in parallel.
const recoverers = 16

// recover handles the tasks that a predecessor left: once none of their processes is left, the tools' restart
// policies decide about each task.
//
//	            default   fail_pending   requeue_running
//	pending     kept      failed         kept
//	dispatching kept      failed         kept              it has not run
//	working     failed    failed         to the back, an attempt
//	cancelling  cancelled cancelled      cancelled
func (x *Executor) recover(ctx context.Context) error {
	if x.single() { // with several directors, waiting tasks belong to all of them, and most were not restarted
		if err := x.failPending(ctx); err != nil { // first, because tasks requeued below must not be failed as pending
			return err
		}
	}
	inFlight, err := x.engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	stuck := proc.ClearMarks(x.marksOf(inFlight))
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	places := make(chan struct{}, recoverers)
	for _, t := range inFlight {
		p := x.poolOfAgent(t.Agent)
		if p == nil {
			continue
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			if err := x.recoverTask(ctx, p, t, len(stuck[markOf(&t)]) > 0); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (x *Executor) poolOfAgent(agent string) *pool {
	for _, p := range x.pools {
		if p.row.Name == agent {
			return p
		}
	}
	return nil
}

// marksOf are the marks of the executor's tasks that may have processes.
func (x *Executor) marksOf(inFlight []signalbox.Task) []string {
	own := slices.Clone(inFlight)
	return x.marksAmong(slices.DeleteFunc(own, func(t signalbox.Task) bool { return x.poolOfAgent(t.Agent) == nil }))
}

func (x *Executor) marksAmong(inFlight []signalbox.Task) []string {
	var marks []string
	for i := range inFlight {
		if t := &inFlight[i]; x.hasProcesses(t.Tool) && t.State != signalbox.Dispatching {
			marks = append(marks, markOf(t))
		}
	}
	return marks
}

func (x *Executor) recoverTask(ctx context.Context, p *pool, t signalbox.Task, stuck bool) error {
	if stuck {
		x.keepStuck(p, t, func() []int { return proc.Alive(proc.Ident{Mark: markOf(&t)}) })
		return nil
	}
	x.log.Info("", "queue", "adopt", "queue_id", t.ID, "agent", t.Agent, "state", string(t.State))
	return execution.UnlessDecided(x.applyRestartPolicy(ctx, t, nil, Interrupted))
}

// hasProcesses reports whether runs of a tool are processes on this machine. It assumes so for a tool that no
// longer exists.
func (x *Executor) hasProcesses(name string) bool {
	tool, known := x.gateway.Tool(name)
	return !known || tool.Kind == gateway.KindCommand
}

// applyRestartPolicy applies its tool's restart policy to a task whose execution is over and has no processes
// left.
func (x *Executor) applyRestartPolicy(ctx context.Context, t signalbox.Task, result *signalbox.Result, message string) error {
	var err error
	switch {
	case t.State == signalbox.Dispatching && x.failsPending(&t) && !t.CancelRequested:
		_, err = x.engine.Finish(ctx, t, engine.Outcome{Reason: signalbox.ReasonInterrupted, Message: message})
	case t.State == signalbox.Dispatching:
		_, err = x.engine.Unsent(ctx, t, "the director stopped before the call ran")
	default:
		_, err = x.engine.Lose(ctx, t, signalbox.ReasonInterrupted, message, false, result)
	}
	return err
}

// failsPending reports whether a restart fails a task that has not started. A task that an earlier restart
// requeued has started before: its tool's policy for running tasks is to run it again, after any number of
// restarts.
func (x *Executor) failsPending(t *signalbox.Task) bool {
	tool, _ := x.gateway.Tool(t.Tool)
	requeued := t.OnLost == signalbox.LostRequeue && t.Attempts > 0
	return tool.Restart.FailPending && !requeued
}

// failPending ends the tasks that were waiting when the predecessor ended, if their tools are configured so.
func (x *Executor) failPending(ctx context.Context) error {
	for _, queue := range []string{signalbox.QueueCommands, signalbox.QueueCalls} {
		var after store.Cursor
		for {
			page, err := x.engine.Read().Waiting(ctx, queue, after, maxPage)
			if err != nil {
				return err
			}
			for i := range page {
				t := page[i]
				after = store.CursorOf(&t)
				if !x.failsPending(&t) {
					continue
				}
				_, err := x.engine.Interrupt(ctx, t, Interrupted)
				if execution.UnlessDecided(err) != nil {
					return err
				}
			}
			if len(page) < maxPage {
				break
			}
		}
	}
	return nil
}

// keepStuck keeps the slot of a predecessor's task whose processes cannot be killed, until none is left.
func (x *Executor) keepStuck(p *pool, t signalbox.Task, alive func() []int) {
	x.mu.Lock()
	x.work.Begin()
	p.taken++
	x.mu.Unlock()
	r, _ := x.addRun(p, engine.Claimed{Task: t})
	x.group.Go(func() {
		defer x.removeRun(r)
		if r.awaitKilled(alive) {
			r.interrupt()
		}
	})
}

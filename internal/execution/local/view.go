package local

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Bounds of the suggested poll interval.
const (
	minPoll = 500 * time.Millisecond
	maxPoll = 30 * time.Second
)

// Task implements gateway.Tasks.
func (x *Executor) Task(ctx context.Context, id string) (gateway.ToolTask, error) {
	t, err := x.find(ctx, id)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	return x.viewWithResult(ctx, &t)
}

// find reads a tool call's task.
func (x *Executor) find(ctx context.Context, id string) (signalbox.Task, error) {
	t, err := x.engine.Read().Task(ctx, id)
	if err == nil && t.Mode != signalbox.ModeTool {
		err = &signalbox.Error{Code: signalbox.CodeNotFound, Field: "id", Message: fmt.Sprintf("task %s is no call of a tool: signalbox status %s shows it", id, id)}
	}
	return t, err
}

func (x *Executor) viewWithResult(ctx context.Context, t *signalbox.Task) (gateway.ToolTask, error) {
	v, err := x.view(ctx, t, nil)
	if err != nil || !t.State.Terminal() {
		return v, err
	}
	r, err := x.engine.Read().Result(ctx, t.ID)
	if err != nil {
		return v, err
	}
	v.Result, v.Error = decodeAnswer(r.Answer)
	return v, nil
}

// Wait implements gateway.Tasks.
func (x *Executor) Wait(ctx context.Context, id string, wait time.Duration) (gateway.ToolTask, error) {
	if _, err := x.find(ctx, id); err != nil {
		return gateway.ToolTask{}, err
	}
	t, err := x.engine.Wait(ctx, id, wait, engine.Ended)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	return x.viewWithResult(context.WithoutCancel(ctx), &t) // even if ctx has ended, return the current state
}

// Cancel implements gateway.Tasks.
func (x *Executor) Cancel(ctx context.Context, id, by string) (gateway.ToolTask, error) {
	if _, err := x.find(ctx, id); err != nil {
		return gateway.ToolTask{}, err
	}
	t, err := x.engine.Cancel(ctx, id, by)
	if err != nil && signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded {
		return gateway.ToolTask{}, err
	}
	v, viewErr := x.viewWithResult(ctx, &t)
	if err == nil {
		err = viewErr
	}
	return v, err
}

// view returns a task as its caller sees it, without a result. pos is its position, if
// known.
func (x *Executor) view(ctx context.Context, t *signalbox.Task, pos *store.Position) (gateway.ToolTask, error) {
	v := gateway.ToolTask{Task: *t}
	switch {
	case t.State.Terminal():
		if x.opts.Retention > 0 {
			v.TTL = t.EndedAt.Sub(t.CreatedAt) + x.opts.Retention
		}
		return v, nil
	case t.State == signalbox.Pending:
		return v, x.viewPending(ctx, &v, pos)
	case t.State == signalbox.Dispatching:
		x.viewDispatching(&v)
		return v, nil
	}
	v.Poll = pollRunning(x.engine.Now().Sub(t.StartedAt))
	return v, nil
}

func (x *Executor) viewPending(ctx context.Context, v *gateway.ToolTask, pos *store.Position) error {
	t := &v.Task
	if w := x.waiterOf(t.ID); w != nil { // its place is in its tool queue
		v.Wait, v.Poll = "about to be claimed", minPoll
		if place := w.line.Load(); place != nil {
			v.Position = place.Position()
			v.Wait = placeText(v.Position, "its tool queue")
			v.Poll = pollPlace(v.Position)
		}
		return nil
	}
	if pos == nil {
		at, err := x.engine.Read().Position(ctx, t.ID)
		if err != nil {
			return err
		}
		pos = &at
	}
	v.Position = pos.N
	v.Wait = placeText(pos.N, "the queue "+t.Queue)
	if t.Attempts > 0 || t.NoAnswers > 0 {
		v.Wait += ", again: " + t.LastError
	}
	v.Poll = pollPlace(pos.N)
	if eta := x.engine.ETA(ctx, t, *pos); eta != nil {
		v.Poll = clampPoll((eta.Low + eta.High) / 4)
	}
	return nil
}

func placeText(position int, line string) string {
	if position == 0 {
		return "about to run"
	}
	return fmt.Sprintf("queued, position %d in %s", position, line)
}

func (x *Executor) waiterOf(id string) *waiter {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.waiters[id]
}

func (x *Executor) runOf(id string) *run {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.runs[id]
}

func (x *Executor) viewDispatching(v *gateway.ToolTask) {
	v.Wait, v.Poll = "about to run", minPoll
	r := x.runOf(v.Task.ID)
	if r == nil {
		return
	}
	if text, position := r.waitsFor(); text != "" {
		v.Wait, v.Position, v.Poll = text, position, pollPlace(position)
	}
}

func clampPoll(d time.Duration) time.Duration { return min(max(d, minPoll), maxPoll) }

// pollPlace is the poll interval of a waiting task without an estimate.
func pollPlace(position int) time.Duration { return clampPoll(time.Duration(position) * minPoll) }

// pollRunning is the poll interval of a running task. It grows with the run time: a task that has run for
// long is likely to continue.
func pollRunning(ran time.Duration) time.Duration { return clampPoll(ran / 4) }

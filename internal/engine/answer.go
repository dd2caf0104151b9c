package engine

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// The answers of an agent to a dispatched task. Each takes the row as the
// caller knows it; its Fence says which execution is meant, and a fence that
// is no longer the task's is refused with CodeStaleFence.

// Accept notes that the agent runs the task, under its own id taskID and in
// a conversation.
func (e *Engine) Accept(ctx context.Context, t signalbox.Task, taskID, sessionID string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{
		Kind: signalbox.EventAccept, Fence: t.Fence, TaskID: taskID, SessionID: sessionID,
	})
}

// Busy sends the task to the back of its queue: the agent said 409. It costs
// no attempt.
func (e *Engine) Busy(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventBusy, Fence: t.Fence, Message: message})
}

// Refuse counts an attempt: the connection was refused, the agent said 5xx,
// or says that it has never seen the task. The task keeps its place and is
// offered again after a growing delay, until its attempts are used up.
func (e *Engine) Refuse(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{
		Kind: signalbox.EventRefuse, Fence: t.Fence, Message: message, Delay: e.backoff(t.Attempts),
	})
}

// Unsent gives back a claim that was never sent, because the director that
// made it ended first. It costs no attempt but is counted.
func (e *Engine) Unsent(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventUnsent, Fence: t.Fence, Message: message})
}

// PutBack gives the task back on purpose, before anything was tried: it costs
// nothing, and the task keeps its place.
func (e *Engine) PutBack(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventUnsent, Fence: t.Fence, Message: message, NotTried: true})
}

// Spare gives the task back because its agent is closed: that failed in a way
// that speaks of itself. It costs no attempt but is counted, and the task is not
// offered again before a delay that is added to the usual one.
func (e *Engine) Spare(ctx context.Context, t signalbox.Task, message string, delay time.Duration) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{
		Kind: signalbox.EventUnsent, Fence: t.Fence, Message: message, Delay: delay + e.backoff(0),
	})
}

// Reject ends the task: the agent said 4xx, so the request itself is wrong.
func (e *Engine) Reject(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventReject, Fence: t.Fence, Message: message})
}

// Outcome is how an execution ended, in the agent's word.
type Outcome struct {
	Reason    signalbox.Reason
	Message   string
	TaskID    string
	SessionID string
	Result    *signalbox.Result
}

// Finish ends the task with what the agent said.
func (e *Engine) Finish(ctx context.Context, t signalbox.Task, o Outcome) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{
		Kind: signalbox.EventFinish, Fence: t.Fence, Reason: o.Reason, Message: o.Message,
		TaskID: o.TaskID, SessionID: o.SessionID, Result: o.Result,
	})
}

// Lose ends an execution whose agent is silent, forgot it, or was restarted:
// reason lost or interrupted. With withhold the slot stays taken until the
// agent says that it is free. result may hold what was seen of its output.
func (e *Engine) Lose(ctx context.Context, t signalbox.Task, reason signalbox.Reason, message string, withhold bool, result *signalbox.Result) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{
		Kind: signalbox.EventLost, Fence: t.Fence, Reason: reason, Message: message, Withhold: withhold,
		Result: result, Delay: e.backoff(t.Attempts),
	})
}

// Unsure ends an execution whose agent never accepted it and ran something that
// may have been it: the task's on_lost decides. The rest is as for Lose.
func (e *Engine) Unsure(ctx context.Context, t signalbox.Task, message string, withhold bool) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{
		Kind: signalbox.EventLost, Fence: t.Fence, Reason: signalbox.ReasonLost, Message: message, Withhold: withhold,
		MayHaveRun: true, Delay: e.backoff(t.Attempts),
	})
}

// Stop tells that a limit fired on a running task: reason run_timeout or
// stalled. Its agent is told to stop it, and it ends with that reason.
func (e *Engine) Stop(ctx context.Context, t signalbox.Task, reason signalbox.Reason, message string) (signalbox.Task, error) {
	return e.apply(ctx, t.ID, &t, signalbox.Event{Kind: signalbox.EventStop, Fence: t.Fence, Reason: reason, Message: message})
}

// KeepStale keeps aside what an execution said that no longer holds its slot.
func (e *Engine) KeepStale(ctx context.Context, id string, s signalbox.Stale) error {
	return e.store.KeepStale(ctx, id, s)
}

// FreeSlot gives back a withheld slot: its agent reports that it no longer
// runs what it was lost with.
func (e *Engine) FreeSlot(ctx context.Context, s signalbox.Slot) (bool, error) {
	return e.store.FreeSlot(ctx, s.Agent, s.Slot, s.Fence)
}

// The delay before a task is offered again doubles from firstBackoff with
// each failed attempt, up to maxBackoff, and varies by a fifth so that tasks
// which failed together do not come back together.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

func (e *Engine) backoff(attempts int) time.Duration {
	d := maxBackoff
	if attempts < 6 {
		d = firstBackoff << attempts
	}
	return e.Jitter(d)
}

// Jitter varies a time by up to a fifth, to the millisecond, so that what began
// together does not come back together.
func (e *Engine) Jitter(d time.Duration) time.Duration {
	var b [2]byte
	if _, err := io.ReadFull(e.opts.Random, b[:]); err != nil {
		return d
	}
	share := float64(binary.BigEndian.Uint16(b[:]))/65535 - 0.5 // -0.5 to 0.5
	d += time.Duration(share * 0.4 * float64(d))
	return d.Truncate(time.Millisecond) // as all times are: a store keeps no more
}

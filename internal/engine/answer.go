package engine

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
)

// An agent's answers to a dispatched task. Each takes the row as the caller knows it; its
// Fence names the execution. A stale fence is refused with CodeStaleFence.

func (e *Engine) answer(ctx context.Context, t *signalbox.Task, ev signalbox.Event) (signalbox.Task, error) {
	ev.Fence = t.Fence
	return e.apply(ctx, t.ID, t, ev)
}

// Accept records that the agent runs the task, under its own id taskID and in a
// conversation.
func (e *Engine) Accept(ctx context.Context, t signalbox.Task, taskID, sessionID string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventAccept, TaskID: taskID, SessionID: sessionID})
}

// Busy moves the task to the back of its queue: the agent said 409. It costs no attempt.
func (e *Engine) Busy(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventBusy, Message: message})
}

// Refuse counts an attempt: the connection was refused, the agent said 5xx, or says that it
// has never seen the task. The task keeps its place and is offered again with exponential
// backoff, until its attempts are used up.
func (e *Engine) Refuse(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventRefuse, Message: message, Delay: e.backoff(t.Attempts)})
}

// Unsent returns a claim that was never sent, because the director that made it ended
// first. It costs no attempt but is counted.
func (e *Engine) Unsent(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventUnsent, Message: message})
}

// PutBack returns a claim on purpose, before anything was tried: it costs nothing, and the
// task keeps its place.
func (e *Engine) PutBack(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventUnsent, Message: message, NotTried: true})
}

// Defer returns the task because its agent is closed after failures of its own. It costs no
// attempt but is counted. The task is offered again after delay plus the usual backoff.
func (e *Engine) Defer(ctx context.Context, t signalbox.Task, message string, delay time.Duration) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventUnsent, Message: message, Delay: delay + e.backoff(0)})
}

// Reject ends the task: the agent said 4xx, so the request itself is wrong.
func (e *Engine) Reject(ctx context.Context, t signalbox.Task, message string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventReject, Message: message})
}

// Outcome is how an execution ended, as reported by the agent.
type Outcome struct {
	Reason    signalbox.Reason
	Message   string
	TaskID    string
	SessionID string
	Result    *signalbox.Result
	Account   accounts.News   // of the account that it spent; its Name is "" if that is unknown
	Limit     *accounts.Limit // the provider's limit at which the run ended; nil: none
}

// Finish ends the task with the outcome that the agent reported, or parks it if a limit of its provider ended
// the run.
func (e *Engine) Finish(ctx context.Context, t signalbox.Task, o Outcome) (signalbox.Task, error) {
	ev := signalbox.Event{Kind: signalbox.EventFinish, Reason: o.Reason, Message: o.Message, TaskID: o.TaskID, SessionID: o.SessionID, Result: o.Result}
	if o.Limit != nil {
		if ev.Parking, ev.Account = e.meet(&t, o); ev.Parking != nil {
			ev.Kind = signalbox.EventPark
		}
	}
	after, err := e.answer(ctx, &t, ev)
	if err == nil && o.Reason == signalbox.ReasonCompleted && e.accounts.Blocked(o.Account.Name) != nil {
		e.answered(o.Account.Name)
	}
	return after, err
}

// Lose ends an execution whose agent is silent, forgot it, or was restarted: reason lost or
// interrupted. With withhold the slot stays taken until the agent reports that it is free.
// result may hold the output seen so far.
func (e *Engine) Lose(ctx context.Context, t signalbox.Task, reason signalbox.Reason, message string, withhold bool, result *signalbox.Result) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventLost, Reason: reason, Message: message, Withhold: withhold, Result: result, Delay: e.backoff(t.Attempts)})
}

// LoseUnaccepted ends an execution that its agent never accepted but may have run: the
// task's on_lost decides. Otherwise it is like Lose.
func (e *Engine) LoseUnaccepted(ctx context.Context, t signalbox.Task, message string, withhold bool) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Message: message, Withhold: withhold, MayHaveRun: true, Delay: e.backoff(t.Attempts)})
}

// Stop records that a running task exceeded a limit: reason run_timeout, stalled or budget. Its
// agent is told to stop it, and it ends with that reason.
func (e *Engine) Stop(ctx context.Context, t signalbox.Task, reason signalbox.Reason, message string) (signalbox.Task, error) {
	return e.answer(ctx, &t, signalbox.Event{Kind: signalbox.EventStop, Reason: reason, Message: message})
}

// KeepStale stores the final report of an execution that no longer holds its slot.
func (e *Engine) KeepStale(ctx context.Context, id string, s signalbox.Stale) error {
	return e.store.KeepStale(ctx, id, s)
}

// FreeSlot frees a withheld slot: its agent reports that it no longer runs the lost
// execution.
func (e *Engine) FreeSlot(ctx context.Context, s signalbox.Slot) (bool, error) {
	return e.store.FreeSlot(ctx, s.Agent, s.Slot, s.Fence)
}

// The backoff doubles from firstBackoff with each failed attempt, up to maxBackoff, with
// jitter so that tasks that failed together are not retried together.
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

// Jitter varies a duration by up to a fifth, truncated to the millisecond.
func (e *Engine) Jitter(d time.Duration) time.Duration {
	var b [2]byte
	if _, err := io.ReadFull(e.opts.Random, b[:]); err != nil {
		return d
	}
	share := float64(binary.BigEndian.Uint16(b[:]))/65535 - 0.5 // -0.5 to 0.5
	d += time.Duration(share * 0.4 * float64(d))
	return d.Truncate(time.Millisecond) // stores keep milliseconds
}

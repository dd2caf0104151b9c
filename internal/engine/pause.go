package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Pause stops claims from a queue ("" for all) until it is resumed or, if until is not
// zero, until then.
//
// Errors: CodeValidation; those of the store.
func (e *Engine) Pause(ctx context.Context, queue, reason, by string, until time.Time) error {
	if queue != "" && !signalbox.ValidQueue(queue) {
		return signalbox.Invalid("queue", "%q is not a queue: use work, commands, calls, agent:NAME, pool:KIND, or leave it out for all", queue)
	}
	now := e.Now()
	err := cmp.Or(
		signalbox.InvalidIf(len(reason) > MaxReasonBytes || !signalbox.Printable(reason), "reason", "reason must be one printable line of at most %d bytes", MaxReasonBytes),
		signalbox.InvalidIf(!until.IsZero() && !until.After(now), "until", "until lies in the past"),
	)
	if err != nil {
		return err
	}
	p := signalbox.Pause{Queue: queue, Reason: reason, By: by, AtMS: now.UnixMilli()}
	if !until.IsZero() {
		p.UntilMS = until.UnixMilli()
	}
	err = e.store.SetPause(ctx, p, signalbox.Entry{At: now, Kind: signalbox.EventPaused, Queue: queue, Message: reason, By: by})
	if err == nil {
		e.hub.journalGrew()
	}
	return err
}

// Resume ends a pause. Resuming a queue that is not paused is not an error.
func (e *Engine) Resume(ctx context.Context, queue, by string) error {
	if queue != "" && !signalbox.ValidQueue(queue) {
		return signalbox.Invalid("queue", "%q is not a queue", queue)
	}
	entry := signalbox.Entry{At: e.Now(), Kind: signalbox.EventResumed, Queue: queue, By: by}
	_, err := e.store.Resume(ctx, queue, entry)
	return e.announce(entry, err)
}

// ResumeDue ends pauses whose time is over.
func (e *Engine) ResumeDue(ctx context.Context) error {
	pauses, err := e.store.Pauses(ctx)
	if err != nil {
		return err
	}
	now := e.Now().UnixMilli()
	for _, p := range pauses {
		if p.UntilMS != 0 && p.UntilMS <= now {
			if err := e.Resume(ctx, p.Queue, "its own time limit"); err != nil {
				return err
			}
		}
	}
	return nil
}

// pauses returns the pauses in force; the row of one that has expired may outlive it.
func (e *Engine) pauses(ctx context.Context) ([]signalbox.Pause, error) {
	pauses, err := e.store.Pauses(ctx)
	now := e.Now().UnixMilli()
	return slices.DeleteFunc(pauses, func(p signalbox.Pause) bool { return p.UntilMS != 0 && p.UntilMS <= now }), err
}

// Paused reports whether a queue is paused, by itself or together with all others.
func (e *Engine) Paused(ctx context.Context, queue string) (bool, error) {
	pauses, err := e.pauses(ctx)
	return paused(pauses, queue), err
}

func paused(pauses []signalbox.Pause, queue string) bool {
	return slices.ContainsFunc(pauses, func(p signalbox.Pause) bool { return p.Queue == "" || p.Queue == queue })
}

// drain returns the pause that drains an agent, that of its own queue; nil for none. A
// drained agent finishes what it runs and claims from no queue. Its isolated executions are
// not affected; they have a queue of their own.
func drain(pauses []signalbox.Pause, agent string) *signalbox.Pause {
	for i := range pauses {
		if name, own := signalbox.QueueAgent(pauses[i].Queue); own && name == agent {
			return &pauses[i]
		}
	}
	return nil
}

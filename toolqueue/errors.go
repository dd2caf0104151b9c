package toolqueue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reason says why a call got no slot.
type Reason string

// The reasons.
const (
	ReasonFull      Reason = "full"      // as many wait as may
	ReasonTimeout   Reason = "timeout"   // it waited for as long as it may
	ReasonCancelled Reason = "cancelled" // its context ended
	ReasonUnknown   Reason = "unknown_queue"
	ReasonAway      Reason = "away" // a shared queue's slots are kept where nobody answers
)

// The errors of Acquire, for errors.Is. What Acquire returns is an *Error,
// which has the figures. One that was cancelled is also the context's error.
var (
	ErrFull      = errors.New("the tool queue is full")
	ErrTimeout   = errors.New("waited too long in the tool queue")
	ErrCancelled = errors.New("gave up waiting in the tool queue")
	ErrUnknown   = errors.New("there is no such tool queue")
	ErrAway      = errors.New("the slots of the shared tool queue are out of reach")
)

var (
	errSilent = errors.New("no answer came in time")
	errClosed = errors.New("this process gives its slots back, because it ends")
)

// Error is why a call got no slot.
type Error struct {
	Queue      string
	Reason     Reason
	Waited     time.Duration
	Depth      int // calls that wait, without this one
	Concurrent int
	Err        error // one of the package's errors, joined with the context's
}

// Error says what happened, with the figures, and what to do about it.
func (e *Error) Error() string {
	switch e.Reason {
	case ReasonFull:
		return fmt.Sprintf("tool queue %q is full: %s in line for its %s, and no more may wait; call again later, or raise its maximum number of waiters",
			e.Queue, count(e.Depth, "call"), count(e.Concurrent, "slot"))
	case ReasonTimeout:
		if e.Waited == 0 {
			return fmt.Sprintf("no slot of the %s of tool queue %q is free, and the call was not to wait (in line: %d); call again later, or give it time to wait",
				count(e.Concurrent, "slot"), e.Queue, e.Depth)
		}
		return fmt.Sprintf("waited %s for %s of tool queue %q, as long as it may (others in line: %d); call again later, or raise its capacity or its maximum wait",
			brief(e.Waited), oneOf(e.Concurrent), e.Queue, e.Depth)
	case ReasonUnknown:
		return fmt.Sprintf("there is no tool queue %q: add it to the queues, or bind the tool to one that is there", e.Queue)
	case ReasonAway:
		return fmt.Sprintf("no word for %s about a slot of tool queue %q, which is shared with other processes: what keeps its slots cannot be reached, or this process ends; call again later",
			brief(e.Waited), e.Queue)
	}
	return fmt.Sprintf("gave up after %s in line for %s of tool queue %q (others in line: %d): the call was cancelled or its time was over",
		brief(e.Waited), oneOf(e.Concurrent), e.Queue, e.Depth)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func oneOf(slots int) string {
	if slots == 1 {
		return "the only slot"
	}
	return "one of the " + count(slots, "slot")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// brief is a duration as people say it.
func brief(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// cancelled joins our word with the context's own error, and with the cause
// that was given to it, if there is one.
func cancelled(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return errors.Join(ErrCancelled, cause)
	}
	return errors.Join(ErrCancelled, err, cause)
}

package execution

import (
	"context"
	"time"
)

// Signal wakes whoever waits for it. One that is not taken yet stands for all
// that are sent meanwhile.
type Signal chan struct{}

// NewSignal returns a Signal that nobody has sent.
func NewSignal() Signal { return make(Signal, 1) }

// Send leaves a sign, unless there is no room for one more.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Taken takes what lies in a channel, and reports whether there was anything.
func Taken[T any, C ~chan T | ~<-chan T](c C) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Sleep waits, and reports false when ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

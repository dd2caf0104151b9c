package execution

import (
	"context"
	"time"
)

// Signal wakes its receiver. Sends coalesce while one is pending.
type Signal chan struct{}

func NewSignal() Signal { return make(Signal, 1) }

// Send never blocks.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Taken receives from a channel if a value is pending, and reports whether there was one.
func Taken[T any, C ~chan T | ~<-chan T](c C) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Sleep waits for d, and reports false if ctx ended first.
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

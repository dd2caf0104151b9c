package execution

import (
	"context"
	"sync"
)

// Work counts runs and claims in progress, so that callers can wait until none is left. Its
// owner decides whether more may start.
type Work struct {
	mu      sync.Mutex
	n       int
	changed Signal
}

func NewWork() *Work { return &Work{changed: NewSignal()} }

// Begin adds one.
func (w *Work) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
}

// Done subtracts one.
func (w *Work) Done() {
	w.mu.Lock()
	w.n--
	w.mu.Unlock()
	w.changed.Send()
}

// Left is how much is in progress.
func (w *Work) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Wait waits until nothing is in progress or ctx ends, and returns how much is left. Only
// one caller may wait at a time.
func (w *Work) Wait(ctx context.Context) (left int) {
	for {
		if left = w.Left(); left == 0 {
			return 0
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return left
		}
	}
}

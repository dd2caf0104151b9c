package execution

import (
	"context"
	"sync"
)

// Work counts the runs and the claims under way, for those who wait until none is
// left. Whether more may begin is for its owner to say.
type Work struct {
	mu      sync.Mutex
	n       int
	changed Signal
}

// NewWork counts from nothing.
func NewWork() *Work { return &Work{changed: NewSignal()} }

// Begin counts one more.
func (w *Work) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
}

// Done counts one less.
func (w *Work) Done() {
	w.mu.Lock()
	w.n--
	w.mu.Unlock()
	w.changed.Send()
}

// Left is how much is under way.
func (w *Work) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Wait returns when nothing is left, or ctx ends, with how much is. One at a time
// may wait.
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

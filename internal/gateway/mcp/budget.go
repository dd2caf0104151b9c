package mcp

import (
	"sync"
	"time"
)

// maxSaid is how many lines of a server's stderr are logged in a second.
const maxSaid = 100

// budget bounds what is logged of what a server says, over all its processes.
type budget struct {
	tell func(left int) // of a second in which lines were left out

	mu   sync.Mutex
	end  time.Time // of the second
	used int
	left int
}

// take reports whether one line more may be logged now.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.left == 0 && !now.Before(b.end) {
		b.end, b.used = now.Add(time.Second), 0
	}
	if b.used < maxSaid {
		b.used++
		return true
	}
	if b.left++; b.left == 1 {
		time.AfterFunc(b.end.Sub(now), b.over)
	}
	return false
}

// over ends a second in which lines were left out.
func (b *budget) over() {
	b.mu.Lock()
	left := b.left
	b.left, b.end = 0, time.Time{}
	b.mu.Unlock()
	b.tell(left)
}

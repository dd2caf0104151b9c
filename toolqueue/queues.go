package toolqueue

import (
	"sync"
	"sync/atomic"
	"time"
)

// Queues are the named queues of a process. Make one with New; all methods
// are safe for use from several goroutines.
type Queues struct {
	hooks  Hooks
	start  time.Time
	mu     sync.Mutex // one Configure at a time
	queues atomic.Pointer[map[string]*queue]
}

// New returns Queues without a queue.
func New(hooks Hooks) *Queues {
	q := &Queues{hooks: hooks, start: time.Now()}
	q.queues.Store(&map[string]*queue{})
	return q
}

func (q *Queues) find(name string) *queue { return (*q.queues.Load())[name] }

// EndSession ends all leases of a session and hands their slots on. One whose
// call is under way ends with that call.
func (q *Queues) EndSession(session string) {
	for _, in := range *q.queues.Load() {
		in.endSession(session)
	}
}

package toolqueue

import (
	"maps"
	"slices"
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
	queues atomic.Pointer[directory]

	sharing *Sharing // nil: no queue is shared with other processes
	process string   // random: what the IDs of its tickets begin with
}

// directory is all queues at one moment. It is replaced, never changed.
type directory struct {
	few   [fewQueues]named // where there are no more
	index map[string]*queue
	list  []*queue // by name
}

type named struct {
	name  string
	queue *queue
}

// fewQueues is up to how many queues looking at each is faster than a map.
const fewQueues = 8

func newDirectory(queues map[string]*queue) *directory {
	d := &directory{index: queues}
	for i, name := range slices.Sorted(maps.Keys(queues)) {
		d.list = append(d.list, queues[name])
		if len(queues) <= fewQueues {
			d.few[i] = named{name, queues[name]}
		}
	}
	return d
}

func (d *directory) find(name string) *queue {
	for i := range d.few {
		if d.few[i].name == name {
			return d.few[i].queue
		}
		if d.few[i].queue == nil {
			break
		}
	}
	return d.index[name]
}

// New returns Queues without a queue.
func New(hooks Hooks) *Queues {
	q := &Queues{hooks: hooks, start: time.Now()}
	q.queues.Store(&directory{})
	return q
}

// EndSession ends all leases of a session and hands their slots on, those of
// shared queues soon after. One whose call is under way ends with that call.
func (q *Queues) EndSession(session string) {
	for _, in := range q.queues.Load().list {
		if in.shared != nil {
			in.shared.endSession(session)
		} else {
			in.endSession(session)
		}
	}
}

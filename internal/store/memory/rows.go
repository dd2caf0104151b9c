package memory

import (
	"cmp"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Backend stores the rows of one verbs.Store. Make one with NewBackend.
type Backend struct {
	id string

	mu       sync.RWMutex
	counters verbs.Counters
	numbers  map[string]int64 // of the last batch, by writer

	ids  map[string]*row // by task id
	keys map[string]*row // by idempotency key
	seqs map[int64]*row

	// Lists of rows; the comments give their sort order.
	submitted list  // all: Seq
	pending   list  // pending: OrderKey, Place
	waiting   lists // pending, by queue: OrderKey, Place
	ready     lists // pending and Ready, by queue: OrderKey, Place
	timed     list  // pending, not Ready, with a NotBefore: NotBefore, Place
	bounded   list  // pending with a WaitUntil: WaitUntil, Place
	created   list  // pending: CreatedAt, Seq
	inFlight  list  // in flight: Fence
	turns     lists // pending and in flight, by session: OrderKey, Place
	ended     list  // ended: EndedAt, Seq
	runs      lists // completed, by agent: EndedAt, Seq
	children  lists // by parent: Seq

	limits map[string]int // how many wait
	named  map[string]int // how many tasks name a session

	slots   map[string][]signalbox.Slot // of an agent, by slot
	inUse   [2]int
	docs    map[string]*kind
	entries []verbs.Entry // by Seq
}

// NewBackend returns an empty backend.
func NewBackend(o Options) *Backend {
	o.ID = cmp.Or(o.ID, "memory")
	return &Backend{
		id: o.ID, numbers: map[string]int64{}, ids: map[string]*row{}, keys: map[string]*row{}, seqs: map[int64]*row{},
		waiting: newLists(), ready: newLists(), turns: newLists(), runs: newLists(), children: newLists(),
		limits: map[string]int{}, named: map[string]int{}, slots: map[string][]signalbox.Slot{}, docs: map[string]*kind{},
	}
}

// row is a task with its request and result.
type row struct {
	task    *signalbox.Task // shared with the working set: never modified
	request *signalbox.Request
	result  *signalbox.Result
}

// addToLists adds a row to every list of its state.
func (b *Backend) addToLists(r *row) {
	t := r.task
	if t.SessionID != "" {
		bump(b.named, t.SessionID, 1)
		if !t.State.Terminal() {
			b.turns.add(t.SessionID, t.OrderKey(), t.Place, r)
		}
	}
	switch {
	case t.State.Waiting():
		b.addPending(r)
	case t.State.InFlight():
		b.inFlight.add(t.Fence, 0, r)
	default:
		at := t.EndedAt.UnixMilli()
		b.ended.add(at, t.Seq, r)
		if t.State == signalbox.Completed {
			b.runs.add(t.Agent, at, t.Seq, r)
		}
	}
}

func (b *Backend) addPending(r *row) {
	t := r.task
	key := t.OrderKey()
	b.pending.add(key, t.Place, r)
	b.waiting.add(t.Queue, key, t.Place, r)
	b.created.add(t.CreatedAt.UnixMilli(), t.Seq, r)
	bump(b.limits, t.Limit, 1)
	if t.Ready {
		b.ready.add(t.Queue, key, t.Place, r)
	} else if !t.NotBefore.IsZero() {
		b.timed.add(t.NotBefore.UnixMilli(), t.Place, r)
	}
	if !t.WaitUntil.IsZero() {
		b.bounded.add(t.WaitUntil.UnixMilli(), t.Place, r)
	}
}

// removeFromLists removes a row from its lists.
func (b *Backend) removeFromLists(t *signalbox.Task) {
	if t.SessionID != "" {
		bump(b.named, t.SessionID, -1)
		if !t.State.Terminal() {
			b.turns.remove(t.SessionID, t.OrderKey(), t.Place)
		}
	}
	switch {
	case t.State.Waiting():
		b.removePending(t)
	case t.State.InFlight():
		b.inFlight.remove(t.Fence, 0)
	default:
		at := t.EndedAt.UnixMilli()
		b.ended.remove(at, t.Seq)
		if t.State == signalbox.Completed {
			b.runs.remove(t.Agent, at, t.Seq)
		}
	}
}

func (b *Backend) removePending(t *signalbox.Task) {
	key := t.OrderKey()
	b.pending.remove(key, t.Place)
	b.waiting.remove(t.Queue, key, t.Place)
	b.created.remove(t.CreatedAt.UnixMilli(), t.Seq)
	bump(b.limits, t.Limit, -1)
	if t.Ready {
		b.ready.remove(t.Queue, key, t.Place)
	} else if !t.NotBefore.IsZero() {
		b.timed.remove(t.NotBefore.UnixMilli(), t.Place)
	}
	if !t.WaitUntil.IsZero() {
		b.bounded.remove(t.WaitUntil.UnixMilli(), t.Place)
	}
}

package sqlite

import (
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// counters only grow, whatever is pruned. They are written with each batch.
type counters struct {
	seq, place, fence, entry int64
	enqueued                 time.Time // newest EnqueuedAt so far
	commits                  int64     // that wrote something: the moments of the file
	ticketPlace, ticketFence int64     // newest of tickets: they are apart from those of tasks
}

// ledger is what the writer must know for each verb and would have to count
// in the file otherwise. Only the writer touches it.
type ledger struct {
	counters
	stored counters // as they are in the file

	limits map[string]int             // pending tasks by limit
	lines  map[string]int             // pending tasks by queue
	ready  map[string]int             // ready tasks by queue
	turn   map[string]int64           // the ready task of a session, by Seq
	loose  map[string]int             // pending tasks of a session outside an agent's own queue
	flying map[string]int             // tasks of a session in flight
	hot    map[string]*signalbox.Task // tasks in flight by id; never changed in place
	slots  map[string]*usage          // slots in use by agent
	inUse  [store.SlotSorts]int       // slots in use over all agents, the executor's apart

	kept        map[string]int64    // bytes that ended tasks take, by owner
	keptChanged map[string]struct{} // owners of which the batch changed that

	agents map[string]signalbox.Agent
	pauses map[string]signalbox.Pause

	// woken is the time up to which Wake has looked at what waits for its
	// time: what is left there waits for its session, and the end of a turn
	// readies it. See wake.go.
	woken time.Time

	// firstEntry and lastEntry are the range of the journal in the file.
	firstEntry, lastEntry int64

	// prunedAt and prunedID are where the search for unused sessions goes on.
	prunedAt int64
	prunedID string

	fleetChanged bool // the board's agents and pauses must be made anew

	// What happened in this batch, to be taken back or shown on the board.
	rows     []rowChange
	undoings []func()
}

type rowChange struct{ before, after *signalbox.Task }

func (l *ledger) init() {
	l.limits, l.lines, l.ready, l.turn = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int64{}
	l.loose, l.flying, l.hot = map[string]int{}, map[string]int{}, map[string]*signalbox.Task{}
	l.prunedAt = math.MinInt64
	l.keptChanged = map[string]struct{}{}
	l.slots, l.agents, l.pauses = map[string]*usage{}, map[string]signalbox.Agent{}, map[string]signalbox.Pause{}
}

// row notes that a task changed; before is nil for a new one, after for one
// that was pruned.
func (l *ledger) row(before, after *signalbox.Task) {
	l.move(before, after)
	l.rows = append(l.rows, rowChange{before, after})
}

func (l *ledger) move(before, after *signalbox.Task) {
	if before != nil {
		l.count(before, -1)
	}
	if after != nil {
		l.count(after, 1)
	}
}

func (l *ledger) count(t *signalbox.Task, n int) {
	switch {
	case t.State == signalbox.Pending:
		l.countPending(t, n)
	case t.State.InFlight():
		if n > 0 {
			l.hot[t.ID] = t
		} else {
			delete(l.hot, t.ID)
		}
		if t.SessionID != "" {
			bump(l.flying, t.SessionID, n)
		}
	default:
		if size := t.Kept(); size != 0 {
			l.kept[t.Owner] += int64(n) * size
			l.keptChanged[t.Owner] = struct{}{}
		}
	}
}

func (l *ledger) countPending(t *signalbox.Task, n int) {
	bump(l.limits, t.Limit, n)
	bump(l.lines, t.Queue, n)
	if t.Ready {
		bump(l.ready, t.Queue, n)
	}
	if t.SessionID == "" {
		if n > 0 && !t.Ready && !t.NotBefore.After(l.woken) {
			// A verb with an earlier time than Wake's: it must be looked at again.
			l.woken = t.NotBefore.Add(-time.Millisecond)
		}
		return
	}
	if _, own := signalbox.QueueAgent(t.Queue); !own {
		bump(l.loose, t.SessionID, n)
	}
	if t.Ready && n > 0 {
		l.turn[t.SessionID] = t.Seq
	} else if t.Ready {
		delete(l.turn, t.SessionID)
	}
}

// paused reports whether a pause of exactly that queue is in force.
func (l *ledger) paused(queue string, now time.Time) bool {
	p, ok := l.pauses[queue]
	return ok && (p.UntilMS == 0 || now.UnixMilli() < p.UntilMS)
}

// drained reports whether an agent is kept from all queues: its own is paused.
func (l *ledger) drained(agent string, now time.Time) bool {
	return len(l.pauses) > 0 && l.paused(signalbox.AgentQueue(agent), now)
}

// Taking back.

// undoing notes how a change to the maps is taken back.
func (l *ledger) undoing(f func()) { l.undoings = append(l.undoings, f) }

// mark is a point that the ledger can go back to.
type mark struct {
	counters
	woken                 time.Time
	firstEntry, lastEntry int64
	rows, undoings        int
}

func (l *ledger) mark() mark {
	return mark{l.counters, l.woken, l.firstEntry, l.lastEntry, len(l.rows), len(l.undoings)}
}

func (l *ledger) back(to mark) {
	for n := len(l.rows) - 1; n >= to.rows; n-- {
		l.move(l.rows[n].after, l.rows[n].before)
	}
	for n := len(l.undoings) - 1; n >= to.undoings; n-- {
		l.undoings[n]()
	}
	l.counters, l.woken, l.firstEntry, l.lastEntry = to.counters, to.woken, to.firstEntry, to.lastEntry
	clear(l.rows[to.rows:])
	l.rows = l.rows[:to.rows]
	clear(l.undoings[to.undoings:])
	l.undoings = l.undoings[:to.undoings]
}

// settled forgets how to take the batch back: it is durable.
func (l *ledger) settled() {
	l.stored = l.counters
	clear(l.keptChanged)
	clear(l.rows)
	l.rows = l.rows[:0]
	clear(l.undoings)
	l.undoings = l.undoings[:0]
}

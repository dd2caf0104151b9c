package verbs

import (
	"math"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// bounds are those of the set. What is beyond is forgotten after the batch, and
// loaded when it is needed.
type bounds struct {
	ready int // ready tasks of a queue
	rows  int // tasks in all
	turns int // tasks of a session that wait, about
	other int // queues, sessions, agents, docs
	bytes int // of docs
}

var wide = bounds{ready: 4096, rows: 50_000, turns: math.MaxInt, other: 100_000, bytes: 16 << 20}

// nearTurns is how many waiting tasks of a session are kept where the backend is
// in the process: more cost little there.
const nearTurns = 64

// boundless is for rows that the process has all the same.
var boundless = bounds{ready: wide.ready, rows: math.MaxInt, turns: math.MaxInt, other: math.MaxInt, bytes: math.MaxInt}

// settled makes what the batch changed the state of the backend, which it is
// when the delta has come there, and forgets what the next one will hardly need.
func (x *workingSet) settled() {
	x.stored = x.Counters
	for _, r := range x.changed {
		x.settledRow(r)
	}
	if x.keep.turns < math.MaxInt {
		for _, r := range x.changed {
			if r.task != nil && r.task.SessionID != "" {
				x.trimTurn(x.turns[r.task.SessionID])
			}
		}
	}
	for _, c := range x.bumped {
		c.changed = false
		x.trim(x.lines[c.queue])
	}
	for _, c := range x.counted {
		c.changed = false
	}
	for _, c := range x.limited {
		c.changed = false
	}
	for _, s := range x.slots {
		s.changed, s.before = false, nil
		if s.slot == nil {
			delete(x.agents[s.agent].rows, s.n)
		}
	}
	for _, r := range x.docs.changed {
		r.changed = false
		if !kept(r.doc.Kind) {
			x.docs.size -= len(r.doc.Body)
			x.docs.remove(r)
		} else if r.doc.Body == nil && r.kind.whole {
			x.docs.remove(r)
		}
	}
	x.clean()
	x.bound()
}

// bound forgets all if it is too much.
func (x *workingSet) bound() {
	others := len(x.lines) + len(x.turns) + len(x.queues) + len(x.limits) + len(x.agents) + len(x.counters) + len(x.docs.kinds) + x.docs.n
	if len(x.rows) > x.keep.rows || others > x.keep.other || x.docs.size > x.keep.bytes {
		x.forget()
	}
}

// clean forgets what the batch changed, apart from the changes.
func (x *workingSet) clean() {
	clear(x.changed)
	clear(x.slots)
	clear(x.bumped)
	clear(x.limited)
	clear(x.counted)
	clear(x.docs.changed)
	clear(x.claims)
	clear(x.entries)
	x.changed, x.slots, x.bumped, x.limited, x.counted = x.changed[:0], x.slots[:0], x.bumped[:0], x.limited[:0], x.counted[:0]
	x.docs.changed, x.claims, x.entries, x.cut, x.wrote, x.drafted = x.docs.changed[:0], x.claims[:0], x.entries[:0], 0, false, 0
	clear(x.fetched)
	if len(x.noID)+len(x.noKey) > 0 {
		clear(x.noID)
		clear(x.noKey)
	}
}

// clear empties the delta and keeps its room.
func (d *Delta) clear() {
	clear(d.Tasks)
	clear(d.Requests)
	clear(d.Results)
	clear(d.Slots)
	clear(d.Docs)
	clear(d.Entries)
	*d = Delta{
		Tasks: d.Tasks[:0], Requests: d.Requests[:0], Results: d.Results[:0], Queues: d.Queues[:0], Limits: d.Limits[:0],
		Slots: d.Slots[:0], Docs: d.Docs[:0], Entries: d.Entries[:0],
	}
}

func (x *workingSet) settledRow(r *row) {
	t, request := r.task, r.request
	known := t
	if t == nil {
		known = r.before
	}
	r.changed, r.before, r.request, r.result, r.draft = false, nil, nil, nil, draft{}
	switch {
	case t == nil || t.State.Terminal():
		x.requests.drop(known.Seq)
		x.release(r, known)
		x.dropTurn(known.SessionID)
	case t.State == signalbox.Pending:
		if request != nil {
			x.requests.keep(t.Seq, request)
		}
		if x.useless(t) {
			x.release(r, t)
		}
	default:
		x.requests.drop(t.Seq) // it was handed out
	}
}

// useless reports whether the set need not know a pending task: it waits for
// its time, or the set does not know all that stand before it.
func (x *workingSet) useless(t *signalbox.Task) bool {
	if x.needed(t) {
		return false
	}
	if !t.Ready {
		return true
	}
	l := x.line(t.Queue)
	x.complete(l)
	return !l.whole && l.upTo.Before(store.CursorOf(t))
}

// needed reports whether the set would be wrong about the session of a task
// without it.
func (x *workingSet) needed(t *signalbox.Task) bool {
	if t.SessionID == "" {
		return false
	}
	k := x.turns[t.SessionID]
	return k != nil && k.covers(t)
}

// trimTurn cuts a session of which too much is known. One of which next to nothing
// is known any more is to be loaded anew.
func (x *workingSet) trimTurn(k *turn) {
	if k == nil || !k.known {
		return
	}
	most, n := x.keep.turns, len(k.pending.spots)
	switch {
	case n > 2*most:
		k.upTo = cursorOf(&k.pending.spots[most-1])
		for n--; n >= most; n-- {
			if t := k.pending.spots[n].row.task; !k.covers(t) {
				x.release(k.pending.spots[n].row, t)
			}
		}
	case !k.whole() && n <= most/4:
		k.known = false
	}
}

// dropTurn forgets a session of which nothing waits or runs.
func (x *workingSet) dropTurn(session string) {
	if session == "" {
		return
	}
	if k := x.turns[session]; k != nil && !k.underWay() {
		delete(x.turns, session)
	}
}

// trim cuts a line that is too long.
func (x *workingSet) trim(l *line) {
	most := x.keep.ready
	if l == nil || len(l.spots) <= most+most/4 {
		return
	}
	l.whole, l.upTo = false, cursorOf(&l.spots[most-1])
	for n := len(l.spots) - 1; n >= most; n-- {
		if r := l.spots[n].row; !x.needed(r.task) {
			x.release(r, r.task)
		}
	}
}

package verbs

import (
	"math"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// bounds limit the size of the set. What exceeds them is unloaded after the batch.
type bounds struct {
	ready int // ready tasks of a queue
	rows  int // tasks in all
	turns int // waiting tasks of a session, approximately
	other int // queues, sessions, agents, docs
	bytes int // of docs
}

var defaultBounds = bounds{ready: 4096, rows: 50_000, turns: math.MaxInt, other: 100_000, bytes: 16 << 20}

// localTurns is how many waiting tasks of a session are kept if the backend is in the
// process, where loading more is cheap.
const localTurns = 64

// boundless is for rows that the process holds anyway.
var boundless = bounds{ready: defaultBounds.ready, rows: math.MaxInt, turns: math.MaxInt, other: math.MaxInt, bytes: math.MaxInt}

// committed makes the changes of the batch the predicted state of the backend, and unloads
// what the next one will hardly need.
func (x *workingSet) committed() {
	x.stored = x.Counters
	for _, r := range x.changed {
		x.committedRow(r)
	}
	if x.caps.turns < math.MaxInt {
		for _, r := range x.changed {
			if r.task != nil && r.task.SessionID != "" {
				x.trimTurns(x.turns[r.task.SessionID])
			}
		}
	}
	for _, c := range x.changedQueues {
		c.changed = false
		x.trim(x.readyQueues[c.queue])
	}
	for _, c := range x.changedCounters {
		c.changed = false
	}
	for _, c := range x.changedLimits {
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
		if !cached(r.doc.Kind) {
			x.docs.size -= len(r.doc.Body)
			x.docs.remove(r)
		} else if r.doc.Body == nil && r.kind.whole {
			x.docs.remove(r)
		}
	}
	x.clearChanges()
	x.bound()
}

// bound discards the set if it is too large.
func (x *workingSet) bound() {
	others := len(x.readyQueues) + len(x.turns) + len(x.queues) + len(x.limits) + len(x.agents) + len(x.counters) + len(x.docs.kinds) + x.docs.n
	if len(x.rows) > x.caps.rows || others > x.caps.other || x.docs.size > x.caps.bytes {
		x.forget()
	}
}

// clearChanges clears the lists of changes.
func (x *workingSet) clearChanges() {
	clear(x.changed)
	clear(x.slots)
	clear(x.changedQueues)
	clear(x.changedLimits)
	clear(x.changedCounters)
	clear(x.docs.changed)
	clear(x.claims)
	clear(x.entries)
	x.changed, x.slots, x.changedQueues, x.changedLimits, x.changedCounters = x.changed[:0], x.slots[:0], x.changedQueues[:0], x.changedLimits[:0], x.changedCounters[:0]
	x.docs.changed, x.claims, x.entries, x.journalCut, x.wrote, x.drafted = x.docs.changed[:0], x.claims[:0], x.entries[:0], 0, false, 0
	clear(x.fetched)
	if len(x.absentIDs)+len(x.absentKeys) > 0 {
		clear(x.absentIDs)
		clear(x.absentKeys)
	}
}

// clear empties the delta and keeps its capacity.
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

func (x *workingSet) committedRow(r *row) {
	t, request := r.task, r.request
	known := t
	if t == nil {
		known = r.before
	}
	r.changed, r.before, r.request, r.result, r.draft = false, nil, nil, nil, draft{}
	switch {
	case t == nil || t.State.Terminal():
		x.requests.drop(known.Seq)
		x.unload(r, known)
		x.dropTurns(known.SessionID)
	case t.State.Waiting():
		if !t.EditedAt.IsZero() {
			x.requests.drop(t.Seq)
		} else if request != nil {
			x.requests.keep(t.Seq, request)
		}
		if x.unneeded(t) {
			x.unload(r, t)
		}
	default:
		x.requests.drop(t.Seq) // it was passed on with the claim
	}
}

// unneeded reports whether a pending task can be unloaded: it is not due, or tasks ahead of
// it are not loaded.
func (x *workingSet) unneeded(t *signalbox.Task) bool {
	if x.needed(t) {
		return false
	}
	if !t.Ready {
		return true
	}
	l := x.readyQueue(t.Queue)
	x.updateComplete(l)
	return !l.complete && l.upTo.Before(store.CursorOf(t))
}

// needed reports whether the task's session would be wrong without it.
func (x *workingSet) needed(t *signalbox.Task) bool {
	if t.SessionID == "" {
		return false
	}
	k := x.turns[t.SessionID]
	return k != nil && k.covers(t)
}

// trimTurns unloads turns of a session with too many. If almost nothing of the session is known any more, it
// must be loaded again.
func (x *workingSet) trimTurns(k *sessionTurns) {
	if k == nil || !k.known {
		return
	}
	most, n := x.caps.turns, len(k.pending.items)
	switch {
	case n > 2*most:
		k.upTo = cursorOf(&k.pending.items[most-1])
		for n--; n >= most; n-- {
			if t := k.pending.items[n].row.task; !k.covers(t) {
				x.unload(k.pending.items[n].row, t)
			}
		}
	case !k.whole() && n <= most/4:
		k.known = false
	}
}

// dropTurns removes a session without waiting or running turns.
func (x *workingSet) dropTurns(session string) {
	if session == "" {
		return
	}
	if k := x.turns[session]; k != nil && !k.any() {
		delete(x.turns, session)
	}
}

// trim unloads the end of a queue that is too long.
func (x *workingSet) trim(l *readyQueue) {
	most := x.caps.ready
	if l == nil || len(l.items) <= most+most/4 {
		return
	}
	l.complete, l.upTo = false, cursorOf(&l.items[most-1])
	for n := len(l.items) - 1; n >= most; n-- {
		if r := l.items[n].row; !x.needed(r.task) {
			x.unload(r, r.task)
		}
	}
}

package verbs

import (
	"math"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// sessionTurns are the tasks of one session; one turn runs at a time.
type sessionTurns struct {
	// known: all tasks that are ready or in flight are loaded, and waiting ones up to upTo.
	known bool
	upTo  store.Cursor

	pending  sortedRows // OrderKey, Place
	inFlight sortedRows // OrderKey, Place
	ready    *row       // the pending one that may be claimed, if any
}

func (k *sessionTurns) setKnown(upTo store.Cursor) { k.known, k.upTo = true, upTo }

// whole reports whether all waiting and running tasks of the session are loaded.
func (k *sessionTurns) whole() bool { return k.known && k.upTo == EndOfLine }

// covers reports whether t, which has not ended, must be in the set.
func (k *sessionTurns) covers(t *signalbox.Task) bool {
	return k.known && (t.Ready || t.State.InFlight() || !k.upTo.Before(store.CursorOf(t)))
}

// headKnown reports whether it is known whose turn it is, even if one of the loaded tasks
// is removed.
func (k *sessionTurns) headKnown() bool {
	if !k.known || k.whole() {
		return k.known
	}
	due := 0
	for i := range k.pending.items {
		r := k.pending.items[i].row
		if k.upTo.Before(store.CursorOf(r.task)) {
			break
		}
		if r.task.Ready || r.task.NotBefore.IsZero() {
			if due++; due == 2 {
				return true
			}
		}
	}
	return false
}

func (x *workingSet) sessionTurns(session string) *sessionTurns {
	k := x.turns[session]
	if k == nil {
		k = &sessionTurns{}
		x.turns[session] = k
	}
	return k
}

// allTurns returns all turns of a session; missing is set if they are not loaded.
func (x *workingSet) allTurns(session string) *sessionTurns {
	k := x.sessionTurns(session)
	if !k.whole() {
		x.want.turn(session)
		x.missing = true
	}
	return k
}

// nextTurn returns the turns of a session for which headKnown holds; missing is set if they
// are not loaded.
func (x *workingSet) nextTurn(session string) *sessionTurns {
	k := x.sessionTurns(session)
	if k.headKnown() {
		return k
	}
	x.missing = true
	if k.known || x.caps.turns == math.MaxInt {
		x.want.turn(session)
	} else {
		x.want.head(session, x.caps.turns)
	}
	return k
}

func (k *sessionTurns) add(r *row) {
	t := r.task
	if t.State.InFlight() {
		k.inFlight.add(t.OrderKey(), t.Place, r)
		return
	}
	k.pending.add(t.OrderKey(), t.Place, r)
	if t.Ready {
		k.ready = r
	}
}

func (k *sessionTurns) remove(r *row) {
	t := r.task
	if t.State.InFlight() {
		k.inFlight.remove(t.OrderKey(), t.Place)
	} else {
		k.pending.remove(t.OrderKey(), t.Place)
	}
	if k.ready == r {
		k.ready = nil
	}
}

// busy reports whether a turn is ready, in flight or parked.
func (k *sessionTurns) busy() bool {
	return k.ready != nil || len(k.inFlight.items) > 0 ||
		slices.ContainsFunc(k.pending.items, func(i item) bool { return i.row.task.State == signalbox.Parked })
}

// any reports whether a turn is pending or in flight.
func (k *sessionTurns) any() bool { return len(k.pending.items)+len(k.inFlight.items) > 0 }

// next returns the task whose turn it is: none while one is in flight or the first one is parked, else the
// first that is due.
func (k *sessionTurns) next(now time.Time) *row {
	if len(k.inFlight.items) > 0 {
		return nil
	}
	for i := range k.pending.items {
		switch r := k.pending.items[i].row; {
		case r.task.State == signalbox.Parked:
			return nil
		case due(r.task, now):
			return r
		}
	}
	return nil
}

// due reports whether a pending task is due. A ready task stays ready when the clock goes
// back.
func due(t *signalbox.Task, now time.Time) bool { return t.Ready || !t.NotBefore.After(now) }

// settle updates readiness after r has changed. What it needs of r's session is loaded.
func (x *workingSet) settle(r *row, now time.Time) {
	t := r.task
	if t.SessionID != "" {
		x.settleSession(t.SessionID, now)
		return
	}
	if t.State == signalbox.Pending && !t.Ready && due(t, now) {
		x.setReady(r, true)
	}
}

func (x *workingSet) settleSession(session string, now time.Time) {
	if now.UnixMilli() < x.WokenMS {
		// The clock went back: what was due for Wake is not due now.
		x.WokenMS = now.UnixMilli()
	}
	k := x.sessionTurns(session)
	next, was := k.next(now), k.ready
	if next == was {
		return
	}
	if was != nil {
		x.setReady(was, false)
	}
	if next != nil {
		x.setReady(next, true)
	}
}

func (x *workingSet) setReady(r *row, ready bool) {
	t := *r.task
	t.Ready = ready
	x.change(r, &t)
}

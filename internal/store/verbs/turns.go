package verbs

import (
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// turn is what is going on in one session: one turn of it runs at a time.
type turn struct {
	// known says that the set knows all its tasks that are ready or in flight, and
	// those that wait up to a place.
	known bool
	upTo  store.Cursor

	pending sorted // OrderKey, Place
	flying  sorted // OrderKey, Place
	ready   *row   // the pending one that may be claimed, if any
}

// know notes up to where the set knows the session.
func (k *turn) know(upTo store.Cursor) { k.known, k.upTo = true, upTo }

// whole reports whether the set knows all tasks of the session that wait or run.
func (k *turn) whole() bool { return k.known && k.upTo == EndOfLine }

// covers reports whether the set would be wrong about the session without t, which
// has not ended.
func (k *turn) covers(t *signalbox.Task) bool {
	return k.known && (t.Ready || t.State.InFlight() || !k.upTo.Before(store.CursorOf(t)))
}

// enough reports whether the set knows whose turn it is, also when one of the
// tasks that it knows has gone.
func (k *turn) enough() bool {
	if !k.known || k.whole() {
		return k.known
	}
	due := 0
	for i := range k.pending.spots {
		r := k.pending.spots[i].row
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

func (x *workingSet) turn(session string) *turn {
	k := x.turns[session]
	if k == nil {
		k = &turn{}
		x.turns[session] = k
	}
	return k
}

// wholeTurn returns all of a session, if the set knows it; else it is short.
func (x *workingSet) wholeTurn(session string) *turn {
	k := x.turn(session)
	if !k.whole() {
		x.want.turn(session)
		x.short = true
	}
	return k
}

// headTurn returns a session of which the set knows whose turn it is, also after
// a change of one of its tasks; else it is short.
func (x *workingSet) headTurn(session string) *turn {
	k := x.turn(session)
	if k.enough() {
		return k
	}
	x.short = true
	if k.known || x.keep.turns == math.MaxInt {
		x.want.turn(session)
	} else {
		x.want.head(session, x.keep.turns)
	}
	return k
}

func (k *turn) add(r *row) {
	t := r.task
	if t.State.InFlight() {
		k.flying.add(t.OrderKey(), t.Place, r)
		return
	}
	k.pending.add(t.OrderKey(), t.Place, r)
	if t.Ready {
		k.ready = r
	}
}

func (k *turn) remove(r *row) {
	t := r.task
	if t.State.InFlight() {
		k.flying.remove(t.OrderKey(), t.Place)
	} else {
		k.pending.remove(t.OrderKey(), t.Place)
	}
	if k.ready == r {
		k.ready = nil
	}
}

// busy reports whether a turn is ready or in flight.
func (k *turn) busy() bool { return k.ready != nil || len(k.flying.spots) > 0 }

// underWay reports whether a turn is pending or in flight.
func (k *turn) underWay() bool { return len(k.pending.spots)+len(k.flying.spots) > 0 }

// next returns the task whose turn it is: none while one is in flight, else
// the first whose time has come.
func (k *turn) next(now time.Time) *row {
	if len(k.flying.spots) > 0 {
		return nil
	}
	for i := range k.pending.spots {
		if r := k.pending.spots[i].row; due(r.task, now) {
			return r
		}
	}
	return nil
}

// due reports whether a pending task's time has come. What has been ready
// stays so when the clock goes back.
func due(t *signalbox.Task, now time.Time) bool { return t.Ready || !t.NotBefore.After(now) }

// settle makes ready what should be, after r has changed. Where it is in a
// session, the set knows enough of that.
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
		// The clock went back: what Wake found due then is not due for us.
		x.WokenMS = now.UnixMilli()
	}
	k := x.turn(session)
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

package model

import (
	"time"

	"github.com/signalbox-ai/signalbox"
)

// sessionTurns is the turns of one session; one turn runs at a time.
type sessionTurns struct {
	pending  line // OrderKey, Place
	inFlight line // OrderKey, Place
	ready    *row // the pending one that may be claimed, if any
}

func (s *Store) listTalk(r *row) {
	t := &r.task
	if t.SessionID == "" || t.State.Terminal() {
		return
	}
	k := s.turns[t.SessionID]
	if k == nil {
		k = &sessionTurns{}
		s.turns[t.SessionID] = k
	}
	if t.State.InFlight() {
		k.inFlight.add(t.OrderKey(), t.Place, r)
		return
	}
	k.pending.add(t.OrderKey(), t.Place, r)
	if t.Ready {
		k.ready = r
	}
}

func (s *Store) unlistTalk(r *row) {
	t := &r.task
	if t.SessionID == "" || t.State.Terminal() {
		return
	}
	k := s.turns[t.SessionID]
	if t.State.InFlight() {
		k.inFlight.remove(t.OrderKey(), t.Place)
	} else {
		k.pending.remove(t.OrderKey(), t.Place)
	}
	if k.ready == r {
		k.ready = nil
	}
	if k.pending.empty() && k.inFlight.empty() {
		delete(s.turns, t.SessionID)
	}
}

// due reports whether a pending task is due. A ready task stays ready when the clock goes back.
func due(t *signalbox.Task, now time.Time) bool { return t.Ready || !t.NotBefore.After(now) }

// turn returns the task whose turn it is: none while one is in flight or the first one is parked, else the
// first that is due.
func (k *sessionTurns) turn(now time.Time) *row {
	if !k.inFlight.empty() {
		return nil
	}
	for _, p := range k.pending.spots {
		switch {
		case p.row.task.State == signalbox.Parked:
			return nil
		case due(&p.row.task, now):
			return p.row
		}
	}
	return nil
}

// mayBeReady reports whether the pending task r would be ready at now.
func (s *Store) mayBeReady(r *row, now time.Time) bool {
	if r.task.SessionID == "" {
		return due(&r.task, now)
	}
	return s.turns[r.task.SessionID].turn(now) == r
}

// settle updates readiness after r has changed.
func (s *Store) settle(r *row, now time.Time) {
	if r.task.SessionID != "" {
		s.settleSession(r.task.SessionID, now)
		return
	}
	if r.task.State == signalbox.Pending && !r.task.Ready && due(&r.task, now) {
		s.setReady(r, true)
	}
}

func (s *Store) settleSession(id string, now time.Time) {
	k := s.turns[id]
	if k == nil {
		return
	}
	turn, was := k.turn(now), k.ready
	if turn == was {
		return
	}
	if was != nil {
		s.setReady(was, false)
	}
	if turn != nil {
		s.setReady(turn, true)
	}
}

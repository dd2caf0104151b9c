package model

import (
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// row is a task with its request and result.
type row struct {
	task    signalbox.Task
	request signalbox.Request
	result  signalbox.Result
	stales  []signalbox.Stale // by Fence
}

// replace replaces the contents of a row and updates its position in every line.
func (s *Store) replace(r *row, t signalbox.Task) {
	s.unlist(r)
	r.task = t
	s.list(r)
}

func (s *Store) setReady(r *row, ready bool) {
	t := r.task
	t.Ready = ready
	s.replace(r, t)
}

// list adds a row to every line that it belongs to in its state.
func (s *Store) list(r *row) {
	t := &r.task
	s.listTalk(r)
	switch {
	case t.State.Waiting():
		s.listPending(r)
	case t.State.InFlight():
		s.inFlight.add(t.Fence, 0, r)
	default:
		s.ended.add(t.EndedAt.UnixMilli(), t.Seq, r)
	}
}

func (s *Store) listPending(r *row) {
	t := &r.task
	key := t.OrderKey()
	s.pending.add(key, t.Place, r)
	s.waiting.add(t.Queue, key, t.Place, r)
	s.created.add(t.CreatedAt.UnixMilli(), t.Seq, r)
	s.limits[t.Limit]++
	if t.Ready {
		s.ready.add(t.Queue, key, t.Place, r)
	} else if !t.NotBefore.IsZero() {
		s.timed.add(t.NotBefore.UnixMilli(), t.Place, r)
	}
	if !t.WaitUntil.IsZero() {
		s.bounded.add(t.WaitUntil.UnixMilli(), t.Place, r)
	}
}

// unlist removes a row from every line that list added it to.
func (s *Store) unlist(r *row) {
	t := &r.task
	s.unlistTalk(r)
	switch {
	case t.State.Waiting():
		s.unlistPending(r)
	case t.State.InFlight():
		s.inFlight.remove(t.Fence, 0)
	default:
		s.ended.remove(t.EndedAt.UnixMilli(), t.Seq)
	}
}

func (s *Store) unlistPending(r *row) {
	t := &r.task
	key := t.OrderKey()
	s.pending.remove(key, t.Place)
	s.waiting.remove(t.Queue, key, t.Place)
	s.created.remove(t.CreatedAt.UnixMilli(), t.Seq)
	if s.limits[t.Limit]--; s.limits[t.Limit] == 0 {
		delete(s.limits, t.Limit)
	}
	if t.Ready {
		s.ready.remove(t.Queue, key, t.Place)
	} else if !t.NotBefore.IsZero() {
		s.timed.remove(t.NotBefore.UnixMilli(), t.Place)
	}
	if !t.WaitUntil.IsZero() {
		s.bounded.remove(t.WaitUntil.UnixMilli(), t.Place)
	}
}

func copyAgent(a signalbox.Agent) signalbox.Agent {
	a.SealedToken = slices.Clone(a.SealedToken)
	return a
}

package model

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Apply writes a change if the row still has the revision that the change was made from.
func (s *Store) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Task{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(c.Task.ID)
	if err != nil {
		return signalbox.Task{}, err
	}
	if r.task.Rev != c.Task.Rev {
		return signalbox.Task{}, store.ErrStale
	}
	if c.Slot == signalbox.SlotTake {
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeConflict, "task %s: a slot is taken by Claim, not by Apply", c.Task.ID)
	}
	before := r.task
	after := s.merge(&before, &c)
	if held, known := s.sessions[after.SessionID]; c.Session && known && store.HeldByOther(&held, &before, &after) {
		after.SessionID, c.Session = "", false
	}
	s.replace(r, after)
	s.applySlot(&c)
	if c.Request != nil {
		env := r.request.SealedEnv
		r.request = *c.Request.Clone()
		r.request.SealedEnv = env
	}
	if c.Result != nil {
		r.result = *c.Result.Clone()
	}
	s.use(c.Used())
	if r.task.State.Terminal() {
		r.request.SealedEnv = nil
	}
	if c.Session {
		s.bind(&before, &r.task, now)
	}
	s.settle(r, now)
	s.note(c.Entry)
	if c.Account != nil {
		s.changeAccount(*c.Account)
	}
	return r.task, nil
}

// merge returns the changed row. What the store sets comes from the stored row, never from the caller.
func (s *Store) merge(before *signalbox.Task, c *signalbox.Change) signalbox.Task {
	t := c.Task
	t.Seq, t.Rev = before.Seq, before.Rev+1
	t.Place, t.EnqueuedAt = before.Place, before.EnqueuedAt
	t.IdempotencyKey = before.IdempotencyKey // the key index depends on it
	t.Ready = before.Ready && t.State == signalbox.Pending && c.Order != signalbox.OrderBack
	switch c.Order {
	case signalbox.OrderBack:
		s.enqueue(&t, c.Entry.At)
	case signalbox.OrderTop:
		s.lastPlace++
		t.Bias = time.Duration(t.EnqueuedAt.UnixMilli()+s.lastPlace) * time.Millisecond
	}
	return t
}

// bind stores which agent holds the task's session. Its waiting tasks that any agent could take move to that
// agent's queue. This changes their revision, so that a change made from an older read is stale.
func (s *Store) bind(before, t *signalbox.Task, now time.Time) {
	if t.SessionID == "" || t.Agent == "" {
		return
	}
	var was *signalbox.Session
	if held, known := s.sessions[t.SessionID]; known {
		was = &held
	}
	s.keepSession(store.BindSession(was, before, t, now))
	k := s.turns[t.SessionID]
	if k == nil {
		return
	}
	for _, p := range append([]spot(nil), k.pending.spots...) {
		moved := p.row.task
		if _, own := signalbox.QueueAgent(moved.Queue); own {
			continue
		}
		moved.Queue = signalbox.AgentQueue(t.Agent)
		moved.Rev++
		s.replace(p.row, moved)
	}
}

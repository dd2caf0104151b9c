package model

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Submit stores a new pending task. A known idempotency key is answered before limits are checked: what was
// accepted once stays accepted.
func (s *Store) Submit(ctx context.Context, sub store.Submission) (store.Submitted, error) {
	if err := s.lock(ctx); err != nil {
		return store.Submitted{}, err
	}
	defer s.mu.Unlock()
	if known := s.known(&sub.Task); known != nil {
		return store.Replay(&known.task, &sub.Task)
	}
	s.chooseSession(&sub.Task, sub.Chat)
	if sub.FollowSession {
		s.followSession(&sub.Task)
	}
	if err := s.admit(&sub); err != nil {
		return store.Submitted{}, err
	}
	r := &row{task: sub.Task, request: *sub.Request.Clone()}
	s.lastSeq++
	r.task.Seq, r.task.Rev, r.task.Ready = s.lastSeq, 1, false
	s.enqueue(&r.task, sub.Now)
	s.setCurrentSession(&r.task, sub.Chat, sub.Now)
	s.rows[r.task.ID] = r
	s.submitted.add(r.task.Seq, 0, r)
	if r.task.IdempotencyKey != "" {
		s.keys[r.task.IdempotencyKey] = r
	}
	s.list(r)
	s.settle(r, sub.Now)
	s.note(signalbox.SubmitEntry(&r.task, sub.Now))
	return store.Submitted{Task: r.task, Depth: s.limits[r.task.Limit]}, nil
}

func (s *Store) known(t *signalbox.Task) *row {
	if t.IdempotencyKey == "" {
		return nil
	}
	return s.keys[t.IdempotencyKey]
}

func (s *Store) admit(sub *store.Submission) error {
	if s.rows[sub.Task.ID] != nil {
		return signalbox.Errorf(signalbox.CodeConflict, "there is a task %s already", sub.Task.ID)
	}
	if err := s.checkChatSession(&sub.Task, sub.Chat); err != nil {
		return err
	}
	n := s.limits[sub.Task.Limit]
	if sub.Room != nil {
		c := s.occupancy(&sub.Task, sub.Room, sub.Now)
		if err := sub.Room.Admit(&sub.Task, c); err != nil {
			return err
		}
		n -= sub.Room.Starting(c)
	}
	if sub.Cap > 0 && n >= sub.Cap {
		return signalbox.Errorf(signalbox.CodeQueueFull, "queue is at capacity (%d tasks)", sub.Cap)
	}
	return nil
}

// occupancy counts what is ahead of a task.
func (s *Store) occupancy(t *signalbox.Task, r *store.Room, now time.Time) *store.Occupancy {
	sort := store.SlotSort(r.Isolated)
	c := &store.Occupancy{
		Fleet: s.inUse[sort], Waiting: len(s.waiting.get(t.Queue).spots), NotDue: t.NotBefore.After(now),
		Paused: s.paused("", now) || s.paused(t.Queue, now),
	}
	for _, a := range r.Agents {
		if !r.Isolated && s.drained(a.Name, now) {
			c.Drained++
			continue
		}
		c.AddAgent(a.Slots, s.used[sort][a.Name])
	}
	for _, queue := range r.Queues {
		c.Ready += len(s.ready.get(queue).spots)
	}
	if k := s.turns[t.SessionID]; k != nil {
		c.TurnBusy = k.ready != nil || !k.inFlight.empty() || slices.ContainsFunc(k.pending.spots, func(p spot) bool { return p.row.task.State == signalbox.Parked })
	}
	return c
}

// enqueue gives t the next place. EnqueuedAt never decreases, so a clock that jumps back lets no task jump
// the queue.
func (s *Store) enqueue(t *signalbox.Task, now time.Time) {
	if now.After(s.enqueued) {
		s.enqueued = now
	}
	s.lastPlace++
	t.EnqueuedAt, t.Place = s.enqueued, s.lastPlace
}

// followSession sets a task's queue to that of the agent that holds its session.
func (s *Store) followSession(t *signalbox.Task) {
	if t.SessionID == "" {
		return
	}
	if held, ok := s.sessions[t.SessionID]; ok {
		t.Queue = signalbox.AgentQueue(held.Agent)
	}
}

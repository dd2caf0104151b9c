package model

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// findEndings is among how many of the newest tasks Find searches for endings.
const findEndings = 10_000

// Task returns the row of id, or CodeNotFound.
func (s *Store) Task(ctx context.Context, id string) (signalbox.Task, error) {
	r, err := s.read(ctx, id)
	return r.task, err
}

// Tasks returns the rows of those tasks that exist.
func (s *Store) Tasks(ctx context.Context, ids []string) (there []signalbox.Task, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, id := range ids {
		if r, err := s.find(id); err == nil {
			there = append(there, r.task)
		}
	}
	return there, nil
}

// Whole returns everything stored of a task.
func (s *Store) Whole(ctx context.Context, id string) (store.Whole, error) {
	if err := s.lock(ctx); err != nil {
		return store.Whole{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return store.Whole{}, err
	}
	return store.Whole{
		Task: r.task, Request: *r.request.Clone(), Result: *r.result.Clone(), Stales: copyStales(r.stales), Position: s.position(r),
	}, nil
}

// Request returns the request of a task.
func (s *Store) Request(ctx context.Context, id string) (signalbox.Request, error) {
	r, err := s.read(ctx, id)
	return r.request, err
}

// Result returns the result of a task.
func (s *Store) Result(ctx context.Context, id string) (signalbox.Result, error) {
	r, err := s.read(ctx, id)
	return r.result, err
}

// read returns a copy of a row.
func (s *Store) read(ctx context.Context, id string) (row, error) {
	if err := s.lock(ctx); err != nil {
		return row{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return row{}, err
	}
	return row{task: r.task, request: *r.request.Clone(), result: *r.result.Clone()}, nil
}

// Find returns the ids that start or end with part, newest first.
func (s *Store) Find(ctx context.Context, part string, limit int) ([]string, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var ids []string
	for n, p := range slices.Backward(s.submitted.spots) {
		if len(ids) >= limit {
			break
		}
		recent := len(s.submitted.spots)-n <= findEndings
		id := p.row.task.ID
		if strings.HasPrefix(id, part) || (recent && strings.HasSuffix(id, part)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Position returns the task's position in its queue. It is always exact here, but marked Approximate where
// the contract says so.
func (s *Store) Position(ctx context.Context, id string) (store.Position, error) {
	if err := s.lock(ctx); err != nil {
		return store.Position{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return store.Position{}, err
	}
	return s.position(r), nil
}

func (s *Store) position(r *row) store.Position {
	if !r.task.State.Waiting() {
		return store.Position{}
	}
	n := s.waiting.get(r.task.Queue).rank(r.task.OrderKey(), r.task.Place) + 1
	return store.Position{N: n, Approximate: n > store.MaxExactPosition}
}

// Counts returns how many tasks wait and run.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	if err := s.lock(ctx); err != nil {
		return store.Counts{}, err
	}
	defer s.mu.Unlock()
	return s.counts(), nil
}

// Lengths returns how many tasks wait in each of these queues.
func (s *Store) Lengths(ctx context.Context, queues ...string) ([]int, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	n := make([]int, len(queues))
	for i, queue := range queues {
		if l := s.waiting[queue]; l != nil {
			n[i] = len(l.spots)
		}
	}
	return n, nil
}

func (s *Store) counts() store.Counts {
	c := store.Counts{
		Queues:   map[string]int{},
		Limits:   maps.Clone(s.limits),
		Pending:  len(s.pending.spots),
		InFlight: map[signalbox.State]int{},
	}
	for queue, l := range s.waiting {
		c.Queues[queue] = len(l.spots)
	}
	for _, p := range s.inFlight.spots {
		c.InFlight[p.row.task.State]++
	}
	if !s.created.empty() {
		c.Oldest = s.created.spots[0].row.task.CreatedAt
	}
	return c
}

// Agents lists the agents by name.
func (s *Store) Agents(ctx context.Context) ([]signalbox.Agent, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var agents []signalbox.Agent
	for _, name := range slices.Sorted(maps.Keys(s.agents)) {
		agents = append(agents, copyAgent(s.agents[name]))
	}
	return agents, nil
}

// Slots lists the slots in use by agent and slot.
func (s *Store) Slots(ctx context.Context) ([]signalbox.Slot, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.slotRows(), nil
}

func (s *Store) slotRows() []signalbox.Slot {
	var slots []signalbox.Slot
	for _, used := range s.slots {
		for _, row := range used {
			slots = append(slots, *row)
		}
	}
	slices.SortFunc(slots, func(a, b signalbox.Slot) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Slot, b.Slot))
	})
	return slots
}

// Pauses lists the pauses by queue.
func (s *Store) Pauses(ctx context.Context) ([]signalbox.Pause, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.pauseRows(), nil
}

func (s *Store) pauseRows() []signalbox.Pause {
	var pauses []signalbox.Pause
	for _, queue := range slices.Sorted(maps.Keys(s.pauses)) {
		pauses = append(pauses, s.pauses[queue])
	}
	return pauses
}

// Journal returns entries with a Seq above after, oldest first.
func (s *Store) Journal(ctx context.Context, after int64, limit int) ([]signalbox.Entry, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if len(s.journal) == 0 || limit <= 0 {
		return nil, nil
	}
	from := min(max(0, after-s.journal[0].Seq+1), int64(len(s.journal)))
	rest := s.journal[from:]
	return slices.Clone(rest[:min(limit, len(rest))]), nil
}

// JournalRange returns the oldest and newest Seq that Journal can return.
func (s *Store) JournalRange(ctx context.Context) (oldest, newest int64, err error) {
	if err := s.lock(ctx); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	if len(s.journal) == 0 {
		return 0, 0, nil
	}
	return s.journal[0].Seq, s.lastEntry, nil
}

// Durations returns the run times of the newest completed tasks of an agent.
func (s *Store) Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var took []time.Duration
	for _, p := range slices.Backward(s.ended.spots) {
		if len(took) >= limit {
			break
		}
		if t := &p.row.task; t.State == signalbox.Completed && t.Agent == agent {
			took = append(took, max(0, t.EndedAt.Sub(t.StartedAt)))
		}
	}
	return took, nil
}

// ByKey returns the row of the task with an idempotency key.
func (s *Store) ByKey(ctx context.Context, key string) (signalbox.Task, error) {
	if err := s.lock(ctx); err != nil {
		return signalbox.Task{}, err
	}
	defer s.mu.Unlock()
	if r := s.keys[key]; r != nil {
		return r.task, nil
	}
	return signalbox.Task{}, store.UnknownKey(key)
}

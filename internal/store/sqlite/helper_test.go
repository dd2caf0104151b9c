package sqlite

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func clock() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// newSubmission makes one for the queue "work", with an id of its own.
func newSubmission() store.Submission {
	at := clock()
	id, err := signalbox.NewID(at, rand.Reader)
	if err != nil {
		panic(err)
	}
	return store.Submission{
		Task: signalbox.Task{
			ID: id, State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, MaxAttempts: 3,
			Source: signalbox.SourceAPI, OnLost: signalbox.LostFail, Preview: "do it", CreatedAt: at,
		},
		Request: signalbox.Request{Prompt: "do it"}, Now: at,
	}
}

func mustSubmit(t *testing.T, s *Store) signalbox.Task {
	t.Helper()
	got, err := s.Submit(context.Background(), newSubmission())
	if err != nil {
		t.Fatal(err)
	}
	return got.Task
}

func newClaim(agent string) store.ClaimRequest {
	at := clock()
	return store.ClaimRequest{
		Agent: agent, AgentURL: "http://" + agent, Slots: 1, Queues: []string{signalbox.AgentQueue(agent), signalbox.QueueWork},
		Now: at, Expires: at.Add(time.Minute),
	}
}

func apply(s *Store, t signalbox.Task, ev signalbox.Event) (signalbox.Task, error) {
	ev.Now, ev.Fence = clock(), t.Fence
	c, err := signalbox.Next(t, ev)
	if err != nil {
		return t, err
	}
	return s.Apply(context.Background(), c, ev.Now)
}

// exact wants ledger and board to be what a new open would make of the file.
func exact(t *testing.T, s *Store) {
	t.Helper()
	err := s.do(context.Background(), 0, func(w *writer) error {
		fresh := &Store{opts: s.opts}
		fresh.board.init()
		fresh.writer = &writer{conn: w.conn, store: fresh}
		fresh.writer.ledger.init()
		if _, err := fresh.load(); err != nil {
			return err
		}
		same(t, "ledger", ledgerView(&w.ledger), ledgerView(&fresh.writer.ledger))
		same(t, "board", boardView(&s.board), boardView(&fresh.board))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-in the file +in memory):\n%s", what, d)
	}
}

func ledgerView(l *ledger) map[string]any {
	slots := map[string]map[int]int64{}
	for agent, used := range l.slots {
		if len(used.rows) == 0 {
			continue
		}
		slots[agent] = map[int]int64{-1: int64(used.count[store.CommonSlots]), -2: int64(used.count[store.IsolatedSlots])}
		for n, row := range used.rows {
			slots[agent][n] = row.fence
			if row.withheld {
				slots[agent][n] = -row.fence
			}
		}
	}
	return map[string]any{
		"counters": []any{l.seq, l.place, l.fence, l.entry, l.enqueued, l.commits, l.ticketPlace, l.ticketFence}, "limits": l.limits, "lines": l.lines, "ready": l.ready, "turn": l.turn,
		"loose": l.loose, "flying": l.flying, "hot": l.hot, "slots": slots, "in use": l.inUse, "agents": l.agents, "pauses": l.pauses,
		"journal": []int64{l.firstEntry, l.lastEntry},
	}
}

func boardView(b *board) map[string]any {
	b.mu.RLock()
	defer b.mu.RUnlock()
	lines := map[string][]int64{}
	for queue, l := range b.lines {
		lines[queue] = spotsOf(l)
	}
	return map[string]any{
		"lines": lines, "oldest": spotsOf(&b.oldest), "limits": b.limits, "flight": b.flight, "agents": b.agents,
		"pauses": b.pauses, "journal": []int64{b.firstEntry, b.lastEntry, b.commits}, "runs": runsView(b.runs),
	}
}

func runsView(all map[string]runs) map[string][]int64 {
	flat := map[string][]int64{}
	for agent, list := range all {
		for _, r := range list {
			flat[agent] = append(flat[agent], r.key, r.tie, int64(r.took))
		}
	}
	return flat
}

func spotsOf(l *line) (flat []int64) {
	for _, p := range l.parts {
		for _, s := range p {
			flat = append(flat, s.key, s.tie)
		}
	}
	return flat
}

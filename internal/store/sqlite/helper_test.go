package sqlite

import (
	"bytes"
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

// newSubmission returns a submission for the queue "work", with a unique id.
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

// exact checks that the live totals equal those of a new open.
func exact(t *testing.T, s *Store) {
	t.Helper()
	b := s.backend
	fresh := &Backend{opts: b.opts, givenKey: b.givenKey, log: b.log, writer: b.writer}
	if _, err := fresh.fill(context.Background()); err != nil {
		t.Fatal(err)
	}
	same(t, "live totals", boardView(&b.totals), boardView(&fresh.totals))
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-in the file +in memory):\n%s", what, d)
	}
}

func boardView(b *liveTotals) map[string]any {
	b.mu.RLock()
	defer b.mu.RUnlock()
	lines := map[string][]int64{}
	for queue, l := range b.lines {
		lines[queue] = spotsOf(l)
	}
	return map[string]any{
		"counters": b.Counters, "lines": lines, "ready": b.ready, "oldest": spotsOf(&b.oldest), "limits": b.limits,
		"flight": b.inFlight, "in use": b.inUse, "journal": []int64{b.firstEntry, b.lastEntry, b.prunedUpTo}, "runs": runsView(b.runs),
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

func spotsOf(l *rankedList) (flat []int64) {
	for _, p := range l.chunks {
		for _, s := range p {
			flat = append(flat, s.key, s.tie)
		}
	}
	return flat
}

// keyOfAll returns a key that repeats one byte.
func keyOfAll(b byte) func() ([]byte, error) {
	return func() ([]byte, error) { return bytes.Repeat([]byte{b}, KeyBytes), nil }
}

// waiting is how many tasks wait.
func waiting(t *testing.T, s *Store) int {
	t.Helper()
	n, err := s.Counts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return n.Pending
}

// runSQL runs SQL on the connection that writes, which must be idle.
func runSQL(t *testing.T, s *Store, sql string) {
	t.Helper()
	if _, err := s.backend.writer.exec(sql); err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
}

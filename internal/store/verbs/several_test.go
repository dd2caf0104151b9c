package verbs_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Several processes over one server that sometimes fails: acknowledged data is stored once, each task runs
// once, and all invariants hold.
func TestSeveralProcesses(t *testing.T) {
	open := func(t *testing.T, srv *server) (stores []*verbs.Shared) {
		for range processes {
			stores = append(stores, srv.open(t, verbs.Options{}))
		}
		return stores
	}
	t.Run("no faults", func(t *testing.T) { several(t, open, nil) })
	t.Run("faults", func(t *testing.T) { several(t, open, nowAndThen) })
}

// nowAndThen returns a random fault, rarely.
func nowAndThen(call string, _ *verbs.Delta) fault {
	n := rand.IntN(100)
	switch {
	case call == "commit" && n < 12:
		return []fault{moved, unknownStored, unknownLost, away}[n%4]
	case n < 3:
		return away
	}
	return works
}

const (
	processes = 3
	workers   = 4 // of each process: the same number submit and run tasks
	each      = 15
)

func several(t *testing.T, open func(*testing.T, *server) []*verbs.Shared, fault func(string, *verbs.Delta) fault) {
	srv := newServer(t)
	stores := open(t, srv)
	srv.setFault(fault)
	var stored sync.Map
	var wg sync.WaitGroup
	var ended atomic.Int64
	for p, s := range stores {
		for w := range workers {
			wg.Go(func() { submitSome(t, s, &stored) })
			wg.Go(func() { runSome(t, s, fmt.Sprintf("agent-%d-%d", p, w%2), &ended) })
		}
	}
	wg.Wait()
	srv.setFault(nil)
	if err := storetest.Invariants(ctx, stores[0]); err != nil {
		t.Error(err)
	}
	eventsOf(t, stores[1], &stored)
	if n := pending(t, stores[2]); n != 0 {
		t.Errorf("%d tasks wait still", n)
	}
}

func submitSome(t *testing.T, s *verbs.Shared, stored *sync.Map) {
	for range each {
		sub := newSubmission()
		sub.Request.Prompt = sub.Task.ID
		got, err := s.Submit(ctx, sub)
		if err != nil {
			t.Error(err)
			return
		}
		stored.Store(got.Task.ID, got.Task.Seq)
	}
}

// runSome claims and finishes tasks until all have ended.
func runSome(t *testing.T, s *verbs.Shared, agent string, ended *atomic.Int64) {
	for ended.Load() < processes*workers*each {
		c := newClaim(agent, 1)
		c.Queues = []string{signalbox.QueueWork}
		var got store.Claimed
		var err error
		testkit.Within(patient, func() bool {
			got, err = s.Claim(ctx, c)
			return err != nil || got.Found || ended.Load() == processes*workers*each
		})
		if err != nil {
			t.Error(err)
			return
		}
		if !got.Found {
			continue
		}
		if got.Request.Prompt != got.Task.ID {
			t.Errorf("a claim with what was asked for of another task, or nothing: %+v", got)
		}
		if _, err := happen(s, got.Task, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}); err != nil {
			t.Error(err)
			return
		}
		ended.Add(1)
	}
}

// eventsOf wants each task to have been stored, claimed and ended once, and the journal to have no gaps.
func eventsOf(t *testing.T, s *verbs.Shared, stored *sync.Map) {
	t.Helper()
	entries, err := s.Journal(ctx, 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]map[signalbox.EventKind]int{}
	fences := map[int64]bool{}
	for n, e := range entries {
		if e.Seq != int64(n)+1 {
			t.Fatalf("entry %d has the number %d", n+1, e.Seq)
		}
		if events[e.QueueID] == nil {
			events[e.QueueID] = map[signalbox.EventKind]int{}
		}
		events[e.QueueID][e.Kind]++
		if e.Kind == signalbox.EventClaim && fences[e.Fence] {
			t.Errorf("fence %d was given twice", e.Fence)
		}
		fences[e.Fence] = true
	}
	if len(events) != processes*workers*each {
		t.Errorf("%d tasks are stored, want %d", len(events), processes*workers*each)
	}
	stored.Range(func(id, _ any) bool {
		e := events[id.(string)]
		if e[signalbox.EventSubmit] != 1 || e[signalbox.EventClaim] != 1 || e[signalbox.EventFinish] != 1 {
			t.Errorf("task %v has the events %v", id, e)
		}
		return true
	})
}

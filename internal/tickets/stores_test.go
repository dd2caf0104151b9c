package tickets_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// stores opens a store for each of several processes, all over the same rows.
var stores = map[string]func(t *testing.T) (open func() store.Store){
	"memory": func(*testing.T) func() store.Store {
		s := memory.New(memory.Options{ID: "m"})
		return func() store.Store { return s }
	},
	"sqlite": func(t *testing.T) func() store.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "s.db")})
		return func() store.Store { return closed(t, s, err) }
	},
	"postgres": func(t *testing.T) func() store.Store {
		url := testserver.Postgres(t)
		return func() store.Store { return over(t)(postgres.Open(t.Context(), postgres.Options{URL: url})) }
	},
	"redis": func(t *testing.T) func() store.Store {
		url := testserver.Redis(t)
		return func() store.Store { return over(t)(redis.Open(t.Context(), redis.Options{URL: url})) }
	},
}

func over(t *testing.T) func(g verbs.SharedBackend, err error) store.Store {
	return func(g verbs.SharedBackend, err error) store.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s, err := verbs.NewShared(t.Context(), g, verbs.Options{})
		return closed(t, s, err)
	}
}

func closed(t *testing.T, s store.Store, err error) store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// listen notifies a process when its store signals a change by another, like a director.
func (p *process) listen(t *testing.T, s store.Store) {
	shared, ok := s.(store.Shared)
	if !ok {
		return
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-shared.Changed():
				p.Notify()
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// On every store: capacity, order, and what a dead process leaves, with processes that each have their own
// connection.
func TestProcessesOverEachStore(t *testing.T) {
	for name, opener := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := opener(t)
			t.Run("slots", func(t *testing.T) { slotsOver(t, open) })
			t.Run("order", func(t *testing.T) { orderOver(t, open) })
			t.Run("death", func(t *testing.T) { deathOver(t, open) })
			t.Run("rate", func(t *testing.T) { rateOver(t, open) })
			t.Run("closing", func(t *testing.T) { closingOver(t, open) })
		})
	}
}

func joinOver(t *testing.T, open func() store.Store, name string, lasts time.Duration, c toolqueue.Config) *process {
	t.Helper()
	s := open()
	p := joinWithin(t, s, name, lasts, toolqueue.Hooks{}, queue(c))
	p.listen(t, s)
	return p
}

func slotsOver(t *testing.T, open func() store.Store) {
	const slots, processes, workers, each = 3, 3, 4, 4
	var running, most, calls atomic.Int32
	var all sync.WaitGroup
	for i := range processes {
		p := joinOver(t, open, fmt.Sprint("p", i), lease, toolqueue.Config{Concurrent: slots})
		for range workers {
			all.Go(func() {
				for range each {
					permit, err := p.Acquire(context.Background(), "q", Tool("t"))
					if err != nil {
						t.Error(err)
						return
					}
					now := running.Add(1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					time.Sleep(time.Millisecond)
					running.Add(-1)
					calls.Add(1)
					permit.Release()
				}
			})
		}
	}
	all.Wait()
	if most.Load() > slots || calls.Load() != processes*workers*each {
		t.Fatalf("%d calls, at most %d at once on %d slots", calls.Load(), most.Load(), slots)
	}
}

func orderOver(t *testing.T, open func() store.Store) {
	c := toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Minute}}
	a, b := joinOver(t, open, "a", lease, c), joinOver(t, open, "b", lease, c)
	held := a.take(t, In("s", "holder"))
	var line []*Call
	for i := range 6 {
		line = append(line, []*process{a, b}[i%2].start(t, Tool(fmt.Sprint(i)), 0))
	}
	next := b.start(t, In("s", "next of the session"), 0)
	held.Release()
	held = next.Has()
	b.EndSession("s")
	for i, c := range line {
		if !c.Waits() {
			t.Fatalf("call %d got a slot that was taken", i)
		}
		held.Release()
		held = c.Has()
	}
	held.Release()
}

func deathOver(t *testing.T, open func() store.Store) {
	const lasts = 2 * time.Second
	c := toolqueue.Config{Concurrent: 1}
	a, b := joinOver(t, open, "a", lasts, c), joinOver(t, open, "b", lasts, c)
	held := a.take(t, Tool("holder"))
	waits := b.start(t, Tool("next"), 0)
	time.Sleep(lasts + lasts/2) // it is kept
	if lost(held) || !waits.Waits() {
		t.Fatal("a slot that was kept is lost")
	}
	a.wire.sever()
	began := time.Now()
	next := waits.Has()
	if !lost(held) {
		t.Fatal("two hold the slot, and neither knows")
	}
	t.Logf("the slot of a dead process was free after %s", time.Since(began))
	next.Release()
}

package engine_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// countingStore counts reads of agents' run times, and can make one of them wait.
type countingStore struct {
	store.Store
	reads, counts atomic.Int64
	rows          atomic.Int64                  // waiting tasks that were read
	hold          atomic.Pointer[chan struct{}] // a reader sends on it, and continues after its next value
}

func (a *countingStore) Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error) {
	a.reads.Add(1)
	if c := a.hold.Swap(nil); c != nil {
		*c <- struct{}{}
		<-*c
	}
	return a.Store.Durations(ctx, agent, limit)
}

// Counts returns the counts of all queues: no log line needs them for one queue.
func (a *countingStore) Counts(ctx context.Context) (store.Counts, error) {
	a.counts.Add(1)
	return a.Store.Counts(ctx)
}

func (a *countingStore) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	page, err := a.Store.Waiting(ctx, queue, after, limit)
	a.rows.Add(int64(len(page)))
	return page, err
}

func TestSubmitCountsOnlyItsQueue(t *testing.T) {
	s := &countingStore{Store: openStore(t)}
	b := newFixtureOver(t, s)
	b.submit(engine.NewTask{})
	b.submit(engine.NewTask{})
	if n := s.counts.Load(); n != 0 || !strings.Contains(b.log.String(), " depth=2 ") {
		t.Errorf("two submits asked %d times for all counts; the log: %s", n, b.log)
	}
}

// With hundreds of agents an estimate takes as many reads: when every concurrent caller refreshed it, a
// submit took seconds.
func TestOneCallerRefreshesAnEstimate(t *testing.T) {
	s := &countingStore{Store: openStore(t)}
	b := newFixtureOver(t, s)
	a := b.agent("coder", "demo", 1)
	for range 5 {
		b.submit(engine.NewTask{})
		b.run(a, time.Minute)
	}
	b.see(engine.LiveAgent{Agent: a, Up: true, InUse: 1})
	b.pass(2 * time.Second)
	id := b.submit(engine.NewTask{}).ID
	if got := b.why(id).ETA; got == nil || got.Runs != 5 {
		t.Fatalf("%+v", got)
	}
	b.agent("other", "demo", 1) // nothing of it was read yet
	b.pass(2 * time.Second)
	held, first := make(chan struct{}), make(chan engine.Why)
	s.hold.Store(&held)
	go func() { first <- b.why(id) }()
	<-held // the first caller is refreshing the stats
	reads := s.reads.Load()
	for range 3 {
		if got := b.why(id).ETA; got == nil || got.Runs != 5 {
			t.Errorf("meanwhile: %+v", got)
		}
	}
	if n := s.reads.Load() - reads; n != 0 {
		t.Errorf("%d reads by concurrent callers", n)
	}
	held <- struct{}{}
	<-first
}

// The run times of another director's agents are not read again for each end.
func TestRunTimesOfAnotherDirectorAreReloaded(t *testing.T) {
	w := peerstest.New(memory.New(memory.Options{}))
	here := w.View()
	s := &countingStore{Store: here}
	there, b := newFixtureOver(t, w.View()), newFixtureOver(t, s, func(o *engine.Options) { o.Random = rand.NewChaCha8([32]byte{8}) })
	heard := make(chan struct{}, 1000)
	b.Observe(func(a *engine.Applied) {
		if a.Foreign && a.Kind == signalbox.EventFinish {
			heard <- struct{}{}
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	b.must(b.Follow(ctx, here, engine.FollowOptions{}))
	a := there.agent("coder", "demo", 1)
	b.see(engine.LiveAgent{Agent: a, Up: true})
	run := func() {
		there.submit(engine.NewTask{})
		there.run(a, time.Second)
		<-heard
	}
	for range 5 {
		run()
	}
	later := b.submit(engine.NewTask{NotBefore: b.Now().Add(time.Hour)}).ID
	check := func(when string, runs int, reads int64) {
		t.Helper()
		if got := b.why(later).ETA; got == nil || got.Runs != runs || s.reads.Load() != reads {
			t.Errorf("%s: %+v after %d reads, want %d runs and %d reads", when, got, s.reads.Load(), runs, reads)
		}
	}
	check("at first", 5, 1)
	run()
	b.pass(2 * time.Second)
	check("soon after another", 5, 1)
	b.pass(10 * time.Second)
	check("in time", 6, 2)
	b.pass(time.Minute)
	check("with nothing new", 6, 2)
}

package live_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// checkConsistent fails unless the totals, agents, queues and tasks that the watcher
// has agree with each other.
func (s *watcher) checkConsistent() {
	s.T.Helper()
	running, waiting, inUse := 0, 0, 0
	for _, task := range s.tasks {
		if signalbox.State(task.State).InFlight() {
			running++
		}
	}
	for _, a := range s.agents {
		waiting += a.Waiting
		inUse += len(a.Current)
		if len(a.Current) > a.Slots || a.InUse != len(a.Current) || len(a.Line) != min(a.Waiting, 10) {
			s.T.Fatalf("revision %d: agent %s has %d tasks in %d of %d slots, and %d of %d in line", s.revision, a.Name, len(a.Current), a.InUse, a.Slots, len(a.Line), a.Waiting)
		}
	}
	for _, q := range s.queues {
		waiting += q.Waiting
		if len(q.Line) != min(q.Waiting, 10) {
			s.T.Fatalf("revision %d: queue %s has %d of %d in line", s.revision, q.Name, len(q.Line), q.Waiting)
		}
	}
	if t := s.totals; t.Running != running || t.Running != inUse || t.Pending != waiting || t.Running > t.Slots {
		s.T.Fatalf("revision %d: %d run (%d tasks in flight, %d in lanes) in %d slots, %d wait (%d in lines)", s.revision, t.Running, running, inUse, t.Slots, t.Pending, waiting)
	}
}

// After every event the view is consistent while tasks are submitted, claimed,
// finished and cancelled concurrently.
func TestLiveIsConsistent(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 1000 }).Serve()
	agents := []signalbox.Agent{b.AddAgent("one", 1), b.AddAgent("two", 3)}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			agent := []string{"", "one", "two"}[n%3]
			got, err := b.Engine.Submit(ctx, engine.NewTask{Prompt: "p", Agent: agent, Source: signalbox.SourceAPI})
			if err == nil && n%5 == 0 {
				b.Engine.Cancel(ctx, got.Task.ID, "a test")
			}
		}
	})
	for _, a := range agents {
		group.Go(func() {
			for ctx.Err() == nil {
				c, found, err := b.Engine.Claim(ctx, a, 0)
				if err != nil || !found {
					continue
				}
				if task, err := b.Engine.Accept(ctx, c.Task, "x", ""); err == nil {
					b.Engine.Finish(ctx, task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{}})
				}
			}
		})
	}
	s := watchLive(b)
	for events := 0; events < 6; {
		if s.read() != "beat" {
			s.checkConsistent()
			events++
		}
	}
	stop()
	group.Wait()
	if s.totals.Done24h == 0 {
		t.Error("nothing was done")
	}
}

// While the store fails, readers get its verdict once and no beats, which would say
// that the view is current.
func TestLiveWhileTheStoreFails(t *testing.T) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingStore{Store: memory.New(memory.Options{})}
	e := engine.New(failing, engine.Options{Sealer: sealer})
	d, err := httpapi.New(httpapi.Config{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	b := (&apitest.Fixture{T: t, Engine: e, Server: d}).Serve()
	s := watchLive(b)
	s.read()
	failing.down.Store(true)
	s.until("the verdict has changed", func() bool { return !s.health.OK })
	if a := s.health.Attention; len(a) != 1 || a[0].Kind != "store" || a[0].Level != "error" || a[0].Cure == "" || a[0].Since.IsZero() {
		t.Errorf("%+v", s.health)
	}
	for {
		e, ok := s.Read()
		if !ok {
			t.Fatal("the stream ended")
		}
		if e.Comment == "alive" { // instead of a beat
			break
		}
	}
	var status api.Status
	if e := b.Do("GET", "/api/live", "").WantError(t, 500, signalbox.CodeStoreFailed); !e.Retryable {
		t.Errorf("%+v", e)
	}
	b.Do("GET", "/status", "").Want(t, 200, &status)
	if status.Health == nil || status.Health.OK || status.Health.Attention[0].Kind != "store" {
		t.Errorf("%+v", status.Health)
	}
	failing.down.Store(false)
	s.until("the store is up again", func() bool { return s.health.OK })
}

// failingStore is a store whose Snapshot fails while down is set.
type failingStore struct {
	store.Store
	down atomic.Bool
}

func (b *failingStore) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	if b.down.Load() {
		return store.Snapshot{}, &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the disk is gone"}
	}
	return b.Store.Snapshot(ctx, heads)
}

// Totals count tasks that ended before the director started.
func TestTotalsCountTasksThatEndedBefore(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	a := b.AddAgent("coder", 1)
	for i := range 30 {
		b.Submit(`{"prompt":"p"}`)
		reason := signalbox.ReasonCompleted
		if i%3 == 0 {
			reason = signalbox.ReasonAgentError
		}
		b.FinishTask(b.Run(a), reason, signalbox.Result{})
		c.Advance(time.Hour)
	}
	d, err := httpapi.New(httpapi.Config{Engine: b.Engine, Identity: b.Identity})
	if err != nil {
		t.Fatal(err)
	}
	b.Server = d
	b.Serve()
	s := watchLive(b)
	s.read()
	if s.totals.Done24h != 16 || s.totals.Failed24h != 7 || s.totals.EndedSince != 0 {
		t.Errorf("%+v", s.totals)
	}
	b.Submit(`{"prompt":"p"}`)
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{})
	s.until("it is counted", func() bool { return s.totals.Done24h == 17 })
	c.Advance(25 * time.Hour)
	s.until("all of them ended more than 24 hours ago", func() bool { return s.totals.Done24h == 0 && s.totals.Failed24h == 0 })
}

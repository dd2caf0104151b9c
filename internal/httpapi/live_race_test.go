package httpapi_test

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
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// whole fails unless all figures that a reader has are of one moment.
func (s *sights) whole() {
	s.t.Helper()
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
			s.t.Fatalf("revision %d: agent %s has %d tasks in %d of %d slots, and %d of %d in line", s.revision, a.Name, len(a.Current), a.InUse, a.Slots, len(a.Line), a.Waiting)
		}
	}
	for _, q := range s.queues {
		waiting += q.Waiting
		if len(q.Line) != min(q.Waiting, 10) {
			s.t.Fatalf("revision %d: queue %s has %d of %d in line", s.revision, q.Name, len(q.Line), q.Waiting)
		}
	}
	if t := s.totals; t.Running != running || t.Running != inUse || t.Pending != waiting || t.Running > t.Slots {
		s.t.Fatalf("revision %d: %d run (%d tasks in flight, %d in lanes) in %d slots, %d wait (%d in lines)", s.revision, t.Running, running, inUse, t.Slots, t.Pending, waiting)
	}
}

// Whatever happens meanwhile, no event is torn: all that a reader has fits
// together, and no more runs than there are slots.
func TestLiveIsNeverTorn(t *testing.T) {
	b := newBox(t, func(o *options) { o.engine.MaxSize = 1000 }).serve()
	agents := []signalbox.Agent{b.agent("one", 1), b.agent("two", 3)}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			agent := []string{"", "one", "two"}[n%3]
			got, err := b.engine.Submit(ctx, engine.NewTask{Prompt: "p", Agent: agent, Source: signalbox.SourceAPI})
			if err == nil && n%5 == 0 {
				b.engine.Cancel(ctx, got.Task.ID, "a test")
			}
		}
	})
	for _, a := range agents {
		group.Go(func() {
			for ctx.Err() == nil {
				c, found, err := b.engine.Claim(ctx, a, 0)
				if err != nil || !found {
					continue
				}
				if task, err := b.engine.Accept(ctx, c.Task, "x", ""); err == nil {
					b.engine.Finish(ctx, task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{}})
				}
			}
		})
	}
	s := b.watch()
	for events := 0; events < 6; {
		if s.read() != "beat" {
			s.whole()
			events++
		}
	}
	stop()
	group.Wait()
	if s.totals.Done24h == 0 {
		t.Error("nothing was done")
	}
}

// A store that does not answer is told once; nothing that is shown looks as if
// it were of that moment.
func TestLiveWithoutAStore(t *testing.T) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	broken := &blindStore{Store: memory.New(memory.Options{})}
	e := engine.New(broken, engine.Options{Sealer: sealer})
	d, err := httpapi.New(httpapi.Config{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	b := (&box{t: t, engine: e, dir: d}).serve()
	s := b.watch()
	s.read()
	broken.down.Store(true)
	s.until("it is told", func() bool { return !s.health.OK })
	if a := s.health.Attention; len(a) != 1 || a[0].Kind != "store" || a[0].Level != "error" || a[0].Cure == "" || a[0].Since.IsZero() {
		t.Errorf("%+v", s.health)
	}
	for {
		e, ok := s.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if e.comment == "alive" { // no beat: that would say that nothing has changed
			break
		}
	}
	var status api.Status
	if e := b.do("GET", "/api/live", "").wantError(t, 500, signalbox.CodeStoreFailed); !e.Retryable {
		t.Errorf("%+v", e)
	}
	b.do("GET", "/status", "").want(t, 200, &status)
	if status.Health == nil || status.Health.OK || status.Health.Attention[0].Kind != "store" {
		t.Errorf("%+v", status.Health)
	}
	broken.down.Store(false)
	s.until("it is well again", func() bool { return s.health.OK })
}

// blindStore is a store that can no longer say how things are.
type blindStore struct {
	store.Store
	down atomic.Bool
}

func (b *blindStore) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	if b.down.Load() {
		return store.Snapshot{}, &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the disk is gone"}
	}
	return b.Store.Snapshot(ctx, heads)
}

// What ended before a director started is counted too.
func TestLiveCountsWhatEndedBefore(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c))
	a := b.agent("coder", 1)
	for i := range 30 {
		b.submit(`{"prompt":"p"}`)
		reason := signalbox.ReasonCompleted
		if i%3 == 0 {
			reason = signalbox.ReasonAgentError
		}
		b.finish(b.work(a), reason, signalbox.Result{})
		c.pass(time.Hour)
	}
	d, err := httpapi.New(httpapi.Config{Engine: b.engine, Identity: b.id})
	if err != nil {
		t.Fatal(err)
	}
	b.dir = d
	b.serve()
	s := b.watch()
	s.read()
	if s.totals.Done24h != 16 || s.totals.Failed24h != 7 || s.totals.EndedSince != 0 {
		t.Errorf("%+v", s.totals)
	}
	b.submit(`{"prompt":"p"}`)
	b.finish(b.work(a), signalbox.ReasonCompleted, signalbox.Result{})
	s.until("it is counted", func() bool { return s.totals.Done24h == 17 })
	c.pass(25 * time.Hour)
	s.until("all of it is long ago", func() bool { return s.totals.Done24h == 0 && s.totals.Failed24h == 0 })
}

package verbs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// nothing is a backend that does nothing and keeps nothing.
type nothing struct {
	verbs.Reading
	now    verbs.Counters
	number int64
}

func (*nothing) Info() store.Info                        { return store.Info{} }
func (*nothing) Time(context.Context) (time.Time, error) { return time.Now(), nil }
func (*nothing) Changed() <-chan struct{}                { return nil }
func (*nothing) Close() error                            { return nil }
func (*nothing) Unlock(context.Context)                  {}
func (g *nothing) Commit(_ context.Context, d *verbs.Delta) error {
	g.now, g.number = d.To, d.Number
	return nil
}

func (*nothing) Committed(context.Context, string, int64) (bool, error) { return true, nil }

func (g *nothing) Lock(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	return g.Load(ctx, w)
}

func (g *nothing) Load(_ context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	l := &verbs.Loaded{
		Tasks: make([]*signalbox.Task, len(w.Tasks)), Keys: make([]*signalbox.Task, len(w.Keys)), Requests: make([]*signalbox.Request, len(w.Requests)),
		Lines: make([][]*signalbox.Task, len(w.Lines)), Queues: make([]verbs.QueueCount, len(w.Queues)), Limits: make([]int, len(w.Limits)),
		Turns: make([][]*signalbox.Task, len(w.Turns)), Named: make([]bool, len(w.Named)), Slots: make([][]signalbox.Slot, len(w.Slots)),
		Docs: make([]*verbs.Doc, len(w.Docs)), Pages: make([][]verbs.Doc, len(w.Pages)),
	}
	l.Counters, l.Number = g.now, g.number
	return l, nil
}

// The cost of the verbs without a server: three of them take a task from its submit to its end.
func BenchmarkCycle(b *testing.B) {
	s, err := verbs.NewShared(ctx, &nothing{}, verbs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is kept
	var agents atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		agent := fmt.Sprint("agent-", agents.Add(1))
		for n := 0; pb.Next(); n++ {
			sub := newSubmission()
			sub.Task.Queue = signalbox.AgentQueue(agent)
			if _, err := s.Submit(ctx, sub); err != nil {
				b.Fatal(err)
			}
			got, err := s.Claim(ctx, newClaim(agent, 1))
			if err != nil || !got.Found {
				b.Fatal(got.Found, err)
			}
			finish(b, s, got.Task)
		}
	})
	b.ReportMetric(3*float64(b.N)/b.Elapsed().Seconds(), "verbs/s")
}

// A backlog that is far too long for the set, so new tasks are not kept.
func BenchmarkSubmit(b *testing.B) {
	s, err := verbs.NewShared(ctx, &nothing{}, verbs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is kept
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Submit(ctx, newSubmission()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "verbs/s")
}

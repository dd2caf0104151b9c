package sqlite

import (
	"context"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "bench.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// callers makes n goroutines share the work, each with an agent's name.
func callers(b *testing.B, n int, do func(agent string) error) {
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(n)
	b.RunParallel(func(pb *testing.PB) {
		agent := "agent-" + strconv.FormatInt(next.Add(1), 10)
		for pb.Next() {
			if err := do(agent); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func submitOne(s *Store) error {
	_, err := s.Submit(context.Background(), newSubmission())
	return err
}

// cycleOne is submit, claim and finish, each durable before the next.
func cycleOne(s *Store, agent string) error {
	if err := submitOne(s); err != nil {
		return err
	}
	got, err := s.Claim(context.Background(), newClaim(agent))
	if err != nil || !got.Found {
		return err
	}
	_, err = apply(s, got.Task, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted})
	return err
}

func BenchmarkSubmit(b *testing.B) {
	for _, n := range []int{1, 32} {
		b.Run("callers-"+strconv.Itoa(n), func(b *testing.B) {
			s := openBench(b)
			callers(b, n, func(string) error { return submitOne(s) })
		})
	}
}

func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{1, 32} {
		b.Run("callers-"+strconv.Itoa(n), func(b *testing.B) {
			s := openBench(b)
			callers(b, n, func(agent string) error { return cycleOne(s, agent) })
		})
	}
}

// BenchmarkClaim claims from a queue that was filled before.
func BenchmarkClaim(b *testing.B) {
	s, ctx := openBench(b), context.Background()
	for b.Loop() {
		b.StopTimer()
		if err := submitOne(s); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		got, err := s.Claim(ctx, newClaim("agent"))
		if err != nil || !got.Found {
			b.Fatal(got.Found, err)
		}
		b.StopTimer()
		if _, err := apply(s, got.Task, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

func benchStore(b *testing.B) store.Store {
	b.Helper()
	backend, err := postgres.Open(context.Background(), postgres.Options{URL: testserver.Postgres(b)})
	if err != nil {
		b.Fatal(err)
	}
	s, err := verbs.NewShared(context.Background(), backend, verbs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkStore is 64 callers that submit, and 64 that take these tasks through their life.
func BenchmarkStore(b *testing.B) {
	ctx := context.Background()
	var made atomic.Int64
	submit := func(b *testing.B, s store.Store) {
		n := made.Add(1)
		now := time.Now()
		_, err := s.Submit(ctx, store.Submission{
			Task: signalbox.Task{
				ID: fmt.Sprintf("queue-%012d", n), State: signalbox.Pending, Queue: "work", Limit: "work", CreatedAt: now, Source: signalbox.SourceAPI,
				MaxAttempts: 3, OnLost: signalbox.LostFail, SessionMode: signalbox.SessionRequire, Preview: "say hello",
			},
			Request: signalbox.Request{Prompt: "say hello to everyone in the house"}, Now: now,
		})
		if err != nil {
			b.Error(err)
		}
	}
	b.Run("submit", func(b *testing.B) {
		s := benchStore(b)
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				submit(b, s)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
	})
	b.Run("cycle", func(b *testing.B) {
		s := benchStore(b)
		var agents atomic.Int64
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			agent := fmt.Sprintf("agent-%d", agents.Add(1))
			for pb.Next() {
				submit(b, s)
				cycle(b, s, agent)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	})
}

// cycle claims a task and finishes it.
func cycle(b *testing.B, s store.Store, agent string) {
	ctx, now := context.Background(), time.Now()
	got, err := s.Claim(ctx, store.ClaimRequest{Agent: agent, Slots: 1, Queues: []string{"work"}, Expires: now.Add(time.Hour), Now: now})
	if err != nil || !got.Found {
		b.Errorf("claimed %t (%v)", got.Found, err)
		return
	}
	change, err := signalbox.Next(got.Task, signalbox.Event{
		Kind: signalbox.EventFinish, Now: now, Fence: got.Task.Fence, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "hello"},
	})
	if err == nil {
		_, err = s.Apply(ctx, change, now)
	}
	if err != nil {
		b.Error(err)
	}
}

package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// open opens a backend that is closed at the end of the test.
func open(t testing.TB, url string) verbs.SharedBackend {
	t.Helper()
	g, err := redis.Open(context.Background(), redis.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

// submitted is a pending task with that number.
func submitted(n int) *signalbox.Task {
	return &signalbox.Task{
		ID: fmt.Sprintf("queue-%026d", n), Seq: int64(n), Rev: 1, Place: int64(n), State: signalbox.Pending, Ready: true,
		Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, CreatedAt: start, EnqueuedAt: start.Add(time.Duration(n) * time.Millisecond),
		Source: signalbox.SourceAPI, Preview: fmt.Sprint("task ", n), MaxAttempts: 3,
	}
}

// batchOf is a batch that stores new tasks.
func batchOf(writer string, number int64, at verbs.Counters, tasks ...*signalbox.Task) *verbs.Delta {
	d := &verbs.Delta{Writer: writer, Number: number, From: at, To: at}
	d.To.Moment++
	d.To.Generation = max(1, at.Generation)
	for _, t := range tasks {
		d.To.Seq, d.To.Place = max(d.To.Seq, t.Seq), max(d.To.Place, t.Place)
		d.To.Entry++
		d.Tasks = append(d.Tasks, verbs.TaskChange{After: t})
		d.Requests = append(d.Requests, verbs.RequestRow{Seq: t.Seq, Request: signalbox.Request{Prompt: "do " + t.Preview}})
		e := signalbox.SubmitEntry(t, start)
		e.Seq = d.To.Entry
		d.Entries = append(d.Entries, e)
	}
	d.Queues = []verbs.QueueChange{{Queue: signalbox.QueueWork, QueueCount: verbs.QueueCount{Waiting: int(d.To.Seq), Ready: int(d.To.Seq)}}}
	d.Limits = []verbs.LimitChange{{Limit: signalbox.LimitWork, N: int(d.To.Seq)}}
	return d
}

func TestCommittedBatchIsLoaded(t *testing.T) {
	ctx := context.Background()
	g := open(t, testserver.Redis(t))
	one, two := submitted(1), submitted(2)
	d := batchOf("w", 1, verbs.Counters{}, one, two)
	if err := g.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	l, err := g.Load(ctx, &verbs.Want{
		Writer: "w", Tasks: []string{one.ID, "no"}, Requests: []int64{1, 7}, Queues: []string{"work", "no"}, Limits: []string{"work"},
		Lines: []verbs.LineWant{{Queue: "work", N: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &verbs.Loaded{
		Counters: d.To, Number: 1, Tasks: []*signalbox.Task{one, nil}, Keys: []*signalbox.Task{},
		Requests: []*signalbox.Request{{Prompt: "do task 1"}, nil}, Queues: []verbs.QueueCount{{Waiting: 2, Ready: 2}, {}}, Limits: []int{2},
		Lines: [][]*signalbox.Task{{one, two}}, Turns: [][]*signalbox.Task{}, Named: []bool{}, Slots: [][]signalbox.Slot{}, Docs: []*verbs.Doc{}, Pages: [][]verbs.Doc{},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkSubmits(b *testing.B) {
	for _, size := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			g := open(b, testserver.Redis(b))
			var at verbs.Counters
			n := 0
			b.ResetTimer()
			for i := 0; n < b.N; i++ {
				var list []*signalbox.Task
				for range min(size, b.N-n) {
					n++
					list = append(list, submitted(n))
				}
				d := batchOf("w", int64(i+1), at, list...)
				if err := g.Commit(context.Background(), d); err != nil {
					b.Fatal(err)
				}
				at = d.To
			}
		})
	}
}

package signalbox_test

import (
	"crypto/rand"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// life lists the events of a task that completes.
var life = []signalbox.Event{
	{Kind: signalbox.EventClaim, Now: noon, Fence: 7, Agent: "coder", AgentURL: "http://127.0.0.1:9000"},
	{Kind: signalbox.EventAccept, Now: noon, Fence: 7, TaskID: "task-1"},
	{Kind: signalbox.EventFinish, Now: noon, Fence: 7, Reason: signalbox.ReasonCompleted},
}

func waitingTask() signalbox.Task {
	return signalbox.Task{ID: "queue-1", State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, MaxAttempts: 3, CreatedAt: noon, Ready: true}
}

func wholeLife(tb testing.TB) {
	t := waitingTask()
	for _, ev := range life {
		c, err := signalbox.Next(t, ev)
		if err != nil {
			tb.Fatal(err)
		}
		t = c.Task
	}
}

func BenchmarkNext(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		wholeLife(b)
	}
}

func BenchmarkNewID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signalbox.NewID(noon, rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}

const searchText = `agent:coder,writer state:failed -job:"nightly run" since:2h "billing service" flaky`

func BenchmarkParseQuery(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signalbox.ParseQuery(searchText, searchNow); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHotPathsAllocateLittle bounds the allocations per task and per search.
func TestHotPathsAllocateLittle(t *testing.T) {
	for _, c := range []struct {
		name string
		most float64
		do   func()
	}{
		{"the whole life of a task through Next, one for each step", 3, func() { wholeLife(t) }},
		{"a new id", 3, func() {
			if _, err := signalbox.NewID(noon, rand.Reader); err != nil {
				t.Fatal(err)
			}
		}},
		{"a search with six conditions", 30, func() { _ = parseQuery(t, searchText) }},
	} {
		if n := testing.AllocsPerRun(200, c.do); n > c.most {
			t.Errorf("%s: %v allocations, at most %v are allowed", c.name, n, c.most)
		}
	}
}

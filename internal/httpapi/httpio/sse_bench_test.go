package httpio

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// change is an update that a busy director sends its readers five times a second.
func change() api.Live {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := api.Live{Revision: 4711, At: at, Epoch: "e"}
	for range 40 {
		l.Tasks = append(l.Tasks, api.LiveTask{
			QueueID: "queue-06gz0000000000000000000000", State: "working", Queue: "work", Agent: "coder", Mode: "async",
			PromptPreview: "Upgrade the service to the newest release and run its tests", Source: "api", By: "cli", CreatedAt: at, StartedAt: &at,
		})
	}
	return l
}

func BenchmarkEvent(b *testing.B) {
	l := change()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Event(4711, "change", l); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEventAllocatesLittle allows allocations for the JSON, the frame, and the text of each time.
func TestEventAllocatesLittle(t *testing.T) {
	l := change()
	if n := testing.AllocsPerRun(50, func() { _, _ = Event(4711, "change", l) }); n > 120 {
		t.Errorf("an event of 40 tasks takes %v allocations, at most 120 are allowed", n)
	}
}

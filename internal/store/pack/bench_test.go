package pack

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// typicalTask is a task like most rows.
func typicalTask() signalbox.Task {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return signalbox.Task{
		ID: "queue-06gz0000000000000000000000", Seq: 123456, Rev: 3, State: signalbox.Working, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork,
		Source: signalbox.SourceAPI, MaxAttempts: 3, Claims: 1, Fence: 98765, Agent: "coder", AgentURL: "http://127.0.0.1:9000", TaskID: "task-1",
		Preview: "Read the failing test in the payment service, find out why it fails", IdempotencyKey: "build 4711", IdempotencyHash: "0123456789abcdef",
		CreatedAt: at, EnqueuedAt: at, DispatchedAt: at, StartedAt: at,
	}
}

func BenchmarkTask(b *testing.B) {
	t, row := typicalTask(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		row = Task(row[:0], &t)
	}
}

func BenchmarkReadTask(b *testing.B) {
	t := typicalTask()
	row := Task(nil, &t)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadTask(row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEntry(b *testing.B) {
	e := signalbox.Entry{At: time.UnixMilli(1_770_000_000_000), Kind: signalbox.EventClaim, QueueID: "queue-06gz0000000000000000000000", Queue: "work", Fence: 98765, Message: "claimed"}
	p, row := New(256), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		row = p.Entry(row[:0], &e)
	}
}

// TestPackingAllocatesLittle: packing writes to the caller's buffer, and reading allocates only texts. Each
// task is packed at every change of state.
func TestPackingAllocatesLittle(t *testing.T) {
	task, row := typicalTask(), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(200, func() { row = Task(row[:0], &task) }); n > 0 {
		t.Errorf("a task is written with %v allocations, none is allowed", n)
	}
	if n := testing.AllocsPerRun(200, func() {
		if _, err := ReadTask(row); err != nil {
			t.Fatal(err)
		}
	}); n > 10 {
		t.Errorf("a task is read with %v allocations, at most 10 are allowed", n)
	}
}

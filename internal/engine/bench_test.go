package engine_test

import (
	"context"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// overMemory is an engine over a cheap store, so that mainly the rules are measured.
func overMemory(tb testing.TB) *engine.Engine {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		tb.Fatal(err)
	}
	return engine.New(memory.New(memory.Options{}), engine.Options{Sealer: sealer, MaxSize: 1 << 30})
}

var benchAgent = signalbox.Agent{Name: "coder", Kind: "claude", URL: "http://127.0.0.1:9000", Slots: 1}

// cycle is the whole life of a task.
func cycle(tb testing.TB, e *engine.Engine) {
	ctx := context.Background()
	if _, err := e.Submit(ctx, engine.NewTask{Prompt: "do it"}); err != nil {
		tb.Fatal(err)
	}
	got, found, err := e.Claim(ctx, benchAgent, 0)
	if err != nil || !found {
		tb.Fatal(found, err)
	}
	t, err := e.Accept(ctx, got.Task, "task-1", "")
	if err == nil {
		_, err = e.Finish(ctx, t, engine.Outcome{Reason: signalbox.ReasonCompleted})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkSubmit(b *testing.B) {
	e := overMemory(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Submit(context.Background(), engine.NewTask{Prompt: "do it"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCycle(b *testing.B) {
	e := overMemory(b)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, e)
	}
}

// TestCycleAllocatesLittle bounds the allocations of a task. It includes those of the memory store, most of
// which are its maps.
func TestCycleAllocatesLittle(t *testing.T) {
	e := overMemory(t)
	if n := testing.AllocsPerRun(200, func() { cycle(t, e) }); n > 30 {
		t.Errorf("the life of a task takes %v allocations, at most 30 are allowed", n)
	}
}

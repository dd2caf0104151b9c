package engine_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// The seed's tests (work-queue, Testing Strategy), by their names.

func TestQueueAdd(t *testing.T) {
	b := newBox(t)
	r, err := b.Submit(t.Context(), engine.NewTask{Prompt: "test"})
	b.must(err)
	if r.Position.N != 1 || r.Task.State != signalbox.Pending {
		t.Errorf("position %d, state %s", r.Position.N, r.Task.State)
	}
}

func TestQueueFIFO(t *testing.T) {
	b := newBox(t)
	a := b.agent("coder", "demo", 3)
	for _, prompt := range []string{"first", "second", "third"} {
		b.submit(engine.NewTask{Prompt: prompt})
	}
	for _, want := range []string{"first", "second", "third"} {
		if got := b.claim(a).Request.Prompt; got != want {
			t.Errorf("%s is next, want %s", got, want)
		}
	}
}

func TestQueueMaxSize(t *testing.T) {
	b := newBox(t, func(o *engine.Options) { o.MaxSize = 2 })
	b.submit(engine.NewTask{Prompt: "1"})
	b.submit(engine.NewTask{Prompt: "2"})
	_, err := b.Submit(t.Context(), engine.NewTask{Prompt: "3"})
	wantCode(t, err, signalbox.CodeQueueFull, "")
	if err.Error() != "Queue is at capacity (2 tasks)" {
		t.Errorf("%v", err)
	}
	// A claimed task waits no longer: there is room.
	b.claim(b.agent("coder", "demo", 1))
	b.submit(engine.NewTask{Prompt: "3"})
}

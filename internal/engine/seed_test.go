package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
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

func TestQueuePersistence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signalbox.db")
	open := func() (*engine.Engine, func()) {
		t.Helper()
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		return engine.New(s, engine.Options{Sealer: newSealer(t)}), func() {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	q1, end := open()
	if _, err := q1.Submit(t.Context(), engine.NewTask{Prompt: "persistent", Env: map[string]string{"A": "1"}}); err != nil {
		t.Fatal(err)
	}
	end()

	q2, end := open()
	defer end()
	counts, err := q2.Read().Counts(t.Context())
	if err != nil || counts.Pending != 1 {
		t.Fatalf("%d tasks wait, %v", counts.Pending, err)
	}
	a, err := q2.PutAgent(t.Context(), signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000"}, "")
	if err != nil {
		t.Fatal(err)
	}
	got, found, err := q2.Claim(t.Context(), a, 0)
	if err != nil || !found || got.Request.Prompt != "persistent" || got.Env["A"] != "1" {
		t.Errorf("%+v, found %v, %v", got, found, err)
	}
}

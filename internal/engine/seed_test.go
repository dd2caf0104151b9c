package engine_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// The seed's tests (work-queue, Testing Strategy), with their names.

func TestQueueAdd(t *testing.T) {
	b := newFixture(t)
	r, err := b.Submit(t.Context(), engine.NewTask{Prompt: "test"})
	b.must(err)
	if r.Position.N != 1 || r.Task.State != signalbox.Pending {
		t.Errorf("position %d, state %s", r.Position.N, r.Task.State)
	}
}

func TestQueueFIFO(t *testing.T) {
	b := newFixture(t)
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
	b := newFixture(t, func(o *engine.Options) { o.MaxSize = 2 })
	b.submit(engine.NewTask{Prompt: "1"})
	b.submit(engine.NewTask{Prompt: "2"})
	_, err := b.Submit(t.Context(), engine.NewTask{Prompt: "3"})
	wantCode(t, err, signalbox.CodeQueueFull, "")
	if err.Error() != "Queue is at capacity (2 tasks)" {
		t.Errorf("%v", err)
	}
	// A claimed task no longer waits, so there is room.
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

// The log of a task has the seed's lines (work-queue, Logging) literally, except for the ids. More attributes
// may follow.
func TestSeedLogLines(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, "text", slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	b := newFixture(t, func(o *engine.Options) { o.MaxSize, o.Log = 5, log })
	a := b.agent("coder", "demo", 1)
	for range 5 {
		b.submit(engine.NewTask{Source: signalbox.SourceScheduler})
	}
	if _, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p"}); signalbox.CodeOf(err) != signalbox.CodeQueueFull {
		t.Fatal(err)
	}
	b.finish(b.work(a), signalbox.ReasonCompleted)
	_, err = b.Busy(t.Context(), b.claim(a).Task, "agent busy")
	b.must(err)
	for n := 0; n < 3; {
		got, err := b.Refuse(t.Context(), b.claim(a).Task, "timeout")
		b.must(err)
		n = got.Attempts
		b.pass(time.Minute)
		_, _, err = b.Wake(t.Context())
		b.must(err)
	}
	const stamp, id = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `, `queue-[a-z0-9]{26}`
	for _, want := range []string{
		stamp + `INFO queue=task_added queue_id=` + id + ` depth=5 source=scheduler$`,
		stamp + `INFO queue=dispatch queue_id=` + id + ` agent=http://127\.0\.0\.1:9000( |$)`,
		stamp + `INFO queue=dispatch_success queue_id=` + id + ` task_id=task-1$`,
		stamp + `WARN queue=dispatch_failed queue_id=` + id + ` error="agent busy" attempt=1/3$`,
		stamp + `WARN queue=dispatch_failed queue_id=` + id + ` error="timeout" attempt=3/3 final=true$`,
		stamp + `WARN queue=submit_rejected reason=queue_full depth=5$`,
	} {
		if !regexp.MustCompile(`(?m)` + want).MatchString(out.String()) {
			t.Errorf("no line %s in\n%s", want, out.String())
		}
	}
}

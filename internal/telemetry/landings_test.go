package telemetry_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// Landings are counted by state, from the end of the task until the work has landed or the landing is
// dropped.
func TestMetricsOfLandings(t *testing.T) {
	e, s, a := newEngine(t)
	m := telemetry.NewMetrics(e)
	want := func(when, queued, stands string) {
		t.Helper()
		text := scrape(t, m)
		for state, n := range map[string]string{"queued": queued, "stands": stands, "landing": "0", "returned": "0"} {
			if line := `signalbox_landings{state="` + state + `"} ` + n + "\n"; !strings.Contains(text, line) {
				t.Errorf("%s: there is no %s", when, line)
			}
		}
		for _, state := range []string{"wanted", "landed", "dropped"} {
			if strings.Contains(text, `signalbox_landings{state="`+state) {
				t.Errorf("%s: %s is counted", when, state)
			}
		}
	}
	submit(t, e, engine.NewTask{Landing: &signalbox.LandWish{Onto: "main"}})
	want("its task waits", "0", "0")
	c := claim(t, e, a)
	running, err := e.Accept(t.Context(), c.Task, "task-1", "")
	if err != nil {
		t.Fatal(err)
	}
	done, err := e.Finish(t.Context(), running, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{}})
	if err != nil {
		t.Fatal(err)
	}
	want("its task has ended", "1", "0")
	change := func(kind signalbox.LandingEventKind) {
		t.Helper()
		c, ok, err := done.ChangeLanding(signalbox.LandingEvent{Kind: kind, Now: e.Now(), Text: "x"})
		if err == nil && ok {
			done, err = s.Apply(t.Context(), c, e.Now())
		}
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	change(signalbox.LandingStopped)
	want("it needs a person", "0", "1")
	change(signalbox.LandingDrop)
	want("it is dropped", "0", "0")
}

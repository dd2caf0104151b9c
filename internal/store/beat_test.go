package store_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// A director whose lease was over holds nothing any more, even if the clock was set back to before the lease
// began.
func TestBeatAfterClockWentBack(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old := store.Director{ID: "x", Run: "r", StartedAt: began, Since: began, Expires: began.Add(-time.Hour)}
	now := began.Add(-time.Minute) // its lease was over by then
	rows := store.BeatRows{Directors: []store.Director{old}, Holdings: []store.Holding{{Agent: "a", Director: "x", Run: "r", Since: began}}}
	me := old
	me.Expires = now.Add(time.Second)
	c, answer, err := store.StepBeat(rows, store.Beat{Director: me, Now: now})
	if err != nil || !answer.Lapsed || len(c.Put) != 1 {
		t.Fatalf("%+v, %+v, %v", c, answer, err)
	}
	if held := store.HoldersOf(c.Put, rows.Holdings); len(held) != 0 {
		t.Errorf("it holds %v since %v", held, c.Put[0].Since)
	}
}

func TestStepBeatDoesNotModifyItsInput(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rows := store.BeatRows{
		Directors: []store.Director{{ID: "x", Run: "r", Since: now, Expires: now.Add(time.Second)}},
		Heard:     []store.Heard{{Agent: "p", At: now}},
	}
	me := store.Director{ID: "x", Run: "r", URL: "http://x", Expires: now.Add(time.Hour)}
	if _, _, err := store.StepBeat(rows, store.Beat{Director: me, Take: []string{"a"}, Heard: []store.Heard{{Agent: "p", At: now.Add(time.Second)}}, Now: now}); err != nil {
		t.Fatal(err)
	}
	if d, h := rows.Directors[0], rows.Heard[0]; d.URL != "" || !d.Expires.Equal(now.Add(time.Second)) || !h.At.Equal(now) {
		t.Errorf("the stored rows are %+v and %+v now", d, h)
	}
}

func TestSameMinor(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"1.2.3", "1.2.9", true},
		{"v1.2.3", "1.2.0", true},
		{"1.2.3", "1.3.3", false},
		{"1.2.3", "2.2.3", false},
		{"1.2.3", "1.20.3", false},
		{"dev", "1.2.3", true},
		{"1.2.3-4-gabcdef", "9.9.9", true}, // not a release
		{"99999999999999999999.0.0", "1.0.0", false},
	} {
		if got := store.SameMinor(c.a, c.b); got != c.same || got != store.SameMinor(c.b, c.a) {
			t.Errorf("%s beside %s: %v, want %v", c.a, c.b, got, c.same)
		}
	}
}

// A silent director is dead although its lease is not over, unless its row has changed.
func TestBeatReportsSilentDirector(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	far := store.Director{ID: "x", Run: "r", Key: "k", StartedAt: now, Since: now, Expires: now.Add(time.Hour)}
	holdings := []store.Holding{{Agent: "a", Director: "x", Run: "r", Since: now}}
	me := store.Director{ID: "y", Run: "s", Key: "k", Expires: now.Add(10 * time.Second)}
	b := store.Beat{Director: me, Take: []string{"a"}, Silent: []store.Director{far, me}, Now: now}
	c, answer, err := store.StepBeat(store.BeatRows{Directors: []store.Director{far}, Holdings: holdings}, b)
	if err != nil || len(c.Gone) != 1 || len(answer.Taken) != 1 || len(answer.Directors) != 1 {
		t.Errorf("%+v, %+v, %v", c, answer, err)
	}
	beaten := far
	beaten.Expires = far.Expires.Add(time.Second)
	c, answer, err = store.StepBeat(store.BeatRows{Directors: []store.Director{beaten}, Holdings: holdings}, b)
	if err != nil || len(c.Gone) != 0 || len(answer.Taken) != 0 || len(answer.Directors) != 2 {
		t.Errorf("%+v, %+v, %v", c, answer, err)
	}
}

package execution_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/execution"
)

func TestPresence(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	p := execution.NewPresence(begun)
	at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	for i, c := range []struct {
		what    string
		do      func(now time.Time) bool
		news    bool
		up      bool
		leaving bool
		away    time.Duration // one second later
	}{
		{"known", func(time.Time) bool { return false }, false, false, false, time.Second},
		{"not reached", func(now time.Time) bool { return p.Gone(now, "refused") }, false, false, false, 2 * time.Second},
		{"answers", p.Heard, true, true, false, 0},
		{"answers again", p.Heard, false, true, false, 0},
		{"gone", func(now time.Time) bool { return p.Gone(now, "timeout") }, true, false, false, time.Second},
		{"still gone", func(now time.Time) bool { return p.Gone(now, "timeout") }, false, false, false, 2 * time.Second},
		{"back", p.Heard, true, true, false, 0},
		{"says that it stops", func(now time.Time) bool { return p.Leave(now, now.Add(2*time.Second), "it stops") }, true, false, true, time.Second},
		{"answers once more", p.Heard, false, false, true, 2 * time.Second},
		{"answers later", p.Heard, true, true, false, 0},
		{"says so again", func(now time.Time) bool { return p.Leave(now, now.Add(time.Hour), "it stops") }, true, false, true, time.Second},
		{"stays", func(time.Time) bool { p.CancelLeave(); return false }, false, false, false, 2 * time.Second},
		{"answers at once", p.Heard, true, true, false, 0},
		{"stays as it was", func(time.Time) bool { p.CancelLeave(); return false }, false, true, false, 0},
	} {
		news := c.do(at(i))
		if away := p.Away(at(i + 1)); news != c.news || p.Up() != c.up || p.Leaving() != c.leaving || away != c.away {
			t.Errorf("%s: news %v, up %v, leaving %v, away for %s; want %v, %v, %v, %s", c.what, news, p.Up(), p.Leaving(), away, c.news, c.up, c.leaving, c.away)
		}
	}
}

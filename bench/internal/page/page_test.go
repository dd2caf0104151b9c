package page_test

import (
	"os"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/bench/internal/page"
	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

const (
	figures = "../../results.json"
	docs    = "../../../docs/benchmarks.md"
)

// The page matches the committed figures.
func TestPageIsMadeOfTheFigures(t *testing.T) {
	f, err := results.Read(figures)
	if err != nil {
		t.Fatal(err)
	}
	want, err := page.Make(f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("docs/benchmarks.md is not what bench/results.json makes: cd bench && go run . -docs ../docs/benchmarks.md")
	}
}

// No text of the page refers to another run than the one whose figures it shows.
func TestPageRefersOnlyToItsOwnRun(t *testing.T) {
	f, err := results.Read(figures)
	if err != nil {
		t.Fatal(err)
	}
	text, err := page.Make(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"that hour", "other run", "another run", "in runs of"} {
		if strings.Contains(string(text), word) {
			t.Errorf("the page says %q", word)
		}
	}
}

// The remark next to a figure depends on its rounds.
func TestRemarksComeOfTheRounds(t *testing.T) {
	f := results.Figure{
		ID: "http/pickup/p50", Duel: "http/pickup", Group: "http", Title: "pick-up", Unit: "ms", Lower: true,
		Ours: results.Series{Name: "Signalbox", Values: []float64{2.5, 1.9, 2.4, 1.8, 2.6}}, Target: results.Target{AtMost: 2},
	}
	if got := page.Table([]results.Figure{f}); !strings.Contains(got, "| ≤ 2.00 ms | **no** (met in 2 of 5 rounds) |") {
		t.Error(got)
	}
	f.Ours.Values = []float64{9, 9.5, 9, 9, 9}
	if got := page.Table([]results.Figure{f}); !strings.Contains(got, "| ≤ 2.00 ms | **no** (met in 0 of 5 rounds) |") {
		t.Error(got)
	}
	f.Ours.Values = []float64{1, 1, 1, 1, 9}
	if got := page.Table([]results.Figure{f}); !strings.Contains(got, "| ≤ 2.00 ms | yes |") {
		t.Error(got)
	}
}

// The file contains all figures that are required: a page without one of them has
// lost a promise.
func TestEveryPromiseIsMeasured(t *testing.T) {
	f, err := results.Read(figures)
	if err != nil {
		t.Fatal(err)
	}
	if f.Whole == "" {
		t.Skip("bench/results.json has figures of several runs; make bench measures all of them")
	}
	have := map[string]bool{}
	for _, one := range f.Figures {
		have[one.ID] = true
		if len(one.Ours.Values) == 0 {
			t.Errorf("%s has no rounds", one.ID)
		}
	}
	for _, id := range []string{
		"sqlite/submit-1", "sqlite/submit-64", "sqlite/cycle-64", "sqlite/pickup/p50", "sqlite/half-load/p50", "sqlite/wait-100k", "sqlite/wait-1m", "sqlite/tomorrow/bytes",
		"postgres/submit-1", "postgres/submit-64", "postgres/cycle-2000", "postgres/cycle-256", "postgres/directors-2000", "postgres/pickup/p99", "postgres/half-load/p50",
		"postgres-deep/wait-100k", "postgres-deep/wait-most", "redis/submit-1", "redis/submit-64", "redis/cycle-256", "redis/directors-256", "redis/pickup/p99", "redis/half-load/p50", "redis-deep/wait-most",
		"http/pickup/p50", "http/half-load/p50", "http/gap/p50", "http/submit-64", "footprint/start/ready", "footprint/start/per-task", "footprint/start/size",
		"idle/agents/cpu", "idle/schedules/cpu", "idle/live/cpu", "toolqueue/permit", "gateway/mcp/p50", "gateway/mcp-2025/p50", "commands/run", "commands/path-http", "dashboard/load/busy", "dashboard/first/size",
	} {
		if !have[id] {
			t.Errorf("%s was not measured", id)
		}
	}
}

func TestTableSaysWhoIsBehind(t *testing.T) {
	slow := results.Figure{
		ID: "g/slow", Duel: "g/slow", Group: "g", Title: "submits", Unit: "/s", Ours: results.Series{Name: "Signalbox", Values: []float64{50, 40, 60}},
		Peers: []results.Series{{Name: "Peer", Values: []float64{100, 100, 100}}, {Name: "Other", Values: []float64{10, 10, 10}}},
		Limit: &results.Series{Name: "disk", Values: []float64{200, 200, 200}}, Target: results.Target{Of: "Peer", AtLeast: 1},
	}
	got := page.Table([]results.Figure{slow})
	for _, want := range []string{
		"| submits | 50.0/s | Peer: 100/s | 0.50× | 40.0 to 60.0; 100 to 100 | ≥ 1× Peer | **no** (met in 0 of 3 rounds) | disk: 200/s (ours: 0.25×) | `g/slow` |",
		"| 〃 | 50.0/s | Other: 10.0/s | 5.00× | 40.0 to 60.0; 10.0 to 10.0 |  |  |  |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table has no line\n%s\nbut\n%s", want, got)
		}
	}
}

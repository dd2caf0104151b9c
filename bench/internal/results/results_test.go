package results_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

func series(name string, v ...float64) results.Series { return results.Series{Name: name, Values: v} }

func TestMedianIsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{5}, 5}, {[]float64{9, 1, 5}, 5}, {[]float64{1, 9, 2, 4}, 3}} {
		if got := series("", c.of...).Median(); got != c.want {
			t.Errorf("median of %v is %v, not %v", c.of, got, c.want)
		}
	}
	if got := series("").Median(); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

// A ratio is computed per round, so that a round in which the machine was slow for both
// sides does not change it.
func TestRatioIsOfTheRounds(t *testing.T) {
	f := results.Figure{Ours: series("Signalbox", 200, 20, 210)}
	if got := f.Ratio(series("peer", 100, 10, 100)); got != 2 {
		t.Errorf("ratio %v, not 2", got)
	}
	f.Lower = true
	if got := f.Ratio(series("peer", 100, 10, 105)); got != 0.5 {
		t.Errorf("ours takes twice as long: ratio %v, not 0.5", got)
	}
	if got := f.Ratio(series("peer", 100)); got != 0.5 {
		t.Errorf("of one round: ratio of the medians %v, not 0.5", got)
	}
	if got := f.Difference(series("peer", 100, 10, 105)); got != 100 {
		t.Errorf("difference %v, not 100", got)
	}
}

func TestVerdicts(t *testing.T) {
	peers := []results.Series{series("River", 100, 100)}
	limit := series("disk", 50, 50)
	for name, c := range map[string]struct {
		f      results.Figure
		target string
		met    bool
	}{
		"none":               {results.Figure{Ours: series("", 1)}, "", false},
		"at most, met":       {results.Figure{Ours: series("", 2), Unit: "ms", Target: results.Target{AtMost: 2}}, "≤ 2.00 ms", true},
		"at most, missed":    {results.Figure{Ours: series("", 2.1), Unit: "ms", Target: results.Target{AtMost: 2}}, "≤ 2.00 ms", false},
		"at least, missed":   {results.Figure{Ours: series("", 299), Unit: "/s", Target: results.Target{AtLeast: 300}}, "≥ 300/s", false},
		"of a peer, met":     {results.Figure{Ours: series("", 500, 500), Peers: peers, Target: results.Target{Of: "River", AtLeast: 5}}, "≥ 5× River", true},
		"of a peer, missed":  {results.Figure{Ours: series("", 499, 499), Peers: peers, Target: results.Target{Of: "River", AtLeast: 5}}, "≥ 5× River", false},
		"of the limit, met":  {results.Figure{Ours: series("", 60, 60), Limit: &limit, Target: results.Target{Of: "disk", AtLeast: 1}}, "≥ 1× disk", true},
		"slower than, met":   {results.Figure{Lower: true, Ours: series("", 149, 149), Peers: peers, Target: results.Target{Of: "River", AtLeast: 1 / 1.5}}, "≤ 1.5× River", true},
		"slower than, not":   {results.Figure{Lower: true, Ours: series("", 151, 151), Peers: peers, Target: results.Target{Of: "River", AtLeast: 1 / 1.5}}, "≤ 1.5× River", false},
		"above, met":         {results.Figure{Lower: true, Unit: "ms", Ours: series("", 100.4, 100.4), Peers: peers, Target: results.Target{Of: "River", AtMost: 0.5}}, "≤ 0.50 ms above River", true},
		"above, missed":      {results.Figure{Lower: true, Unit: "ms", Ours: series("", 100.6, 100.6), Peers: peers, Target: results.Target{Of: "River", AtMost: 0.5}}, "≤ 0.50 ms above River", false},
		"of one who is gone": {results.Figure{Ours: series("", 1), Target: results.Target{Of: "nobody", AtLeast: 1}}, "", false},
	} {
		if target, met := c.f.Verdict(); target != c.target || met != c.met {
			t.Errorf("%s: %q %t, not %q %t", name, target, met, c.target, c.met)
		}
	}
}

func TestNumbersHaveThreeDigitsThatCount(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.0416: "0.042", 0.5: "0.50", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234: "1,230", 45678: "45,700", 1234567: "1,230,000", -2000: "-2,000"} {
		if got := results.Number(v); got != want {
			t.Errorf("%v is written %q, not %q", v, got, want)
		}
	}
	if got := results.Number(math.Inf(1)); got != "–" {
		t.Errorf("a ratio to nothing is written %q", got)
	}
}

// Parts can be measured separately into one file.
func TestMergeKeepsWhatWasNotMeasuredAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	f, err := results.Read(path)
	if err != nil || len(f.Figures) != 0 {
		t.Fatalf("a file that is not there: %v, %v", f, err)
	}
	f.Merge([]results.Figure{{ID: "a/1", Group: "a", Measured: "2026-01-01"}, {ID: "b/1", Group: "b", Measured: "2026-01-01"}})
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	if f, err = results.Read(path); err != nil {
		t.Fatal(err)
	}
	f.Merge([]results.Figure{{ID: "a/2", Group: "a", Measured: "2026-01-02"}, {ID: "b/1", Group: "b", Measured: "2026-01-02"}})
	var got []string
	for _, one := range f.Figures {
		got = append(got, one.ID+" "+one.Measured)
	}
	want := []string{"a/1 2026-01-01", "a/2 2026-01-02", "b/1 2026-01-02"}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("after the merge: %q, not %q", got, want)
		}
	}
}

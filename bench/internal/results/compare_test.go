package results

import "testing"

// More than 1 is better in both directions, and a figure that is a difference is
// compared by that difference.
func TestCompare(t *testing.T) {
	figure := func(id string, lower, delta bool, ours, peer float64) Figure {
		return Figure{ID: id, Title: id, Unit: "ms", Lower: lower, Delta: delta, Target: Target{Of: "direct"},
			Ours: Series{Name: "ours", Values: []float64{ours}}, Peers: []Series{{Name: "direct", Values: []float64{peer}}}}
	}
	var old, now File
	for _, factor := range []float64{1, 3} { // two rounds, the second on a machine three times as slow
		old.AddRound(File{Figures: []Figure{figure("rate", false, false, 100*factor, 50*factor), figure("added", true, true, 5*factor, 1*factor), figure("gone", true, false, 1, 1)}})
		now.AddRound(File{Figures: []Figure{figure("rate", false, false, 150*factor, 50*factor), figure("added", true, true, 3*factor, 1*factor), figure("new", true, false, 1, 1)}})
	}
	want := `| figure | old | new | new compared with old | least and most | ` + "`-only`" + ` |
|---|---|---|---|---|---|
| rate | 200 ms | 300 ms | 1.50× | 1.50 to 1.50 | ` + "`rate`" + ` |
| 〃, compared with direct | 2.00× | 3.00× | | | |
| added | 8.00 ms | 4.00 ms | 2.00× | 2.00 to 2.00 | ` + "`added`" + ` |
`
	if got := Compare(old, now); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

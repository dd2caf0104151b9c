package cli

import (
	"strings"
	"testing"
	"time"
)

// Events that were sent one by one and arrived together were buffered on the way.
func TestDoctorDetectsBufferedEvents(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(sent []int, here ...int) (out []arrival) { // in ms
		for i := range sent {
			out = append(out, arrival{t0.Add(time.Duration(sent[i]) * time.Millisecond), t0.Add(time.Duration(here[i]) * time.Millisecond)})
		}
		return out
	}
	for _, c := range []struct {
		name string
		got  []arrival
		want string // of all findings
	}{
		{"in time", at([]int{0, 1000, 2000, 3000}, 1, 1001, 2002, 3001), "ok"},
		{"a large snapshot on a slow way", at([]int{0, 1000, 2000, 3000}, 900, 1001, 2001, 3001), "ok"},
		{"a busy machine", at([]int{0, 1000, 2000, 3000}, 400, 1400, 2100, 3300), "ok"},
		{"held back and let go together", at([]int{0, 1000, 2000, 3000}, 3900, 3900, 3901, 3901), "fail"},
		{"two come", at([]int{0, 1000}, 1, 1001), "fail"},
		{"nothing comes", nil, "fail"},
		{"clocks apart", at([]int{0, 1000, 2000, 3000}, 60001, 61001, 62002, 63001), "ok warn"},
	} {
		var states []string
		for _, check := range checkArrivals(c.got) {
			states = append(states, check.State)
			if (check.Cure == "") != (check.State == "ok") {
				t.Errorf("%s: %+v: want a cure unless it is ok", c.name, check)
			}
		}
		if got := strings.Join(states, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

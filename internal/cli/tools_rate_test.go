package cli

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

func TestRateOfToolQueueIsShown(t *testing.T) {
	left, next := 9, time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	rate := api.ToolRate{N: 60, PerSeconds: 60, Burst: 10}
	with := func(left *int, next *time.Time) *api.ToolRate {
		r := rate
		r.Left, r.Next = left, next
		return &r
	}
	for want, q := range map[string]api.ToolQueue{
		"-":                            {},
		"60/1m0s, 9 left":              {Rate: with(&left, nil)},
		"60/1m0s, next at 03:04:05":    {Rate: with(new(int), &next)},
		"60/1m0s each":                 {Rate: with(nil, nil), PerKey: true},
		"2 keys closed until 03:04:05": {PerKey: true, KeysClosed: 2, Closed: &api.ToolClosed{Until: next}},
		"closed until 03:04:05: it?s":  {Rate: with(&left, nil), Closed: &api.ToolClosed{Until: next, Why: "it\x1bs"}},
	} {
		if got := toolRate(&q); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := toolInUse(&api.ToolQueue{InUse: 3, Concurrent: 1, PerKey: true}); got != "3, 1 each" {
		t.Error(got)
	}
}

func TestRateOfToolQueueIsRead(t *testing.T) {
	for text, want := range map[string]api.SetToolRate{
		"none": {}, "10/1m": {N: 10, PerSeconds: 60, Burst: 5}, "1/250ms": {N: 1, PerSeconds: 0.25, Burst: 5},
	} {
		if got, err := parseRate(text, 5); err != nil || got.N != want.N || got.PerSeconds != want.PerSeconds || got.Burst != want.Burst {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "10", "10/", "/1m", "0/1m", "-1/1m", "1.5/1m", "NaN/1m", "10/1", "10/m", "None", "10/1m/2", "99999999999999999999/1s"} {
		if got, err := parseRate(text, 0); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

package signalbox_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Agents are not trusted: no figure that they report makes a sum smaller, wrong or infinite.
func TestSpentOfHostileResults(t *testing.T) {
	for _, c := range []struct {
		r    signalbox.Result
		want signalbox.Spent
	}{
		{signalbox.Result{}, signalbox.Spent{}},
		{signalbox.Result{InputTokens: 7, OutputTokens: 9, CostUSD: 0.1}, signalbox.Spent{InputTokens: 7, OutputTokens: 9, NanoUSD: 100_000_000}},
		{signalbox.Result{InputTokens: -7, OutputTokens: -9, CostUSD: -0.1}, signalbox.Spent{}},
		{signalbox.Result{CostUSD: math.NaN()}, signalbox.Spent{}},
		{signalbox.Result{CostUSD: math.Inf(-1)}, signalbox.Spent{}},
		{
			signalbox.Result{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: math.Inf(1)},
			signalbox.Spent{InputTokens: signalbox.MaxRunTokens, OutputTokens: signalbox.MaxRunTokens, NanoUSD: signalbox.MaxRunUSD * 1e9},
		},
		{signalbox.Result{CostUSD: 0.0000000004}, signalbox.Spent{}},
	} {
		if got := c.r.Spent(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.r, got, c.want)
		}
	}
	full := signalbox.Spent{InputTokens: math.MaxInt64, OutputTokens: 1, NanoUSD: math.MaxInt64 - 1}
	if got := full.Plus(full); got != (signalbox.Spent{InputTokens: math.MaxInt64, OutputTokens: 2, NanoUSD: math.MaxInt64}) {
		t.Errorf("a sum that does not fit is %+v", got)
	}
}

func TestSpentOverTheRunsOfATask(t *testing.T) {
	task := taskIn("working")
	task.OnLost = signalbox.LostRequeue
	ev := eventOf("lost lost", task)
	ev.Result = &signalbox.Result{InputTokens: 5, CostUSD: 0.5}
	again := step(t, task, ev)
	if again.Task.State != signalbox.Pending || again.Task.Spent != (signalbox.Spent{InputTokens: 5, NanoUSD: 500_000_000}) {
		t.Fatalf("requeued with %+v", again.Task.Spent)
	}
	if u := again.Used(); u.Runs != 1 || u.Failed != 1 {
		t.Errorf("a run that was lost counts as %+v", u)
	}
	task = taskIn("working")
	task.Spent = again.Task.Spent
	ev = eventOf("finish completed", task)
	ev.Result = &signalbox.Result{InputTokens: 7, CostUSD: 0.25}
	done := step(t, task, ev)
	if done.Task.Spent != (signalbox.Spent{InputTokens: 12, NanoUSD: 750_000_000}) {
		t.Errorf("ended with %+v", done.Task.Spent)
	}
	if u := done.Used(); u.Runs != 1 || u.Failed != 0 || u.Spent != (signalbox.Spent{InputTokens: 7, NanoUSD: 250_000_000}) {
		t.Errorf("the second run counts as %+v", u)
	}
}

func TestDays(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2026, 11, 27, 23, 59, 59, 999, time.UTC), "2026-11-27"},
		{time.Date(2026, 11, 28, 0, 30, 0, 0, time.FixedZone("", 3600)), "2026-11-27"},
		{time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC), "1969-12-31"},
	} {
		d := signalbox.DayOf(c.at)
		back, err := signalbox.ParseDay(d.String())
		if d.String() != c.want || back != d || err != nil {
			t.Errorf("%s is the day %s, read as %s (%v)", c.at, d, back, err)
		}
	}
	for _, s := range []string{"", "27.11.2026", "2026-11-31", "2026-11-27T00:00:00Z"} {
		if _, err := signalbox.ParseDay(s); err == nil || !strings.Contains(err.Error(), "2006-01-02") {
			t.Errorf("%q: got %v", s, err)
		}
	}
}

package execution_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

func TestSettle(t *testing.T) {
	down := errors.New("no such page")
	void := signalbox.Errorf(signalbox.CodeStaleFence, "fence 1 is void")
	for name, c := range map[string]struct {
		answers []error
		until   int // failures after which it gives up
		want    execution.SettleResult
		pauses  []time.Duration
	}{
		"stored at once": {[]error{nil}, 9, execution.Stored, nil},
		"stored later":   {[]error{down, down, nil}, 9, execution.Stored, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}},
		"void":           {[]error{down, void}, 9, execution.Void, []time.Duration{50 * time.Millisecond}},
		"given up":       {[]error{down, down}, 2, execution.Interrupted, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}},
		"pauses end at 5s": {append(slices.Repeat([]error{down}, 8), nil), 9, execution.Stored, []time.Duration{
			50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
			800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 5 * time.Second,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var pauses []time.Duration
			n := 0
			got, err := execution.Settle(func() error { n++; return c.answers[n-1] }, func(_ error, pause time.Duration) bool {
				pauses = append(pauses, pause)
				return len(pauses) < c.until
			})
			if got != c.want || !slices.Equal(pauses, c.pauses) || !errors.Is(err, c.answers[n-1]) {
				t.Errorf("%v after %v (%v), want %v after %v", got, pauses, err, c.want, c.pauses)
			}
		})
	}
}

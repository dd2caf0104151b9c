package execution_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/execution"
)

// TestMaintenance: what is asked for together is done in one order and once, what
// fails is done again, and rounds come when they are due or asked for.
func TestMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []string
		fails := 1
		m := execution.Maintenance{Log: slog.New(slog.DiscardHandler), Round: func(context.Context) time.Duration {
			did = append(did, "round")
			return time.Minute
		}}
		one := m.Chore("one", func(context.Context) error { did = append(did, "one"); return nil })
		two := m.Chore("two", func(context.Context) error {
			did = append(did, "two")
			if fails--; fails >= 0 {
				return errors.New("no such page")
			}
			return nil
		})
		two.Ask()
		one.Ask()
		one.Ask()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx, time.Minute) }()
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(did, want) {
				t.Errorf("did %v, want %v", did, want)
			}
			did = nil
		}
		expect("one", "two")
		time.Sleep(execution.StoreRetry)
		expect("two")
		m.Early()
		expect("round")
		time.Sleep(time.Minute)
		expect("round")
		stop()
		<-done
	})
}

func TestEvery(t *testing.T) {
	var e execution.Every
	at := time.Unix(1_000_000, 0)
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {time.Second, false}, {time.Minute, true}, {90 * time.Second, false}, {2 * time.Minute, true}} {
		if got := e.Due(at.Add(c.after), time.Minute); got != c.want {
			t.Errorf("%d: after %s it is due: %v", i, c.after, got)
		}
	}
}

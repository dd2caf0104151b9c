package execution_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// TestMaintenance: chores requested together run once, in order; failed chores are retried; rounds run when
// due or requested.
func TestMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		did := make(chan string)
		fails := 1 // only used by the maintenance goroutine
		m := execution.Maintenance{Log: slog.New(slog.DiscardHandler), Round: func(context.Context) time.Duration {
			did <- "round"
			return time.Minute
		}}
		one := m.Chore("one", func(context.Context) error { did <- "one"; return nil })
		two := m.Chore("two", func(context.Context) error {
			did <- "two"
			if fails--; fails >= 0 {
				return errors.New("no such page")
			}
			return nil
		})
		two.Request()
		one.Request()
		one.Request()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		begun := time.Now()
		go func() { defer close(done); m.Run(ctx, time.Minute) }()
		expect := func(want string, at time.Duration) {
			t.Helper()
			if got, after := <-did, time.Since(begun); got != want || after != at {
				t.Errorf("did %s after %s, want %s after %s", got, after, want, at)
			}
		}
		expect("one", 0)
		expect("two", 0)
		expect("two", execution.StoreRetry)
		m.RunNow()
		expect("round", execution.StoreRetry)
		expect("round", execution.StoreRetry+time.Minute)
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

// TestRenewInterval: a lease outlasts three failed renewals.
func TestRenewInterval(t *testing.T) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(memory.New(memory.Options{}), engine.Options{Sealer: sealer})
	if every := execution.RenewInterval(e); every != engine.DefaultExecutionTTL/4 {
		t.Errorf("leases of %s are renewed each %s", engine.DefaultExecutionTTL, every)
	}
}

package standalone_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/standalone"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// instance is one run of the program.
type instance struct {
	*schedule.Scheduler
	stop func()
}

// startInstance starts a scheduler whose clock is ahead.
func startInstance(t *testing.T, folder string, d *director, ahead func() time.Duration, jobs ...signalbox.Schedule) *instance {
	t.Helper()
	store, err := standalone.OpenStore(folder, quiet)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.New(store, d.queue(), schedule.Options{Now: func() time.Time { return time.Now().Add(ahead()) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	l := &instance{s, sync.OnceFunc(func() {
		s.Close()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(l.stop)
	return l
}

// fire fires a job, once the scheduler has started.
func (l *instance) fire(ctx context.Context, name string) {
	testkit.Within(time.Minute, func() bool {
		_, err := l.Trigger(ctx, name, "me")
		return signalbox.CodeOf(err) != signalbox.CodeUnavailable || ctx.Err() != nil
	})
}

// last waits until the newest firing of a job has the status want.
func (l *instance) last(t *testing.T, name string, want signalbox.RunStatus) (s signalbox.Schedule) {
	t.Helper()
	testkit.Wait(t, fmt.Sprintf("the newest firing of %s is %s", name, want), func() bool {
		var err error
		s, err = l.Get(t.Context(), name)
		return err == nil && s.LastStatus == want
	})
	return s
}

// TestRestartResumesOpenFiring: with the same key.
func TestRestartResumesOpenFiring(t *testing.T) {
	d, folder := newDirector(t), t.TempDir()
	d.refuse = &api.Error{Error: "unavailable", Message: "draining", RetryAfter: 503}
	var ahead atomic.Int64
	clock := func() time.Duration { return time.Duration(ahead.Load()) }
	first := startInstance(t, folder, d, clock, job("nightly", ""))
	asked, forget := context.WithCancel(t.Context())
	defer forget()
	go first.fire(asked, "nightly")
	first.last(t, "nightly", signalbox.RunFiring)
	forget() // it continues without its caller
	first.stop()

	d.set(func() { d.refuse = nil })
	ahead.Store(int64(31 * time.Second)) // when another may take it over
	second := startInstance(t, folder, d, clock, job("nightly", ""))
	s := second.last(t, "nightly", signalbox.RunQueued)
	runs, err := second.Runs(t.Context(), s.ID, 10)
	if err != nil || len(runs) != 1 || runs[0].QueueID != s.LastQueueID || runs[0].By != "me" {
		t.Errorf("%+v %v", runs, err)
	}
	d.set(func() {
		if len(d.keys) != 1 || d.keys[schedule.Key(s.ID, runs[0].ID)] != s.LastQueueID {
			t.Errorf("%v", d.keys)
		}
	})
}

func TestTwoSchedulersWithTheSameJobsMakeOneTask(t *testing.T) {
	d := newDirector(t)
	minutely := job("minutely", signalbox.OverlapAllow)
	minutely.Cron = "* * * * *"
	// Both clocks are half a minute before an instant, and then just after it.
	var ahead atomic.Int64
	ahead.Store(int64(time.Until(time.Now().Truncate(time.Minute).Add(2*time.Minute - 30*time.Second))))
	clock := func() time.Duration { return time.Duration(ahead.Load()) }
	one, two := startInstance(t, t.TempDir(), d, clock, minutely), startInstance(t, t.TempDir(), d, clock, minutely)
	ahead.Add(int64(40 * time.Second))
	a, b := one.last(t, "minutely", signalbox.RunQueued), two.last(t, "minutely", signalbox.RunQueued)
	if a.LastQueueID != b.LastQueueID || a.LastQueueID == "" {
		t.Errorf("%s and %s", a.LastQueueID, b.LastQueueID)
	}
	one.stop()
	two.stop()
	if len(d.keys) != 1 || len(d.bodies) != 2 {
		t.Errorf("%d tasks of %d submissions", len(d.keys), len(d.bodies))
	}
}

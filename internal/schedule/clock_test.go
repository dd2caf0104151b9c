package schedule_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// TestIncidentClockJumpFiresTwice: an instant fires once, whichever way the clock jumps.
func TestIncidentClockJumpFiresTwice(t *testing.T) {
	t.Run("a day forwards", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			row := fx.add(fx.start(), "0 * * * *", overlap(signalbox.OverlapAllow))
			advance(90 * time.Minute)
			fx.jumpClock(24 * time.Hour)
			advance(2 * time.Second)
			fx.wantHistory(row.ID, "01T01:00 queued, 02T01:00 queued -23")
			advance(time.Hour)
			fx.wantHistory(row.ID, "01T01:00 queued, 02T01:00 queued -23, 02T02:00 queued")
			fx.wantLog("the clock jumped")
		})
	})
	t.Run("a day backwards", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			advance(48 * time.Hour)
			row := fx.add(s, "0 * * * *", overlap(signalbox.OverlapAllow))
			advance(90 * time.Minute)
			fx.wantHistory(row.ID, "03T01:00 queued")
			fx.jumpClock(-24 * time.Hour)
			advance(23*time.Hour + 29*time.Minute)
			fx.wantHistory(row.ID, "03T01:00 queued") // these have fired already
			row = fx.get(row.ID)
			if next := s.Next(row, 1); len(next) != 1 || !next[0].Equal(time.Date(2000, 1, 3, 2, 0, 0, 0, time.UTC)) {
				t.Errorf("next: %v", next)
			}
			advance(time.Hour + 2*time.Minute)
			fx.wantHistory(row.ID, "03T01:00 queued, 03T02:00 queued")
		})
	})
	t.Run("a day backwards, and it is told to go on", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			advance(24 * time.Hour)
			row := fx.add(s, "0 0,12 * * *", overlap(signalbox.OverlapAllow))
			advance(12*time.Hour + 30*time.Minute)
			fx.wantHistory(row.ID, "02T12:00 queued")
			fx.jumpClock(-24 * time.Hour)
			advance(time.Second)
			for _, on := range []bool{false, true} {
				if _, err := s.SetEnabled(t.Context(), row.ID, on, "kim"); err != nil {
					t.Fatal(err)
				}
			}
			advance(48 * time.Hour)
			// 2 January, 12:00 has fired and does not fire again.
			fx.wantHistory(row.ID, "02T00:00 queued, 02T12:00 queued, 03T00:00 queued, 03T12:00 queued")
			if n := fx.queue.made(); n != 4 {
				t.Errorf("%d tasks", n)
			}
		})
	})
	t.Run("forwards and back again", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			row := fx.add(fx.start(), "0 * * * *", overlap(signalbox.OverlapAllow), missed(signalbox.MissedAll, 24*time.Hour))
			fx.jumpClock(5 * time.Hour)
			advance(2 * time.Second)
			fx.jumpClock(-5 * time.Hour)
			advance(5*time.Hour + 30*time.Minute)
			fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 queued, 01T03:00 queued, 01T04:00 queued, 01T05:00 queued")
		})
	})
	t.Run("backwards while the queue is full", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			row := fx.add(fx.start(), "0 1 * * *", onFull(signalbox.FullRetry))
			fx.queue.set(func(q *queue) { q.fail = queueFull(50) })
			advance(70 * time.Minute)
			fx.jumpClock(-24 * time.Hour)
			fx.queue.set(func(q *queue) { q.fail = nil })
			advance(2 * time.Minute) // not a day later
			fx.wantHistory(row.ID, "01T01:00 queued")
		})
	})
	t.Run("backwards while a firing is open, and the scheduler restarts", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			row := fx.add(s, "0 1 * * *")
			fx.queue.set(func(q *queue) { q.lost = true })
			advance(70 * time.Minute)
			s.stop()
			fx.jumpClock(-24 * time.Hour)
			fx.queue.set(func(q *queue) { q.lost = false })
			fx.start()
			advance(time.Minute)
			fx.wantHistory(row.ID, "01T01:00 queued")
			if n := fx.queue.made(); n != 1 {
				t.Errorf("%d tasks", n)
			}
		})
	})
}

func TestDaylightSavingTransitions(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		fx.zone = "Europe/Berlin"
		s := fx.start()
		daily := fx.add(s, "30 2 * * *", named("daily"), overlap(signalbox.OverlapAllow))
		hourly := fx.add(s, "30 * * * *", named("hourly"), overlap(signalbox.OverlapAllow), func(s *signalbox.Schedule) { s.Timezone = "Europe/Berlin" })
		until := func(at time.Time) {
			fx.jumpClock(at.Sub(fx.now()))
			advance(2 * time.Second)
			for _, row := range []signalbox.Schedule{daily, hourly} { // the skipped ones do not matter here
				for _, on := range []bool{false, true} {
					if _, err := s.SetEnabled(t.Context(), row.ID, on, "kim"); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		fired := func(id string, from time.Time) (at []string) {
			for _, r := range fx.runs(id) {
				if r.Nominal.After(from) && r.Status == signalbox.RunQueued {
					at = append(at, r.Nominal.Format("15:04"))
				}
			}
			return at
		}
		for _, c := range []struct {
			from          time.Time
			daily, hourly string
		}{
			// In UTC. At 01:00 the clock goes from 02:00 to 03:00.
			{time.Date(2026, 3, 28, 23, 45, 0, 0, time.UTC), "[01:00]", "[00:30 01:30 02:30 03:30]"},
			// At 01:00 the clock goes from 03:00 back to 02:00.
			{time.Date(2026, 10, 24, 23, 45, 0, 0, time.UTC), "[00:30]", "[00:30 01:30 02:30 03:30]"},
		} {
			until(c.from)
			advance(4 * time.Hour)
			if got := fmt.Sprint(fired(daily.ID, c.from)); got != c.daily {
				t.Errorf("02:30 in the night of %s: %s UTC, want %s", c.from.Format(time.DateOnly), got, c.daily)
			}
			if got := fmt.Sprint(fired(hourly.ID, c.from)); got != c.hourly {
				t.Errorf("every hour in the night of %s: %s UTC, want %s", c.from.Format(time.DateOnly), got, c.hourly)
			}
		}
	})
}

// TestSlowSubmissionDelaysNoOtherJob: in the system of the seed work-queue, jobs were submitted
// one after another.
func TestSlowSubmissionDelaysNoOtherJob(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		fx.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		slow := fx.add(s, "0 1 * * *", named("slow"))
		for n := range 50 {
			fx.add(s, "0 1 * * *", named(fmt.Sprint("quick-", n)))
		}
		advance(time.Hour)
		if n := fx.queue.made(); n != 50 {
			t.Errorf("%d quick ones of 50 were submitted", n)
		}
		fx.wantHistory(slow.ID, "01T01:00 firing")
		if _, err := s.Trigger(t.Context(), slow.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeConflict {
			t.Errorf("a trigger while it fires: %v", err)
		}
		close(fx.queue.slow)
		synctest.Wait()
		fx.wantHistory(slow.ID, "01T01:00 queued")
	})
}

func TestHangingSubmissionIsRetried(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		fx.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		slow := fx.add(fx.start(), "0 1 * * *", named("slow"))
		advance(time.Hour + 61*time.Second)
		if run := fx.runs(slow.ID)[0]; run.Status != signalbox.RunFiring || run.Attempts != 1 || run.Error == "" {
			t.Errorf("run: %+v", run)
		}
		close(fx.queue.slow)
		advance(2 * time.Minute)
		fx.wantHistory(slow.ID, "01T01:00 queued")
	})
}

func TestCloseLeavesOpenFiringToNextScheduler(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		fx.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		slow := fx.add(s, "0 1 * * *", named("slow"))
		advance(time.Hour)
		s.stop()
		fx.wantHistory(slow.ID, "01T01:00 firing")
		if _, err := s.Trigger(t.Context(), slow.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
			t.Errorf("a trigger after the end: %v", err)
		}
		if err := s.Run(context.Background()); err == nil {
			t.Error("it ran a second time")
		}
		close(fx.queue.slow)
		fx.start()
		advance(31 * time.Second)
		fx.wantHistory(slow.ID, "01T01:00 queued")
		fx.wantTasks("01T01:00:30")
	})
}

package schedule_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// TestIncidentAClockThatJumpsFiresTwice: an instant fires once, whichever way
// the clock goes.
func TestIncidentAClockThatJumpsFiresTwice(t *testing.T) {
	t.Run("a day forwards", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			row := w.add(w.start(), "0 * * * *", overlap(signalbox.OverlapAllow))
			pass(90 * time.Minute)
			w.jump(24 * time.Hour)
			pass(2 * time.Second)
			w.wantStory(row.ID, "01T01:00 queued, 02T01:00 queued -23")
			pass(time.Hour)
			w.wantStory(row.ID, "01T01:00 queued, 02T01:00 queued -23, 02T02:00 queued")
			w.wantLine("the clock jumped")
		})
	})
	t.Run("a day backwards", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			pass(48 * time.Hour)
			row := w.add(s, "0 * * * *", overlap(signalbox.OverlapAllow))
			pass(90 * time.Minute)
			w.wantStory(row.ID, "03T01:00 queued")
			w.jump(-24 * time.Hour)
			pass(23*time.Hour + 29*time.Minute)
			w.wantStory(row.ID, "03T01:00 queued") // all this has been
			row = w.get(row.ID)
			if next := s.Next(row, 1); len(next) != 1 || !next[0].Equal(time.Date(2000, 1, 3, 2, 0, 0, 0, time.UTC)) {
				t.Errorf("next: %v", next)
			}
			pass(time.Hour + 2*time.Minute)
			w.wantStory(row.ID, "03T01:00 queued, 03T02:00 queued")
		})
	})
	t.Run("a day backwards, and it is told to go on", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			pass(24 * time.Hour)
			row := w.add(s, "0 0,12 * * *", overlap(signalbox.OverlapAllow))
			pass(12*time.Hour + 30*time.Minute)
			w.wantStory(row.ID, "02T12:00 queued")
			w.jump(-24 * time.Hour)
			pass(time.Second)
			for _, on := range []bool{false, true} {
				if _, err := s.SetEnabled(t.Context(), row.ID, on, "kim"); err != nil {
					t.Fatal(err)
				}
			}
			pass(48 * time.Hour)
			// 2 January, 12:00 has been and does not fire again.
			w.wantStory(row.ID, "02T00:00 queued, 02T12:00 queued, 03T00:00 queued, 03T12:00 queued")
			if n := w.queue.made(); n != 4 {
				t.Errorf("%d tasks", n)
			}
		})
	})
	t.Run("forwards and back again", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			row := w.add(w.start(), "0 * * * *", overlap(signalbox.OverlapAllow), missed(signalbox.MissedAll, 24*time.Hour))
			w.jump(5 * time.Hour)
			pass(2 * time.Second)
			w.jump(-5 * time.Hour)
			pass(5*time.Hour + 30*time.Minute)
			w.wantStory(row.ID, "01T01:00 queued, 01T02:00 queued, 01T03:00 queued, 01T04:00 queued, 01T05:00 queued")
		})
	})
	t.Run("backwards while the queue is full", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			row := w.add(w.start(), "0 1 * * *", onFull(signalbox.FullRetry))
			w.queue.set(func(q *queue) { q.fail = full(50) })
			pass(70 * time.Minute)
			w.jump(-24 * time.Hour)
			w.queue.set(func(q *queue) { q.fail = nil })
			pass(2 * time.Minute) // not a day later
			w.wantStory(row.ID, "01T01:00 queued")
		})
	})
	t.Run("backwards while a firing is open, and the scheduler restarts", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			row := w.add(s, "0 1 * * *")
			w.queue.set(func(q *queue) { q.lost = true })
			pass(70 * time.Minute)
			s.stop()
			w.jump(-24 * time.Hour)
			w.queue.set(func(q *queue) { q.lost = false })
			w.start()
			pass(time.Minute)
			w.wantStory(row.ID, "01T01:00 queued")
			if n := w.queue.made(); n != 1 {
				t.Errorf("%d tasks", n)
			}
		})
	})
}

// TestANightInWhichClocksArePutForwardAndBack goes through both nights of a year.
func TestANightInWhichClocksArePutForwardAndBack(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		w.zone = "Europe/Berlin"
		s := w.start()
		daily := w.add(s, "30 2 * * *", named("daily"), overlap(signalbox.OverlapAllow))
		hourly := w.add(s, "30 * * * *", named("hourly"), overlap(signalbox.OverlapAllow), func(s *signalbox.Schedule) { s.Timezone = "Europe/Berlin" })
		until := func(at time.Time) {
			w.jump(at.Sub(w.now()))
			pass(2 * time.Second)
			for _, row := range []signalbox.Schedule{daily, hourly} { // what was skipped on the way is not the matter
				for _, on := range []bool{false, true} {
					if _, err := s.SetEnabled(t.Context(), row.ID, on, "kim"); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		fired := func(id string, from time.Time) (at []string) {
			for _, r := range w.runs(id) {
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
			pass(4 * time.Hour)
			if got := fmt.Sprint(fired(daily.ID, c.from)); got != c.daily {
				t.Errorf("02:30 in the night of %s: %s UTC, want %s", c.from.Format(time.DateOnly), got, c.daily)
			}
			if got := fmt.Sprint(fired(hourly.ID, c.from)); got != c.hourly {
				t.Errorf("every hour in the night of %s: %s UTC, want %s", c.from.Format(time.DateOnly), got, c.hourly)
			}
		}
	})
}

// TestOneSlowSubmissionDelaysNone: in the system behind the seed work-queue jobs
// were submitted one after the other.
func TestOneSlowSubmissionDelaysNone(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		w.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		slow := w.add(s, "0 1 * * *", named("slow"))
		for n := range 50 {
			w.add(s, "0 1 * * *", named(fmt.Sprint("quick-", n)))
		}
		pass(time.Hour)
		if n := w.queue.made(); n != 50 {
			t.Errorf("%d quick ones of 50 were submitted", n)
		}
		w.wantStory(slow.ID, "01T01:00 firing")
		if _, err := s.Trigger(t.Context(), slow.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeConflict {
			t.Errorf("a trigger while it fires: %v", err)
		}
		close(w.queue.slow)
		synctest.Wait()
		w.wantStory(slow.ID, "01T01:00 queued")
	})
}

// TestASubmissionThatNeverEndsIsTriedAgain bounds what one answer may take.
func TestASubmissionThatNeverEndsIsTriedAgain(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		w.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		slow := w.add(w.start(), "0 1 * * *", named("slow"))
		pass(time.Hour + 61*time.Second)
		if run := w.runs(slow.ID)[0]; run.Status != signalbox.RunFiring || run.Attempts != 1 || run.Error == "" {
			t.Errorf("run: %+v", run)
		}
		close(w.queue.slow)
		pass(2 * time.Minute)
		w.wantStory(slow.ID, "01T01:00 queued")
	})
}

// TestCloseLeavesASubmissionToTheNextScheduler ends one in the middle.
func TestCloseLeavesASubmissionToTheNextScheduler(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		w.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		slow := w.add(s, "0 1 * * *", named("slow"))
		pass(time.Hour)
		s.stop()
		w.wantStory(slow.ID, "01T01:00 firing")
		if _, err := s.Trigger(t.Context(), slow.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
			t.Errorf("a trigger after the end: %v", err)
		}
		if err := s.Run(context.Background()); err == nil {
			t.Error("it ran a second time")
		}
		close(w.queue.slow)
		w.start()
		pass(31 * time.Second)
		w.wantStory(slow.ID, "01T01:00 queued")
		w.wantTasks("01T01:00:30")
	})
}

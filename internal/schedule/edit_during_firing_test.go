package schedule_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func TestEditDuringFiring(t *testing.T) {
	t.Run("of the expression", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			fx.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
			row := fx.add(s, "0 * * * *", named("slow"))
			advance(time.Hour)
			row.Cron = "30 1 * * *"
			if _, err := s.Edit(t.Context(), row, "kim"); err != nil {
				t.Fatal(err)
			}
			close(fx.queue.slow)
			synctest.Wait()
			fx.wantHistory(row.ID, "01T01:00 queued")
			fx.queue.end("queue-1")
			advance(3 * time.Hour)
			fx.wantTasks("01T01:00:00 01T01:30:00")
			if got := fx.get(row.ID); got.Cron != "30 1 * * *" || got.LastQueueID != "queue-2" {
				t.Errorf("row: %+v", got)
			}
		})
	})
	t.Run("of the text, when the answer was lost", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			fx.queue.set(func(q *queue) { q.lost = true })
			row := fx.add(s, "0 1 * * *")
			advance(time.Hour + 500*time.Millisecond)
			row.Prompt = "something else"
			if _, err := s.Edit(t.Context(), row, "kim"); err != nil {
				t.Fatal(err)
			}
			fx.queue.set(func(q *queue) { q.lost = false })
			advance(time.Minute)
			fx.wantHistory(row.ID, "01T01:00 queued")
			fx.wantTasks("01T01:00:00")
		})
	})
	t.Run("removed while it is submitted", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			fx.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
			row := fx.add(s, "0 1 * * *", named("slow"))
			advance(time.Hour)
			if err := s.Remove(t.Context(), row.ID, "kim"); err != nil {
				t.Fatal(err)
			}
			close(fx.queue.slow)
			synctest.Wait()
			fx.wantTasks("01T01:00:00")
			if runs := fx.runs(row.ID); len(runs) != 0 {
				t.Errorf("runs: %+v", runs)
			}
		})
	})
	t.Run("removed while a firing is held", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			row := fx.add(s, "0 * * * *")
			advance(2*time.Hour + time.Second)
			fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 held")
			if err := s.Remove(t.Context(), row.ID, "kim"); err != nil {
				t.Fatal(err)
			}
			fx.queue.end("queue-1")
			advance(time.Hour)
			fx.wantTasks("01T01:00:00")
		})
	})
	t.Run("disabled while it is tried again", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			fx.queue.set(func(q *queue) { q.fail = queueFull(50) })
			row := fx.add(s, "0 1 * * *", onFull(signalbox.FullRetry))
			advance(time.Hour + 10*time.Second)
			if _, err := s.SetEnabled(t.Context(), row.ID, false, "kim"); err != nil {
				t.Fatal(err)
			}
			fx.queue.set(func(q *queue) { q.fail = nil })
			advance(2 * time.Minute)
			fx.wantHistory(row.ID, "01T01:00 skipped_queue_full")
			fx.wantTasks("")
		})
	})
	t.Run("the overlap, while firings are held", func(t *testing.T) {
		withFixture(t, func(t *testing.T, fx *fixture) {
			s := fx.start()
			row := fx.add(s, "0 1,2,3 * * *")
			advance(3*time.Hour + time.Second)
			fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 held, 01T03:00 held")
			row.Overlap = signalbox.OverlapAllow
			if _, err := s.Edit(t.Context(), row, "kim"); err != nil {
				t.Fatal(err)
			}
			advance(11 * time.Second)
			fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 queued, 01T03:00 queued")
		})
	})
}

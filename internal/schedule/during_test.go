package schedule_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func TestEditsWhileItFires(t *testing.T) {
	t.Run("of the expression", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			w.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
			row := w.add(s, "0 * * * *", named("slow"))
			pass(time.Hour)
			row.Cron = "30 1 * * *"
			if _, err := s.Edit(t.Context(), row, "kim"); err != nil {
				t.Fatal(err)
			}
			close(w.queue.slow)
			synctest.Wait()
			w.wantStory(row.ID, "01T01:00 queued")
			w.queue.end("queue-1")
			pass(3 * time.Hour)
			w.wantTasks("01T01:00:00 01T01:30:00")
			if got := w.get(row.ID); got.Cron != "30 1 * * *" || got.LastQueueID != "queue-2" {
				t.Errorf("row: %+v", got)
			}
		})
	})
	t.Run("of the text, when the answer was lost", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			w.queue.set(func(q *queue) { q.lost = true })
			row := w.add(s, "0 1 * * *")
			pass(time.Hour + 500*time.Millisecond)
			row.Prompt = "something else"
			if _, err := s.Edit(t.Context(), row, "kim"); err != nil {
				t.Fatal(err)
			}
			w.queue.set(func(q *queue) { q.lost = false })
			pass(time.Minute)
			w.wantStory(row.ID, "01T01:00 queued")
			w.wantTasks("01T01:00:00")
		})
	})
	t.Run("removed while it is submitted", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			w.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
			row := w.add(s, "0 1 * * *", named("slow"))
			pass(time.Hour)
			if err := s.Remove(t.Context(), row.ID, "kim"); err != nil {
				t.Fatal(err)
			}
			close(w.queue.slow)
			synctest.Wait()
			w.wantTasks("01T01:00:00")
			if runs := w.runs(row.ID); len(runs) != 0 {
				t.Errorf("runs: %+v", runs)
			}
		})
	})
	t.Run("removed while a firing is held", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			row := w.add(s, "0 * * * *")
			pass(2*time.Hour + time.Second)
			w.wantStory(row.ID, "01T01:00 queued, 01T02:00 held")
			if err := s.Remove(t.Context(), row.ID, "kim"); err != nil {
				t.Fatal(err)
			}
			w.queue.end("queue-1")
			pass(time.Hour)
			w.wantTasks("01T01:00:00")
		})
	})
	t.Run("disabled while it is tried again", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			w.queue.set(func(q *queue) { q.fail = full(50) })
			row := w.add(s, "0 1 * * *", onFull(signalbox.FullRetry))
			pass(time.Hour + 10*time.Second)
			if _, err := s.SetEnabled(t.Context(), row.ID, false, "kim"); err != nil {
				t.Fatal(err)
			}
			w.queue.set(func(q *queue) { q.fail = nil })
			pass(2 * time.Minute)
			w.wantStory(row.ID, "01T01:00 skipped_queue_full")
			w.wantTasks("")
		})
	})
	t.Run("the overlap, while firings are held", func(t *testing.T) {
		within(t, func(t *testing.T, w *world) {
			s := w.start()
			row := w.add(s, "0 1,2,3 * * *")
			pass(3*time.Hour + time.Second)
			w.wantStory(row.ID, "01T01:00 queued, 01T02:00 held, 01T03:00 held")
			row.Overlap = signalbox.OverlapAllow
			if _, err := s.Edit(t.Context(), row, "kim"); err != nil {
				t.Fatal(err)
			}
			pass(11 * time.Second)
			w.wantStory(row.ID, "01T01:00 queued, 01T02:00 queued, 01T03:00 queued")
		})
	})
}

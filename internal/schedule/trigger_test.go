package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func TestTrigger(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "0 1 * * *", func(s *signalbox.Schedule) { s.Enabled = false })
		run, err := s.Trigger(t.Context(), "nightly", "kim")
		if err != nil || run.Status != signalbox.RunQueued || run.QueueID != "queue-1" || run.Trigger != signalbox.TriggerManual || run.By != "kim" || !strings.HasPrefix(run.ID, "run-") {
			t.Errorf("triggered: %+v, %v", run, err)
		}
		run, err = s.Trigger(t.Context(), row.ID, "kim")
		if err != nil || run.Status != signalbox.RunHeld || run.Previous != "queue-1" {
			t.Errorf("triggered while its task runs: %+v, %v", run, err)
		}
		if _, err = s.Trigger(t.Context(), row.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeConflict {
			t.Errorf("triggered while a firing is held: %v", err)
		}
		fx.queue.end("queue-1")
		if got := fx.get(row.ID); got.LastStatus != signalbox.RunQueued || got.LastQueueID != "queue-2" {
			t.Errorf("row: %+v", got)
		}
		fx.queue.end("queue-2")
		fx.queue.set(func(q *queue) { q.fail = queueFull(50) })
		begun := time.Now()
		run, err = s.Trigger(t.Context(), row.ID, "kim")
		if err != nil || run.Status != signalbox.SkippedQueueFull || time.Since(begun) > time.Second {
			t.Errorf("triggered while the queue is full: %+v, %v", run, err)
		}
		fx.queue.set(func(q *queue) { q.fail = errNoAnswer })
		run, err = s.Trigger(t.Context(), row.ID, "kim")
		if err != nil || run.Status != signalbox.SkippedError || run.Attempts == 0 || time.Since(begun) > time.Minute {
			t.Errorf("triggered while nobody answers: %+v, %v", run, err)
		}
		fx.store.set(errStore)
		if _, err = s.Trigger(t.Context(), row.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
			t.Errorf("triggered while the store fails: %v", err)
		}
		fx.store.set(nil)
		if _, err = s.Trigger(t.Context(), "other", "kim"); signalbox.CodeOf(err) != signalbox.CodeNotFound {
			t.Errorf("triggered what does not exist: %v", err)
		}
		fx.queue.set(func(q *queue) { q.fail = nil })
		advance(time.Minute)
		if n := fx.queue.made(); n != 2 {
			t.Errorf("%d tasks", n)
		}
	})
}

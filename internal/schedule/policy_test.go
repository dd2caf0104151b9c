package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func overlap(o signalbox.Overlap) func(*signalbox.Schedule) {
	return func(s *signalbox.Schedule) { s.Overlap = o }
}

func missed(m signalbox.Missed, window time.Duration) func(*signalbox.Schedule) {
	return func(s *signalbox.Schedule) { s.Missed, s.MissedWindow = m, window }
}

func onFull(o signalbox.OnFull) func(*signalbox.Schedule) {
	return func(s *signalbox.Schedule) { s.OnFull = o }
}

func named(name string) func(*signalbox.Schedule) {
	return func(s *signalbox.Schedule) { s.Name = name }
}

func TestSeedJobIsQueuedAndRecorded(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "0 1 * * *", named("nightly-maintenance"))
		pass(90 * time.Minute)
		w.wantTasks("01T01:00:00")
		w.wantStory(row.ID, "01T01:00 queued")
		row = w.get(row.ID)
		if row.LastStatus != signalbox.RunQueued || row.LastQueueID != "queue-1" || !row.LastRun.Equal(time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)) || row.LastError != "" {
			t.Errorf("row: %+v", row)
		}
		run := w.runs(row.ID)[0]
		if run.ID != "at-20000101T010000Z" || run.Trigger != signalbox.TriggerCron || run.QueueID != "queue-1" || run.EndedAt.IsZero() || run.ScheduleID != row.ID {
			t.Errorf("run: %+v", run)
		}
		if key := w.queue.at(0).key; key != "schedule:"+row.ID+":"+run.ID {
			t.Errorf("key %q", key)
		}
		w.wantLine(`level=INFO msg="" job=nightly-maintenance action=queued queue_id=queue-1`)
		w.wantLine(`level=INFO msg="[Schedule] Agent 'coder' execution queue-1: queued"`)
		next := s.Next(row, 3)
		if len(next) != 3 || !next[0].Equal(time.Date(2000, 1, 2, 1, 0, 0, 0, time.UTC)) || !next[2].Equal(time.Date(2000, 1, 4, 1, 0, 0, 0, time.UTC)) {
			t.Errorf("next: %v", next)
		}
		events := w.events()
		last := events[len(events)-1]
		if last.Kind != signalbox.EventScheduleFired || last.Message != "queued" || last.QueueID != "queue-1" || last.Schedule != row.Name || last.Owner != "user:kim" || last.Agent != "coder" {
			t.Errorf("event: %+v", last)
		}
	})
}

func TestSeedSkippedQueueFull(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		w.queue.set(func(q *queue) { q.fail = full(3) })
		row := w.add(s, "0 * * * *")
		any := w.add(s, "0 * * * *", named("any"), func(s *signalbox.Schedule) { s.Agent = "" })
		pass(90 * time.Minute)
		w.wantStory(row.ID, "01T01:00 skipped_queue_full")
		if got := w.runs(row.ID)[0].Error; got != "Agent queue full (3 waiting), skipping scheduled execution" {
			t.Errorf("error %q", got)
		}
		if got := w.get(any.ID).LastError; got != "Queue full (3 waiting), skipping scheduled execution" {
			t.Errorf("error %q", got)
		}
		if got := w.get(row.ID).LastStatus; got != signalbox.SkippedQueueFull {
			t.Errorf("last status %q", got)
		}
		if n := w.queue.tries(); n != 2 {
			t.Errorf("%d submissions of two schedules", n)
		}
		w.wantLine(`level=WARN msg="" job=nightly action=skipped reason=queue_full`)
		w.queue.set(func(q *queue) { q.fail = nil })
		pass(time.Hour)
		w.wantStory(row.ID, "01T01:00 skipped_queue_full, 01T02:00 queued")
	})
}

func TestAFullQueueIsTriedUntilTheNextInstant(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		w.queue.set(func(q *queue) { q.fail = full(50) })
		row := w.add(s, "0 * * * *", onFull(signalbox.FullRetry))
		pass(80 * time.Minute)
		w.wantStory(row.ID, "01T01:00 firing")
		if run := w.runs(row.ID)[0]; run.Attempts < 10 || run.Attempts > 40 || !strings.HasPrefix(run.Error, "Agent queue full (50 waiting)") {
			t.Errorf("run: %+v", run)
		}
		w.queue.set(func(q *queue) { q.fail = nil })
		pass(2 * time.Minute)
		w.wantStory(row.ID, "01T01:00 queued")
		w.queue.set(func(q *queue) { q.fail, q.byID["queue-1"].ended = full(50), true })
		pass(98 * time.Minute) // 02:00 has no room, at 03:00 the next comes
		w.wantStory(row.ID, "01T01:00 queued, 01T02:00 skipped_queue_full, 01T03:00 firing")
		if n := w.queue.made(); n != 1 {
			t.Errorf("%d tasks", n)
		}
		w.queue.set(func(q *queue) { q.fail = nil })
	})
}

// TestIncidentSilentSkipAtTheScheduleBoundary: firings that came to nothing left
// no record. Here each instant has one, whatever it came to.
func TestIncidentSilentSkipAtTheScheduleBoundary(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "0 * * * *", missed(signalbox.MissedAll, 24*time.Hour), overlap(signalbox.OverlapSkip))
		for n, answer := range []error{nil, full(50), nil, signalbox.Errorf(signalbox.CodeForbidden, "no"), full(50), signalbox.Errorf(signalbox.CodeNotFound, "no director"), nil} {
			w.queue.set(func(q *queue) {
				q.fail = answer
				for _, task := range q.order[:min(n/3, len(q.order))] {
					task.ended = true
				}
			})
			pass(time.Hour)
		}
		w.queue.set(func(q *queue) { q.fail = nil })
		pass(2 * time.Second)
		w.wantStory(row.ID, "01T01:00 queued, 01T02:00 skipped_busy, 01T03:00 skipped_busy, 01T04:00 skipped_error, 01T05:00 skipped_queue_full, 01T06:00 skipped_no_director, 01T07:00 queued")
		for _, r := range w.runs(row.ID) {
			if r.Status != signalbox.RunQueued && r.Error == "" {
				t.Errorf("%s says not why", r.ID)
			}
		}
		events := 0
		for _, e := range w.events() {
			if e.Kind == signalbox.EventScheduleFired {
				events++
			}
		}
		if events != 7 {
			t.Errorf("%d events of 7 firings", events)
		}
	})
}

// TestIncidentRunsOverlap: in the system behind the seed work-queue a job was
// running only while it was submitted, so that its tasks ran side by side.
func TestIncidentRunsOverlap(t *testing.T) {
	for _, c := range []struct {
		policy       signalbox.Overlap
		busy, after  string
		tasks, error string
	}{
		{signalbox.OverlapQueue, "01T01:00 queued, 01T02:00 held, 01T03:00 held", "01T01:00 queued, 01T02:00 queued, 01T03:00 held", "01T01:00:00 01T03:30:00", ""},
		{signalbox.OverlapSkip, "01T01:00 queued, 01T02:00 skipped_busy, 01T03:00 skipped_busy", "01T01:00 queued, 01T02:00 skipped_busy, 01T03:00 skipped_busy", "01T01:00:00", "the task before, queue-1, has not ended"},
		{signalbox.OverlapCancel, "01T01:00 queued, 01T02:00 skipped_busy, 01T03:00 held", "01T01:00 queued, 01T02:00 skipped_busy, 01T03:00 queued", "01T01:00:00 01T03:30:00", "a newer firing takes its place: the task before, queue-1, has not ended"},
		{signalbox.OverlapAllow, "01T01:00 queued, 01T02:00 queued, 01T03:00 queued", "01T01:00 queued, 01T02:00 queued, 01T03:00 queued", "01T01:00:00 01T02:00:00 01T03:00:00", ""},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			within(t, func(t *testing.T, w *world) {
				row := w.add(w.start(), "0 1,2,3 * * *", overlap(c.policy))
				pass(3*time.Hour + 30*time.Minute)
				w.wantStory(row.ID, c.busy)
				if cancelled := w.queue.at(0).cancelled; (cancelled != "") != (c.policy == signalbox.OverlapCancel) {
					t.Errorf("the task before was cancelled by %q", cancelled)
				}
				w.queue.end("queue-1")
				w.wantStory(row.ID, c.after)
				w.wantTasks(c.tasks)
				for _, r := range w.runs(row.ID) {
					if r.Status == signalbox.SkippedBusy && r.Error != c.error {
						t.Errorf("error %q", r.Error)
					}
					if r.Status == signalbox.RunHeld && r.Previous != "queue-2" {
						t.Errorf("it waits for %q", r.Previous)
					}
				}
			})
		})
	}
}

func TestHeldFiringsAreBounded(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "* * * * *")
		pass(20*time.Minute + time.Second)
		held := strings.Count(w.story(row.ID), "held")
		busy := strings.Count(w.story(row.ID), "skipped_busy")
		if held != signalbox.MaxHeld || busy != 20-1-signalbox.MaxHeld {
			t.Errorf("%d held, %d skipped: %s", held, busy, w.story(row.ID))
		}
		w.wantLine("action=skipped reason=busy")
		if _, err := s.SetEnabled(t.Context(), row.ID, false, "kim"); err != nil {
			t.Fatal(err)
		}
		pass(11 * time.Second)
		if got := w.story(row.ID); strings.Contains(got, "held") {
			t.Errorf("disabled, and firings are held: %s", got)
		}
		w.queue.end("queue-1")
		w.wantTasks("01T00:01:00")
	})
}

// TestIncidentMissedRunsAreDropped: what passed while the scheduler was away was
// dropped without a word.
func TestIncidentMissedRunsAreDropped(t *testing.T) {
	const window = 3*time.Hour + 30*time.Minute
	for _, c := range []struct {
		name  string
		with  func(*signalbox.Schedule)
		away  time.Duration
		story string
	}{
		{"skip", missed(signalbox.MissedSkip, window), 6*time.Hour + 30*time.Minute, "01T06:00 skipped_missed -5"},
		{"once", missed(signalbox.MissedOnce, window), 6*time.Hour + 30*time.Minute, "01T06:00 queued -5"},
		{"all", missed(signalbox.MissedAll, window), 6*time.Hour + 30*time.Minute, "01T03:00 queued -2, 01T04:00 queued, 01T05:00 queued, 01T06:00 queued"},
		{"skip, and one is on time", missed(signalbox.MissedSkip, window), 6*time.Hour + 59*time.Second, "01T05:00 skipped_missed -4, 01T06:00 queued"},
		{"once, and one is on time", missed(signalbox.MissedOnce, window), 6*time.Hour + time.Minute, "01T06:00 queued -5"},
		{"all, and one is on time", missed(signalbox.MissedAll, window), 6 * time.Hour, "01T03:00 queued -2, 01T04:00 queued, 01T05:00 queued, 01T06:00 queued"},
		{"just on time", missed(signalbox.MissedSkip, window), time.Hour + time.Minute, "01T01:00 queued"},
		{"just too late", missed(signalbox.MissedSkip, window), time.Hour + time.Minute + time.Millisecond, "01T01:00 skipped_missed"},
		{"older than the window", missed(signalbox.MissedOnce, time.Minute), 6*time.Hour + 30*time.Minute, "01T06:00 skipped_missed -5"},
		{"all older than the window", missed(signalbox.MissedAll, 10*time.Minute), 6*time.Hour + 30*time.Minute, "01T06:00 skipped_missed -5"},
		{"nothing", missed(signalbox.MissedAll, window), 59 * time.Minute, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, func(t *testing.T, w *world) {
				s := w.start()
				row := w.add(s, "0 * * * *", overlap(signalbox.OverlapAllow), c.with)
				s.stop()
				pass(c.away)
				w.start()
				pass(0)
				w.wantStory(row.ID, c.story)
				want := strings.Count(c.story, "queued")
				if w.queue.made() != want {
					t.Errorf("%d tasks, want %d", w.queue.made(), want)
				}
				if strings.Contains(c.story, "skipped_missed") {
					w.wantLine("action=skipped reason=missed")
				}
				if got := w.runs(row.ID); len(got) > 0 && w.get(row.ID).LastStatus != got[len(got)-1].Status {
					t.Errorf("last status %s", w.get(row.ID).LastStatus)
				}
			})
		})
	}
}

// TestAllMissedFiringsComeOneAfterTheOther: those that are made up for are not
// left out because many wait.
func TestAllMissedFiringsComeOneAfterTheOther(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "0 * * * *", missed(signalbox.MissedAll, 24*time.Hour))
		s.stop()
		pass(20*time.Hour + 30*time.Minute)
		w.start()
		for n := 1; n <= 20; n++ {
			if got := w.queue.made(); got != n {
				t.Fatalf("%d tasks side by side, want %d after each other", got, n)
			}
			w.queue.end(w.queue.at(n - 1).id)
		}
		if got := w.story(row.ID); strings.Count(got, "queued") != 20 {
			t.Errorf("firings: %s", got)
		}
	})
}

func TestMissedInstantsAreBounded(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "* * * * *", overlap(signalbox.OverlapAllow), missed(signalbox.MissedAll, 366*24*time.Hour))
		s.stop()
		w.jump(300 * 24 * time.Hour)
		w.start()
		pass(0)
		if n := w.queue.made(); n != signalbox.MaxMissed+2 { // and two that are on time
			t.Errorf("%d tasks", n)
		}
		if runs := w.runs(row.ID); len(runs) != signalbox.MaxScheduleRuns {
			t.Errorf("%d runs are kept", len(runs))
		}
	})
}

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
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "0 1 * * *", named("nightly-maintenance"))
		advance(90 * time.Minute)
		fx.wantTasks("01T01:00:00")
		fx.wantHistory(row.ID, "01T01:00 queued")
		row = fx.get(row.ID)
		if row.LastStatus != signalbox.RunQueued || row.LastQueueID != "queue-1" || !row.LastRun.Equal(time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)) || row.LastError != "" {
			t.Errorf("row: %+v", row)
		}
		run := fx.runs(row.ID)[0]
		if run.ID != "at-20000101T010000Z" || run.Trigger != signalbox.TriggerCron || run.QueueID != "queue-1" || run.EndedAt.IsZero() || run.ScheduleID != row.ID {
			t.Errorf("run: %+v", run)
		}
		if key := fx.queue.at(0).key; key != "schedule:"+row.ID+":"+run.ID {
			t.Errorf("key %q", key)
		}
		fx.wantLog(`level=INFO msg="" job=nightly-maintenance action=queued queue_id=queue-1`)
		fx.wantLog(`level=INFO msg="[Schedule] Agent 'coder' execution queue-1: queued"`)
		next := s.Next(row, 3)
		if len(next) != 3 || !next[0].Equal(time.Date(2000, 1, 2, 1, 0, 0, 0, time.UTC)) || !next[2].Equal(time.Date(2000, 1, 4, 1, 0, 0, 0, time.UTC)) {
			t.Errorf("next: %v", next)
		}
		events := fx.events()
		last := events[len(events)-1]
		if last.Kind != signalbox.EventScheduleFired || last.Message != "queued" || last.QueueID != "queue-1" || last.Schedule != row.Name || last.Owner != "user:kim" || last.Agent != "coder" {
			t.Errorf("event: %+v", last)
		}
	})
}

func TestSeedSkippedQueueFull(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		fx.queue.set(func(q *queue) { q.fail = queueFull(3) })
		row := fx.add(s, "0 * * * *")
		any := fx.add(s, "0 * * * *", named("any"), func(s *signalbox.Schedule) { s.Agent = "" })
		advance(90 * time.Minute)
		fx.wantHistory(row.ID, "01T01:00 skipped_queue_full")
		if got := fx.runs(row.ID)[0].Error; got != "Agent queue full (3 waiting), skipping scheduled execution" {
			t.Errorf("error %q", got)
		}
		if got := fx.get(any.ID).LastError; got != "Queue full (3 waiting), skipping scheduled execution" {
			t.Errorf("error %q", got)
		}
		if got := fx.get(row.ID).LastStatus; got != signalbox.SkippedQueueFull {
			t.Errorf("last status %q", got)
		}
		if n := fx.queue.tries(); n != 2 {
			t.Errorf("%d submissions of two schedules", n)
		}
		fx.wantLog(`level=WARN msg="" job=nightly action=skipped reason=queue_full`)
		fx.queue.set(func(q *queue) { q.fail = nil })
		advance(time.Hour)
		fx.wantHistory(row.ID, "01T01:00 skipped_queue_full, 01T02:00 queued")
	})
}

func TestFullQueueIsRetriedUntilNextInstant(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		fx.queue.set(func(q *queue) { q.fail = queueFull(50) })
		row := fx.add(s, "0 * * * *", onFull(signalbox.FullRetry))
		advance(80 * time.Minute)
		fx.wantHistory(row.ID, "01T01:00 firing")
		if run := fx.runs(row.ID)[0]; run.Attempts < 10 || run.Attempts > 40 || !strings.HasPrefix(run.Error, "Agent queue full (50 waiting)") {
			t.Errorf("run: %+v", run)
		}
		fx.queue.set(func(q *queue) { q.fail = nil })
		advance(2 * time.Minute)
		fx.wantHistory(row.ID, "01T01:00 queued")
		fx.queue.set(func(q *queue) { q.fail, q.byID["queue-1"].ended = queueFull(50), true })
		advance(98 * time.Minute) // 02:00 has no room, at 03:00 the next one comes
		fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 skipped_queue_full, 01T03:00 firing")
		if n := fx.queue.made(); n != 1 {
			t.Errorf("%d tasks", n)
		}
		fx.queue.set(func(q *queue) { q.fail = nil })
	})
}

// TestIncidentSilentSkipAtTheScheduleBoundary: skipped firings left no record. Here each
// instant has one.
func TestIncidentSilentSkipAtTheScheduleBoundary(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "0 * * * *", missed(signalbox.MissedAll, 24*time.Hour), overlap(signalbox.OverlapSkip))
		for n, answer := range []error{nil, queueFull(50), nil, signalbox.Errorf(signalbox.CodeForbidden, "no"), queueFull(50), signalbox.Errorf(signalbox.CodeNotFound, "no director"), nil} {
			fx.queue.set(func(q *queue) {
				q.fail = answer
				for _, task := range q.order[:min(n/3, len(q.order))] {
					task.ended = true
				}
			})
			advance(time.Hour)
		}
		fx.queue.set(func(q *queue) { q.fail = nil })
		advance(2 * time.Second)
		fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 skipped_busy, 01T03:00 skipped_busy, 01T04:00 skipped_error, 01T05:00 skipped_queue_full, 01T06:00 skipped_no_director, 01T07:00 queued")
		for _, r := range fx.runs(row.ID) {
			if r.Status != signalbox.RunQueued && r.Error == "" {
				t.Errorf("%s says not why", r.ID)
			}
		}
		events := 0
		for _, e := range fx.events() {
			if e.Kind == signalbox.EventScheduleFired {
				events++
			}
		}
		if events != 7 {
			t.Errorf("%d events of 7 firings", events)
		}
	})
}

// TestIncidentRunsOverlap: in the system of the seed work-queue, a job was running only while
// it was submitted, so that its tasks overlapped.
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
			withFixture(t, func(t *testing.T, fx *fixture) {
				row := fx.add(fx.start(), "0 1,2,3 * * *", overlap(c.policy))
				advance(3*time.Hour + 30*time.Minute)
				fx.wantHistory(row.ID, c.busy)
				if cancelled := fx.queue.at(0).cancelled; (cancelled != "") != (c.policy == signalbox.OverlapCancel) {
					t.Errorf("the task before was cancelled by %q", cancelled)
				}
				fx.queue.end("queue-1")
				fx.wantHistory(row.ID, c.after)
				fx.wantTasks(c.tasks)
				for _, r := range fx.runs(row.ID) {
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
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "* * * * *")
		advance(20*time.Minute + time.Second)
		held := strings.Count(fx.history(row.ID), "held")
		busy := strings.Count(fx.history(row.ID), "skipped_busy")
		if held != signalbox.MaxHeld || busy != 20-1-signalbox.MaxHeld {
			t.Errorf("%d held, %d skipped: %s", held, busy, fx.history(row.ID))
		}
		fx.wantLog("action=skipped reason=busy")
		if _, err := s.SetEnabled(t.Context(), row.ID, false, "kim"); err != nil {
			t.Fatal(err)
		}
		advance(11 * time.Second)
		if got := fx.history(row.ID); strings.Contains(got, "held") {
			t.Errorf("disabled, and firings are held: %s", got)
		}
		fx.queue.end("queue-1")
		fx.wantTasks("01T00:01:00")
	})
}

// TestIncidentMissedRunsAreDropped: instants that passed while the scheduler was down were
// dropped silently.
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
			withFixture(t, func(t *testing.T, fx *fixture) {
				s := fx.start()
				row := fx.add(s, "0 * * * *", overlap(signalbox.OverlapAllow), c.with)
				s.stop()
				advance(c.away)
				fx.start()
				advance(0)
				fx.wantHistory(row.ID, c.story)
				want := strings.Count(c.story, "queued")
				if fx.queue.made() != want {
					t.Errorf("%d tasks, want %d", fx.queue.made(), want)
				}
				if strings.Contains(c.story, "skipped_missed") {
					fx.wantLog("action=skipped reason=missed")
				}
				if got := fx.runs(row.ID); len(got) > 0 && fx.get(row.ID).LastStatus != got[len(got)-1].Status {
					t.Errorf("last status %s", fx.get(row.ID).LastStatus)
				}
			})
		})
	}
}

// TestMissedFiringsRunInOrder: missed firings are not bounded by MaxHeld.
func TestMissedFiringsRunInOrder(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "0 * * * *", missed(signalbox.MissedAll, 24*time.Hour))
		s.stop()
		advance(20*time.Hour + 30*time.Minute)
		fx.start()
		for n := 1; n <= 20; n++ {
			if got := fx.queue.made(); got != n {
				t.Fatalf("%d tasks side by side, want %d after each other", got, n)
			}
			fx.queue.end(fx.queue.at(n - 1).id)
		}
		if got := fx.history(row.ID); strings.Count(got, "queued") != 20 {
			t.Errorf("firings: %s", got)
		}
	})
}

func TestMissedInstantsAreBounded(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "* * * * *", overlap(signalbox.OverlapAllow), missed(signalbox.MissedAll, 366*24*time.Hour))
		s.stop()
		fx.jumpClock(300 * 24 * time.Hour)
		fx.start()
		advance(0)
		if n := fx.queue.made(); n != signalbox.MaxMissed+2 { // and two that are on time
			t.Errorf("%d tasks", n)
		}
		if runs := fx.runs(row.ID); len(runs) != signalbox.MaxScheduleRuns {
			t.Errorf("%d runs are kept", len(runs))
		}
	})
}

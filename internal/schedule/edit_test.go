package schedule_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

func TestRefusedSchedulesNameTheField(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		w.refuse(func(s signalbox.Schedule) error {
			if s.Agent == "nobody" {
				return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: "no agent is named nobody"}
			}
			return nil
		})
		w.add(s, "@daily", named("taken"))
		for field, change := range map[string]func(*signalbox.Schedule){
			"name":                  func(s *signalbox.Schedule) { s.Name = "" },
			"name ":                 func(s *signalbox.Schedule) { s.Name = "../x" },
			"name  ":                func(s *signalbox.Schedule) { s.Name = strings.Repeat("n", 65) },
			"description":           func(s *signalbox.Schedule) { s.Description = strings.Repeat("d", 5000) },
			"cron_expression":       func(s *signalbox.Schedule) { s.Cron = "0 0 31 2 *" },
			"cron_expression ":      func(s *signalbox.Schedule) { s.Cron = "" },
			"cron_expression  ":     func(s *signalbox.Schedule) { s.Cron = "TZ=Asia/Tokyo 0 0 * * *" },
			"timezone":              func(s *signalbox.Schedule) { s.Timezone = "Mars/Olympus" },
			"prompt":                func(s *signalbox.Schedule) { s.Prompt = " \n" },
			"prompt ":               func(s *signalbox.Schedule) { s.Prompt = "a\x00b" },
			"prompt  ":              func(s *signalbox.Schedule) { s.Prompt = "a\xffb" },
			"kind":                  func(s *signalbox.Schedule) { s.Kind = "claude" },
			"kind ":                 func(s *signalbox.Schedule) { s.Agent, s.Kind = "", "a b" },
			"agent":                 func(s *signalbox.Schedule) { s.Agent = "commands@local" },
			"agent ":                func(s *signalbox.Schedule) { s.Agent = "a b" },
			"model":                 func(s *signalbox.Schedule) { s.Model = "-x" },
			"tier":                  func(s *signalbox.Schedule) { s.Tier = "a\nb" },
			"project.name":          func(s *signalbox.Schedule) { s.Project = &signalbox.Project{Name: "\x1b[31m"} },
			"project.path":          func(s *signalbox.Schedule) { s.Project = &signalbox.Project{Path: "a\x00"} },
			"session_id":            func(s *signalbox.Schedule) { s.SessionID = "a/../b" },
			"priority":              func(s *signalbox.Schedule) { s.Priority = 11 },
			"timeout_seconds":       func(s *signalbox.Schedule) { s.TimeoutSeconds = -1 },
			"on_lost":               func(s *signalbox.Schedule) { s.OnLost = "x" },
			"overlap":               func(s *signalbox.Schedule) { s.Overlap = "never" },
			"missed":                func(s *signalbox.Schedule) { s.Missed = "some" },
			"missed_window_seconds": func(s *signalbox.Schedule) { s.MissedWindow = time.Second },
			"on_full":               func(s *signalbox.Schedule) { s.OnFull = "wait" },
		} {
			row := signalbox.Schedule{Name: "new", Cron: "@daily", Prompt: "go", Agent: "coder"}
			change(&row)
			_, err := s.Add(t.Context(), row, "kim")
			wantField(t, err, signalbox.CodeValidation, strings.TrimSpace(field))
		}
		for _, c := range []struct {
			change func(*signalbox.Schedule)
			code   signalbox.Code
			field  string
		}{
			{func(s *signalbox.Schedule) { s.Prompt = strings.Repeat("p", 1<<20+1) }, signalbox.CodeTooLarge, "prompt"},
			{func(s *signalbox.Schedule) { s.Agent = "nobody" }, signalbox.CodeNotFound, "agent"},
			{func(s *signalbox.Schedule) { s.Name = "taken" }, signalbox.CodeConflict, "name"},
		} {
			row := signalbox.Schedule{Name: "new", Cron: "@daily", Prompt: "go", Agent: "coder"}
			c.change(&row)
			_, err := s.Add(t.Context(), row, "kim")
			wantField(t, err, c.code, c.field)
		}
		if all, err := s.All(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%d schedules, %v", len(all), err)
		}
	})
}

func TestASchedulesLife(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, " 0  6 * * * ")
		if row.ID == "" || row.Cron != "0 6 * * *" || row.Overlap != signalbox.OverlapQueue || row.Missed != signalbox.MissedOnce ||
			row.MissedWindow != 24*time.Hour || row.OnFull != signalbox.FullSkip || row.Source != signalbox.ScheduleFromAPI || row.CreatedAt.IsZero() {
			t.Errorf("made: %+v", row)
		}
		if got, err := s.Get(t.Context(), "nightly"); err != nil || got.ID != row.ID {
			t.Errorf("by name: %+v, %v", got, err)
		}
		row.Cron, row.Owner, row.LastStatus, row.CreatedAt = "0 2 * * *", "user:mallory", "queued", time.Time{}
		row, err := s.Edit(t.Context(), row, "kim")
		if err != nil || row.Owner != "user:kim" || row.LastStatus != "" || row.CreatedAt.IsZero() {
			t.Fatalf("edited: %+v, %v", row, err)
		}
		pass(2*time.Hour + time.Second)
		w.wantTasks("01T02:00:00")
		if row, err = s.SetEnabled(t.Context(), "nightly", false, "kim"); err != nil || row.Enabled || s.Next(row, 3) != nil || !s.Due(row).IsZero() {
			t.Errorf("disabled: %+v, %v", row, err)
		}
		again, err := s.SetEnabled(t.Context(), "nightly", false, "kim")
		if err != nil || again.Rev != row.Rev {
			t.Errorf("disabled twice: %+v, %v", again, err)
		}
		pass(48 * time.Hour)
		w.wantTasks("01T02:00:00")
		if row, err = s.SetEnabled(t.Context(), row.ID, true, "kim"); err != nil || !row.Enabled {
			t.Errorf("enabled: %+v, %v", row, err)
		}
		w.queue.end("queue-1")
		w.wantTasks("01T02:00:00") // what passed meanwhile was not missed
		if err := s.Remove(t.Context(), "nightly", "kim"); err != nil {
			t.Fatal(err)
		}
		wantField(t, s.Remove(t.Context(), "nightly", "kim"), signalbox.CodeNotFound, "schedule")
		pass(48 * time.Hour)
		w.wantTasks("01T02:00:00")
		var told []string
		for _, e := range w.events() {
			if e.Kind == signalbox.EventScheduleChanged {
				told = append(told, e.Message+" by "+e.By)
			}
		}
		if got := strings.Join(told, ", "); got != "added by kim, edited by kim, disabled by kim, enabled by kim, removed by kim" {
			t.Errorf("events: %s", got)
		}
	})
}

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

func TestAnOwnerWhoLostTheRightFiresNothing(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		row := w.add(w.start(), "0 1 * * *")
		w.refuse(func(signalbox.Schedule) error {
			return signalbox.Errorf(signalbox.CodeForbidden, "its owner was disabled")
		})
		pass(time.Hour + time.Second)
		w.wantTasks("")
		w.wantStory(row.ID, "01T01:00 skipped_error")
		if got := w.get(row.ID); got.LastError != "its owner was disabled" {
			t.Errorf("row: %+v", got)
		}
	})
}

func TestTrigger(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "0 1 * * *", func(s *signalbox.Schedule) { s.Enabled = false })
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
		w.queue.end("queue-1")
		if got := w.get(row.ID); got.LastStatus != signalbox.RunQueued || got.LastQueueID != "queue-2" {
			t.Errorf("row: %+v", got)
		}
		w.queue.end("queue-2")
		w.queue.set(func(q *queue) { q.fail = full(50) })
		begun := time.Now()
		run, err = s.Trigger(t.Context(), row.ID, "kim")
		if err != nil || run.Status != signalbox.SkippedQueueFull || time.Since(begun) > time.Second {
			t.Errorf("triggered while the queue is full: %+v, %v", run, err)
		}
		w.queue.set(func(q *queue) { q.fail = errNoAnswer })
		run, err = s.Trigger(t.Context(), row.ID, "kim")
		if err != nil || run.Status != signalbox.SkippedError || run.Attempts == 0 || time.Since(begun) > time.Minute {
			t.Errorf("triggered while nobody answers: %+v, %v", run, err)
		}
		w.book.set(errStore)
		if _, err = s.Trigger(t.Context(), row.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
			t.Errorf("triggered while the store fails: %v", err)
		}
		w.book.set(nil)
		if _, err = s.Trigger(t.Context(), "other", "kim"); signalbox.CodeOf(err) != signalbox.CodeNotFound {
			t.Errorf("triggered what does not exist: %v", err)
		}
		w.queue.set(func(q *queue) { q.fail = nil })
		pass(time.Minute)
		if n := w.queue.made(); n != 2 {
			t.Errorf("%d tasks", n)
		}
	})
}

// TestIncidentATriggerRacesAReload: a trigger while the configuration was read
// anew brought the scheduler behind the seed work-queue down.
func TestIncidentATriggerRacesAReload(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		jobs := []signalbox.Schedule{{Name: "job", Cron: "* * * * *", Prompt: "go", Enabled: true, Overlap: signalbox.OverlapAllow}}
		if err := s.Sync(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		done := make(chan bool)
		go func() {
			defer close(done)
			for n := range 50 {
				jobs := jobs
				if n%2 == 0 {
					jobs = nil
				}
				if err := s.Sync(t.Context(), jobs); err != nil {
					t.Error(err)
				}
			}
		}()
		for range 200 {
			_, err := s.Trigger(t.Context(), "job", "kim")
			if code := signalbox.CodeOf(err); code != "" && code != signalbox.CodeNotFound && code != signalbox.CodeConflict {
				t.Fatal(err)
			}
		}
		<-done
	})
}

func TestJobsFollowTheConfiguration(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		job := func(name, expr string, enabled bool) signalbox.Schedule {
			return signalbox.Schedule{Name: name, Cron: expr, Prompt: "go", Enabled: enabled, Agent: "coder", Overlap: signalbox.OverlapAllow}
		}
		w.refuse(func(s signalbox.Schedule) error {
			return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: "it is not there yet"}
		})
		s := w.start()
		sync := func(jobs ...signalbox.Schedule) {
			t.Helper()
			if err := s.Sync(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
		}
		state := func() string {
			all, err := s.All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, row := range all {
				word := row.Name + " " + row.Cron
				if !row.Enabled {
					word += " off"
				}
				words = append(words, word)
			}
			return strings.Join(words, ", ")
		}
		want := func(text string) {
			t.Helper()
			if got := state(); got != text {
				t.Errorf("schedules: %s, want %s", got, text)
			}
		}
		sync(job("one", "@daily", true), job("two", "@daily", false))
		want("one @daily, two @daily off")
		one, err := s.Get(t.Context(), "sched-one")
		if err != nil || one.Source != signalbox.ScheduleFromConfig || one.Owner != "" {
			t.Fatalf("%+v, %v", one, err)
		}
		sync(job("one", "@daily", true), job("two", "@daily", false))
		if same, _ := s.Get(t.Context(), "one"); same.Rev != one.Rev {
			t.Error("what did not change was written")
		}

		_, err = s.Edit(t.Context(), one, "kim")
		wantField(t, err, signalbox.CodeConflict, "")
		wantField(t, s.Remove(t.Context(), "one", "kim"), signalbox.CodeConflict, "")
		if _, err := s.SetEnabled(t.Context(), "one", false, "kim"); err != nil {
			t.Error(err)
		}
		if _, err := s.SetEnabled(t.Context(), "two", true, "kim"); err != nil {
			t.Error(err)
		}
		sync(job("one", "@hourly", true), job("two", "@daily", false))
		want("one @hourly off, two @daily") // what was set through the API stands
		sync(job("one", "@hourly", false), job("two", "@daily", true))
		sync(job("one", "@hourly", true), job("two", "@daily", false))
		want("one @hourly, two @daily off") // until the file changes it

		bad := []signalbox.Schedule{job("one", "0 0 31 2 *", true), job("three", "@daily", true)}
		wantField(t, s.Sync(t.Context(), bad), signalbox.CodeValidation, "cron_expression")
		wantField(t, s.Sync(t.Context(), []signalbox.Schedule{job("one", "@daily", true), job("one", "@hourly", true)}), signalbox.CodeValidation, "name")
		want("one @hourly, two @daily off")

		if _, err := s.SetEnabled(t.Context(), "one", false, "kim"); err != nil {
			t.Error(err)
		}
		s.stop()
		s = w.start()
		sync(job("one", "@hourly", true), job("three", "@daily", true))
		want("one @hourly off, three @daily") // over a restart too
		w.wantLine("a job is enabled in the configuration, but was disabled since")

		w.refuse(nil)
		w.add(s, "@daily", named("mine"))
		wantField(t, s.Sync(t.Context(), []signalbox.Schedule{job("mine", "@daily", true)}), signalbox.CodeConflict, "name")
		sync()
		want("mine @daily")
	})
}

func TestZoneOfSchedulesThatNameNone(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		w.zone = "America/New_York"
		s := w.start()
		if s.Zone() != "America/New_York" {
			t.Error(s.Zone())
		}
		row := w.add(s, "0 1 * * *")
		if due := s.Due(row); !due.Equal(time.Date(2000, 1, 1, 6, 0, 0, 0, time.UTC)) {
			t.Errorf("due %s", due)
		}
		row.Timezone = "Asia/Kathmandu"
		if due := s.Due(row); !due.Equal(time.Date(2000, 1, 1, 19, 15, 0, 0, time.UTC)) {
			t.Errorf("due %s", due)
		}
	})
	if _, err := schedule.New(nil, nil, schedule.Options{Zone: "Mars/Olympus"}); signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Errorf("a zone that does not exist: %v", err)
	}
}

// TestADamagedScheduleStopsNoOther: one that cannot be due is said aloud, the
// others go on.
func TestADamagedScheduleStopsNoOther(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		bad := signalbox.Schedule{ID: "sched-bad", Name: "bad", Cron: "what", Timezone: "Mars/Olympus", Enabled: true, Prompt: "go"}
		if _, err := w.book.Put(t.Context(), bad, nil, signalbox.Entry{}); err != nil {
			t.Fatal(err)
		}
		s := w.start()
		w.wantLine("a schedule is never due: edit it")
		w.add(s, "0 1 * * *")
		pass(2 * time.Hour)
		w.wantTasks("01T01:00:00")
		if s.Next(bad, 3) != nil || !s.Due(bad).IsZero() {
			t.Error("it is due")
		}
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

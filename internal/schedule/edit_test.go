package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

func TestInvalidScheduleErrorNamesField(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		fx.refuse(func(s signalbox.Schedule) error {
			if s.Agent == "nobody" {
				return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: "no agent is named nobody"}
			}
			return nil
		})
		fx.add(s, "@daily", named("taken"))
		for field, change := range map[string]func(*signalbox.Schedule){
			"name":                  func(s *signalbox.Schedule) { s.Name = "" },
			"name ":                 func(s *signalbox.Schedule) { s.Name = "../x" },
			"name  ":                func(s *signalbox.Schedule) { s.Name = strings.Repeat("n", 65) },
			"name   ":               func(s *signalbox.Schedule) { s.Name = "sched-w5f4kq2m9a7x3c1z" },
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
			"land":                  func(s *signalbox.Schedule) { s.Landing = &signalbox.LandWish{Method: "squash"} },
			"method":                func(s *signalbox.Schedule) { s.Landing = &signalbox.LandWish{Onto: "main", Method: "merge"} },
			"checks":                func(s *signalbox.Schedule) { s.Checking.Checks = []signalbox.Check{{Name: "a"}} },
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

func TestScheduleLifecycle(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, " 0  6 * * * ")
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
		advance(2*time.Hour + time.Second)
		fx.wantTasks("01T02:00:00")
		if row, err = s.SetEnabled(t.Context(), "nightly", false, "kim"); err != nil || row.Enabled || s.Next(row, 3) != nil || !s.Due(row).IsZero() {
			t.Errorf("disabled: %+v, %v", row, err)
		}
		again, err := s.SetEnabled(t.Context(), "nightly", false, "kim")
		if err != nil || again.Rev != row.Rev {
			t.Errorf("disabled twice: %+v, %v", again, err)
		}
		advance(48 * time.Hour)
		fx.wantTasks("01T02:00:00")
		if row, err = s.SetEnabled(t.Context(), row.ID, true, "kim"); err != nil || !row.Enabled {
			t.Errorf("enabled: %+v, %v", row, err)
		}
		fx.queue.end("queue-1")
		fx.wantTasks("01T02:00:00") // instants while disabled were not missed
		if err := s.Remove(t.Context(), "nightly", "kim"); err != nil {
			t.Fatal(err)
		}
		wantField(t, s.Remove(t.Context(), "nightly", "kim"), signalbox.CodeNotFound, "schedule")
		advance(48 * time.Hour)
		fx.wantTasks("01T02:00:00")
		var told []string
		for _, e := range fx.events() {
			if e.Kind == signalbox.EventScheduleChanged {
				told = append(told, e.Message+" by "+e.By)
			}
		}
		if got := strings.Join(told, ", "); got != "added by kim, edited by kim, disabled by kim, enabled by kim, removed by kim" {
			t.Errorf("events: %s", got)
		}
	})
}

func TestOwnerWithoutRightsFiresNothing(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		row := fx.add(fx.start(), "0 1 * * *")
		fx.refuse(func(signalbox.Schedule) error {
			return signalbox.Errorf(signalbox.CodeForbidden, "its owner was disabled")
		})
		advance(time.Hour + time.Second)
		fx.wantTasks("")
		fx.wantHistory(row.ID, "01T01:00 skipped_error")
		if got := fx.get(row.ID); got.LastError != "its owner was disabled" {
			t.Errorf("row: %+v", got)
		}
	})
}

func TestDefaultTimezone(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		fx.zone = "America/New_York"
		s := fx.start()
		if s.Zone() != "America/New_York" {
			t.Error(s.Zone())
		}
		row := fx.add(s, "0 1 * * *")
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

// TestInvalidStoredScheduleDoesNotStopOthers: a stored schedule that cannot be parsed is
// logged, the others fire.
func TestInvalidStoredScheduleDoesNotStopOthers(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		bad := signalbox.Schedule{ID: "sched-bad", Name: "bad", Cron: "what", Timezone: "Mars/Olympus", Enabled: true, Prompt: "go"}
		if _, err := fx.store.Put(t.Context(), bad, nil, signalbox.Entry{}); err != nil {
			t.Fatal(err)
		}
		s := fx.start()
		fx.wantLog("a schedule is never due: edit it")
		fx.add(s, "0 1 * * *")
		advance(2 * time.Hour)
		fx.wantTasks("01T01:00:00")
		if s.Next(bad, 3) != nil || !s.Due(bad).IsZero() {
			t.Error("it is due")
		}
	})
}

func TestEditIsRetriedAfterConcurrentChange(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "0 1 * * *")
		meanwhile := 3
		fx.refuse(func(signalbox.Schedule) error { // called between the two
			if meanwhile--; meanwhile >= 0 {
				if _, err := s.SetEnabled(t.Context(), row.ID, meanwhile%2 == 1, "lee"); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		row.Description = "another"
		if got, err := s.Edit(t.Context(), row, "kim"); err != nil || got.Description != "another" {
			t.Errorf("%+v, %v", got, err)
		}
		if got := fx.get(row.ID); got.Description != "another" || meanwhile >= 0 {
			t.Errorf("stored as %+v", got)
		}
	})
}

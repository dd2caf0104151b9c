package schedule_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// TestIncidentTriggerRacesReload: a trigger during a reload of the configuration crashed the
// scheduler of the seed work-queue.
func TestIncidentTriggerRacesReload(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
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

func TestSyncFollowsConfiguration(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		job := func(name, expr string, enabled bool) signalbox.Schedule {
			return signalbox.Schedule{Name: name, Cron: expr, Prompt: "go", Enabled: enabled, Agent: "coder", Overlap: signalbox.OverlapAllow}
		}
		fx.refuse(func(s signalbox.Schedule) error {
			return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: "it is not there yet"}
		})
		s := fx.start()
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
		want("one @hourly off, two @daily") // a value set through the API is kept
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
		s = fx.start()
		sync(job("one", "@hourly", true), job("three", "@daily", true))
		want("one @hourly off, three @daily") // after a restart, too
		fx.wantLog("a job is enabled in the configuration, but was disabled since")

		fx.refuse(nil)
		fx.add(s, "@daily", named("mine"))
		wantField(t, s.Sync(t.Context(), []signalbox.Schedule{job("mine", "@daily", true)}), signalbox.CodeConflict, "name")
		sync()
		want("mine @daily")
	})
}

package sqlite

import (
	"context"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// A schedule whose row is damaged is named, so that it can be removed.
func TestDamagedScheduleIsNamed(t *testing.T) {
	s := openTest(t, Options{})
	ctx := context.Background()
	row := signalbox.Schedule{ID: "sched-1", Name: "nightly"}
	if _, err := s.PutSchedule(ctx, row, []signalbox.ScheduleRun{{ID: "r"}}, signalbox.Entry{}); err != nil {
		t.Fatal(err)
	}
	err := s.do(ctx, 0, func(w *writer) error {
		_, err := w.exec(`UPDATE schedules SET body = x'01ff'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedule(ctx, "sched-1"); signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt || !strings.Contains(err.Error(), "sched-1") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Schedules(ctx); signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt {
		t.Errorf("got %v", err)
	}
	if was, err := s.DeleteSchedule(ctx, "sched-1", signalbox.Entry{}); err != nil || !was {
		t.Errorf("removed %v (%v)", was, err)
	}
}

package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// RunFull checks the bound on schedules on a new, empty store. put stores new
// ones, in whatever way is quick: there are as many as there may be.
func RunFull(t *testing.T, s store.Store, put func([]signalbox.Schedule) error) {
	t.Helper()
	b := newFixture(t, s)
	rows := make([]signalbox.Schedule, signalbox.MaxSchedules)
	for n := range rows {
		rows[n] = signalbox.Schedule{ID: fmt.Sprintf("s%05d", n), Name: fmt.Sprintf("n%05d", n), Cron: "* * * * *", Prompt: "do it"}
	}
	b.must(put(rows))
	err := b.unplanned(signalbox.CodeConflict, signalbox.Schedule{ID: "more", Name: "more"})
	if !strings.Contains(err.Error(), fmt.Sprint(signalbox.MaxSchedules)) {
		b.Fatalf("%v does not name the most", err)
	}
	b.plan(b.schedule("s00007"), aRun("r", start)) // those that are there go on
	b.unplan("s00007")
	b.plan(signalbox.Schedule{ID: "more", Name: "more"})
	b.same("schedules", len(b.schedules()), signalbox.MaxSchedules)
}

package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func scheduleRunRules() []rule {
	return []rule{
		{"a run is stored by its id, as it is", runStored},
		{"hostile strings and numbers come back as they were", runHostile},
		{"a run that is open is replaced", runOpen},
		{"a run that is decided stays as it is, and its schedule too", runDecided},
		{"a run that is refused leaves nothing behind", runRefused},
		{"one id twice in one step is refused", runTwice},
		{"two schedules may have runs of one id", runSameID},
		{"newest first, with equal times by id", runsSorted},
		{"a list is cut at its limit", runsLimit},
		{"the newest 100 are kept", runsKept},
		{"an old run is not kept, and one that is open is", runsOpenKept},
		{"open runs are listed over all schedules, the oldest first", runsOpen},
		{"runs stay when their tasks are pruned", runsPruned},
	}
}

// aRun is a decided run; its schedule is set by the store.
func aRun(id string, at time.Time) signalbox.ScheduleRun {
	return signalbox.ScheduleRun{
		ID: id, Nominal: at, FiredAt: at, EndedAt: at.Add(time.Second), Trigger: signalbox.TriggerCron, Status: signalbox.RunQueued,
		QueueID: "queue-1",
	}
}

// opened is an open run.
func opened(id string, at time.Time) signalbox.ScheduleRun {
	return signalbox.ScheduleRun{ID: id, Nominal: at, FiredAt: at, Trigger: signalbox.TriggerManual, Status: signalbox.RunHeld, Previous: "queue-1", By: "ann"}
}

func (b *fixture) runs(schedule string) []signalbox.ScheduleRun {
	b.Helper()
	list, err := b.ScheduleRuns(b.ctx, schedule, 1000)
	b.must(err)
	return list
}

func (b *fixture) openRuns() []signalbox.ScheduleRun {
	b.Helper()
	list, err := b.OpenRuns(b.ctx)
	b.must(err)
	return list
}

func runIDs(list []signalbox.ScheduleRun) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.ID)
	}
	return names
}

func runStored(b *fixture) {
	r := aRun("r", start)
	r.Trigger, r.Attempts, r.Error, r.Missed, r.Previous, r.By = signalbox.TriggerMissed, 3, "it was full", 7, "queue-0", "ann"
	r.ScheduleID = "of another" // the store sets it
	s := b.plan(aSchedule("a"), r)
	r.ScheduleID = s.ID
	b.same("runs", b.runs(s.ID), []signalbox.ScheduleRun{r})
	b.same("open", b.openRuns(), []signalbox.ScheduleRun(nil))
}

func runHostile(b *fixture) {
	s := b.plan(aSchedule("a"))
	for n, h := range hostile() {
		at := start.Add(time.Duration(n) * time.Second)
		r := aRun(h, at)
		r.Trigger, r.QueueID, r.Previous, r.Error, r.By, r.ScheduleID = signalbox.RunTrigger(h), h, h, h, h, s.ID
		r.Status, r.Attempts, r.Missed = signalbox.RunStatus(h), math.MaxInt32, math.MinInt32
		r.EndedAt, r.Nominal = time.Time{}, time.UnixMilli(-1).UTC()
		s = b.plan(s, r)
		b.same("run", b.runs(s.ID)[0], r)
		b.unplanned(signalbox.CodeConflict, s, aRun(h, at))
	}
	b.same("runs", len(b.runs(s.ID)), len(hostile()))
}

func runOpen(b *fixture) {
	s := b.plan(aSchedule("a"), opened("r", start))
	firing := opened("r", start.Add(time.Second))
	firing.Status, firing.Attempts, firing.ScheduleID = signalbox.RunFiring, 2, s.ID
	s = b.plan(s, firing)
	b.same("runs", b.runs(s.ID), []signalbox.ScheduleRun{firing})
	b.same("open", b.openRuns(), []signalbox.ScheduleRun{firing})
	end := aRun("r", start)
	end.ScheduleID = s.ID
	b.plan(s, end)
	b.same("runs", b.runs(s.ID), []signalbox.ScheduleRun{end})
	b.same("open", b.openRuns(), []signalbox.ScheduleRun(nil))
}

func runDecided(b *fixture) {
	s := b.plan(aSchedule("a"), aRun("r", start))
	before := b.runs(s.ID)
	for _, again := range []signalbox.ScheduleRun{aRun("r", start), opened("r", start), aRun("r", start.Add(time.Hour))} {
		s.Cursor = start.Add(24 * time.Hour)
		b.unplanned(signalbox.CodeConflict, s, again)
		b.same("runs", b.runs(s.ID), before)
		b.same("schedule", b.schedule(s.ID).Cursor, aSchedule("a").Cursor)
	}
	b.same("entries", len(b.journal()), 0)
}

func runRefused(b *fixture) {
	s := b.plan(aSchedule("a"), aRun("r", start), opened("o", start))
	before := [2]any{b.runs(s.ID), b.schedule(s.ID)}
	changed := s
	changed.Name = "other"
	b.unplanned(signalbox.CodeConflict, changed, aRun("new", start), aRun("o", start), aRun("r", start))
	b.same("what is stored", [2]any{b.runs(s.ID), b.schedule(s.ID)}, before)
	b.plan(signalbox.Schedule{ID: "x", Name: "other"}) // the name is free again
}

func runTwice(b *fixture) {
	s := b.plan(aSchedule("a"))
	b.unplanned(signalbox.CodeConflict, s, opened("r", start), aRun("r", start))
	b.unplanned(signalbox.CodeConflict, signalbox.Schedule{ID: "new", Name: "new"}, opened("r", start), opened("r", start))
	b.same("schedules", len(b.schedules()), 1)
	b.same("runs", len(b.runs(s.ID)), 0)
}

func runSameID(b *fixture) {
	one, two := b.plan(aSchedule("a"), aRun("r", start)), b.plan(aSchedule("b"), opened("r", start))
	b.same("runs", [2]int{len(b.runs(one.ID)), len(b.runs(two.ID))}, [2]int{1, 1})
	b.same("open", b.openRuns()[0].ScheduleID, two.ID)
	b.plan(two, aRun("r", start))
	b.same("open", len(b.openRuns()), 0)
}

func runsSorted(b *fixture) {
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	s := b.plan(aSchedule("a"), aRun("b", at(1)), aRun("a", at(2)), aRun("c", at(1)))
	s = b.plan(s, aRun("C", at(1)), aRun("z", at(0)), opened("never", time.Time{}))
	b.same("runs", runIDs(b.runs(s.ID)), []string{"a", "c", "b", "C", "z", "never"})
}

func runsLimit(b *fixture) {
	s := b.plan(aSchedule("a"), aRun("1", start), aRun("2", start.Add(time.Second)), aRun("3", start.Add(2*time.Second)))
	for _, c := range []struct {
		limit int
		want  []string
	}{{-1, nil}, {0, nil}, {1, []string{"3"}}, {2, []string{"3", "2"}}, {99, []string{"3", "2", "1"}}} {
		got, err := b.ScheduleRuns(b.ctx, s.ID, c.limit)
		b.must(err)
		b.same(fmt.Sprint("runs, at most ", c.limit), runIDs(got), c.want)
	}
}

// manyRuns returns runs at the seconds from to until, newest first, and their ids.
func manyRuns(from, until int) (list []signalbox.ScheduleRun, ids []string) {
	for n := until; n >= from; n-- {
		at := start.Add(time.Duration(n) * time.Second)
		list, ids = append(list, aRun(signalbox.RunID(at), at)), append(ids, signalbox.RunID(at))
	}
	return list, ids
}

func runsKept(b *fixture) {
	const most = signalbox.MaxScheduleRuns
	s, other := b.plan(aSchedule("a")), b.plan(aSchedule("b"), aRun("r", start.Add(-time.Hour)))
	all, names := manyRuns(1, most+5)
	for n := range most + 5 { // one by one, oldest first
		s = b.plan(s, all[len(all)-1-n])
	}
	b.same("runs", runIDs(b.runs(s.ID)), names[:most])
	more, later := manyRuns(most+6, 3*most) // many in one call
	s = b.plan(s, more...)
	b.same("runs", runIDs(b.runs(s.ID)), later[:most])
	b.plan(s, aRun("late", start)) // older than all that are kept
	b.same("runs", runIDs(b.runs(s.ID)), later[:most])
	b.same("runs of another", len(b.runs(other.ID)), 1)
}

func runsOpenKept(b *fixture) {
	const most = signalbox.MaxScheduleRuns
	all, names := manyRuns(1, most)
	s := b.plan(aSchedule("a"), opened("old", start), opened("older", start.Add(-time.Second)))
	s = b.plan(s, all...)
	b.same("runs", runIDs(b.runs(s.ID)), append(names, "old", "older"))
	got, err := b.ScheduleRuns(b.ctx, s.ID, 2)
	b.must(err)
	b.same("the newest two", runIDs(got), names[:2])
	s = b.plan(s, aRun("older", start.Add(-time.Second))) // decided, so it is one of the old ones
	b.same("runs", runIDs(b.runs(s.ID)), append(names[:most:most], "old"))
	b.same("open", runIDs(b.openRuns()), []string{"old"})
	b.plan(s, aRun("old", start.Add(time.Hour)))
	b.same("runs", runIDs(b.runs(s.ID)), append([]string{"old"}, names[:most-1]...))
}

func runsOpen(b *fixture) {
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	b.plan(aSchedule("b"), opened("2", at(2)), opened("9", at(1)), aRun("x", at(0)))
	b.plan(aSchedule("a"), opened("2", at(2)), opened("1", at(2)), opened("z", at(0)))
	var got []string
	for _, r := range b.openRuns() {
		got = append(got, r.ScheduleID+" "+r.ID)
	}
	b.same("open", got, []string{"sched-a z", "sched-b 9", "sched-a 1", "sched-a 2", "sched-b 2"})
	firing := opened("z", at(0))
	firing.Status = signalbox.RunFiring
	if !firing.Status.Open() || !opened("", start).Status.Open() || aRun("", start).Status.Open() {
		b.Fatal("these runs prove nothing")
	}
}

func runsPruned(b *fixture) {
	t := b.submit()
	r := aRun("r", start)
	r.QueueID = t.ID
	s := b.plan(aSchedule("a"), r)
	b.run("a")
	b.prune(b.now.Add(time.Hour), 10)
	b.same("run", b.runs(s.ID)[0].QueueID, t.ID)
	b.same("schedules", len(b.schedules()), 1)
}

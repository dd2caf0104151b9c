package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func scheduleRules() []rule {
	return []rule{
		{"a schedule is stored by id, as it is", scheduleStored},
		{"hostile strings come back byte for byte", scheduleHostile},
		{"numbers and times come back at their limits", scheduleLimits},
		{"each write is one revision more", scheduleRevisions},
		{"a schedule that changed in the meantime is stale", scheduleStale},
		{"a removed schedule is stale, and new with revision 0", scheduleRemovedStale},
		{"of many writers of one revision, one succeeds", scheduleRace},
		{"names are unique, and the refusal names the field", scheduleNames},
		{"a name that was given up is free", scheduleRenamed},
		{"schedules are listed by name, byte by byte", schedulesSorted},
		{"an unknown schedule is not found, and has no runs", scheduleUnknown},
		{"a removed schedule is gone with its runs", scheduleDeleted},
		{"an entry with a kind is written, another is not", scheduleEntries},
		{"no memory is shared with the callers", scheduleNoAlias},
	}
}

func aSchedule(name string) signalbox.Schedule {
	thinking := true
	return signalbox.Schedule{
		ID: "sched-" + name, Name: name, Description: "each night", Cron: "0 2 * * *", Timezone: "Europe/Berlin", Enabled: true,
		Source: signalbox.ScheduleFromAPI, Owner: "user:ann", OwnerEmail: "ann@example.com",
		Prompt: "look after it", Model: "m", Tier: "t", TimeoutSeconds: 60, SessionID: "s",
		Project: &signalbox.Project{Name: "p", Path: "/p"}, Thinking: &thinking, Agent: "a", Kind: "k", Priority: -3,
		OnLost: signalbox.LostRequeue, Overlap: signalbox.OverlapCancel, Missed: signalbox.MissedAll, MissedWindow: time.Hour,
		OnFull: signalbox.FullRetry, CreatedAt: start, UpdatedAt: start.Add(time.Second), Cursor: start.Add(time.Minute),
		LastRun: start.Add(time.Hour), LastStatus: signalbox.RunQueued, LastQueueID: id(1), LastError: "it was full",
		Workspace: &signalbox.Workspace{Kind: signalbox.WorkspaceWorktree, Base: "main"},
		Checking:  signalbox.Checking{Checks: []signalbox.Check{{Name: "test", Run: "go test ./...", TimeoutSeconds: 60}}, Retries: new(int)},
		Landing:   &signalbox.LandWish{Onto: "main", Method: "squash", FastForward: true},
	}
}

// plan stores a schedule, and returns the stored row.
func (b *fixture) plan(s signalbox.Schedule, runs ...signalbox.ScheduleRun) signalbox.Schedule {
	b.Helper()
	got, err := b.PutSchedule(b.ctx, s, runs, signalbox.Entry{})
	b.must(err)
	return got
}

// unplanned wants a schedule, or one of its runs, to be refused.
func (b *fixture) unplanned(code signalbox.Code, s signalbox.Schedule, runs ...signalbox.ScheduleRun) error {
	b.Helper()
	_, err := b.PutSchedule(b.ctx, s, runs, signalbox.Entry{Kind: signalbox.EventScheduleChanged})
	b.refused(err, code)
	return err
}

// stalePlan wants a schedule to be refused because its revision is stale.
func (b *fixture) stalePlan(s signalbox.Schedule, runs ...signalbox.ScheduleRun) {
	b.Helper()
	_, err := b.PutSchedule(b.ctx, s, runs, signalbox.Entry{Kind: signalbox.EventScheduleChanged})
	if !errors.Is(err, store.ErrStale) {
		b.Fatalf("got %v, want ErrStale", err)
	}
}

func (b *fixture) schedule(id string) signalbox.Schedule {
	b.Helper()
	s, err := b.Schedule(b.ctx, id)
	b.must(err)
	return s
}

func (b *fixture) schedules() []signalbox.Schedule {
	b.Helper()
	list, err := b.Schedules(b.ctx)
	b.must(err)
	return list
}

func (b *fixture) unplan(id string) bool {
	b.Helper()
	was, err := b.DeleteSchedule(b.ctx, id, signalbox.Entry{At: b.now, Kind: signalbox.EventScheduleChanged, Message: "removed"})
	b.must(err)
	return was
}

func scheduleStored(b *fixture) {
	b.same("schedules", b.schedules(), []signalbox.Schedule(nil))
	want := aSchedule("nightly")
	got := b.plan(want)
	want.Rev = 1
	b.same("answer", got, want)
	b.same("row", b.schedule(want.ID), want)
	b.same("list", b.schedules(), []signalbox.Schedule{want})
	plain := signalbox.Schedule{ID: want.ID, Rev: 1, Name: "x"}
	got = b.plan(plain)
	plain.Rev = 2
	b.same("answer", got, plain)
	b.same("row", b.schedule(want.ID), plain)
	if s := b.schedule(want.ID); s.Project != nil || s.Thinking != nil || !s.Cursor.IsZero() || !s.LastRun.IsZero() {
		b.Fatalf("what is absent came back: %+v", s)
	}
}

func scheduleHostile(b *fixture) {
	var rev int64
	for n, h := range hostile() {
		s := aSchedule("odd")
		s.Rev, s.Name, s.Description, s.Cron, s.Timezone, s.Source = rev, h, h, h, h, signalbox.ScheduleSource(h)
		s.Owner, s.OwnerEmail, s.Prompt, s.Model, s.Tier, s.SessionID, s.Agent, s.Kind = h, h, h, h, h, h, h, h
		s.Project, s.OnLost, s.Overlap = &signalbox.Project{Name: h, Path: h}, signalbox.OnLost(h), signalbox.Overlap(h)
		s.Missed, s.OnFull, s.LastStatus = signalbox.Missed(h), signalbox.OnFull(h), signalbox.RunStatus(h)
		s.LastQueueID, s.LastError = h, h
		b.plan(s)
		rev++
		s.Rev = rev
		b.same("row", b.schedule(s.ID), s)
		_, err := b.Schedule(b.ctx, h)
		b.refused(err, signalbox.CodeNotFound)
		b.same("was there", b.unplan(h), false)
		b.same("runs", len(b.runs(h)), 0)
		other := signalbox.Schedule{ID: h, Name: fmt.Sprintf("by id %d", n)}
		b.plan(other, aRun(h, start))
		other.Rev = 1
		b.same("row by an odd id", b.schedule(h), other)
		b.same("runs by an odd id", len(b.runs(h)), 1)
		b.same("was there", b.unplan(h), true)
	}
}

func scheduleLimits(b *fixture) {
	far := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	s := signalbox.Schedule{
		ID: "x", Name: "x", Prompt: strings.Repeat("0123456789abcdef", 1<<16), TimeoutSeconds: math.MaxInt32, Priority: math.MinInt32,
		MissedWindow: math.MaxInt64, CreatedAt: time.UnixMilli(0).UTC(), UpdatedAt: time.UnixMilli(-1).UTC(), Cursor: far, LastRun: far,
	}
	b.plan(s)
	s.Rev = 1
	got := b.schedule("x")
	if got.Prompt != s.Prompt {
		b.Fatalf("the prompt has %d bytes", len(got.Prompt))
	}
	b.same("row", got, s)
	for _, at := range []time.Time{got.CreatedAt, got.UpdatedAt, got.Cursor, got.LastRun} {
		if at.Location() != time.UTC {
			b.Fatalf("%v is not in UTC", at)
		}
	}
}

func scheduleRevisions(b *fixture) {
	s := aSchedule("a")
	for n := range 5 {
		s = b.plan(s, aRun(fmt.Sprint(n), start))
		b.same("revision", s.Rev, int64(n+1))
		b.same("stored", b.schedule(s.ID).Rev, int64(n+1))
	}
}

func scheduleStale(b *fixture) {
	first := b.plan(aSchedule("a"))
	b.plan(first)
	before := everything(b)
	for _, rev := range []int64{0, 1, 3, -1} {
		old := aSchedule("a")
		old.Rev, old.Description = rev, "changed"
		b.stalePlan(old, aRun("r", start))
	}
	b.same("what is stored", everything(b), before)
	clash := aSchedule("b") // the revision is checked first
	clash.ID, clash.Rev = first.ID, 1
	b.plan(aSchedule("b"))
	b.stalePlan(clash)
	b.same("runs", len(b.runs(first.ID)), 0)
}

func scheduleRemovedStale(b *fixture) {
	s := b.plan(aSchedule("a"))
	b.unplan(s.ID)
	b.stalePlan(s)
	s.Rev = 0
	b.same("revision", b.plan(s).Rev, int64(1))
}

func scheduleRace(b *fixture) {
	const n = 32
	s := b.plan(aSchedule("a"))
	var won int
	for i, err := range together(n, func(i int) error {
		run := aRun(signalbox.RunID(start), start) // one id for each instant
		run.By = fmt.Sprint(i)
		return second(b.PutSchedule(b.ctx, s, []signalbox.ScheduleRun{run}, signalbox.Entry{Kind: signalbox.EventScheduleFired, Message: fmt.Sprint(i)}))
	}) {
		if err == nil {
			won++
			b.same("who has the instant", b.runs(s.ID)[0].By, fmt.Sprint(i))
			continue
		}
		if !errors.Is(err, store.ErrStale) {
			b.Fatal(err)
		}
	}
	b.same("who won", won, 1)
	b.same("revision", b.schedule(s.ID).Rev, int64(2))
	b.same("entries", len(b.journal()), 1)
}

func scheduleNames(b *fixture) {
	b.plan(aSchedule("a"))
	second := b.plan(aSchedule("b"), aRun("r", start))
	for _, s := range []signalbox.Schedule{{ID: "new", Name: "a"}, {ID: second.ID, Rev: second.Rev, Name: "a"}} {
		before := everything(b)
		err := b.unplanned(signalbox.CodeConflict, s, aRun("other", start))
		var said *signalbox.Error
		if !errors.As(err, &said) || said.Field != "name" || !strings.Contains(said.Message, "a") {
			b.Fatalf("%v does not name the field", err)
		}
		b.same("what is stored", everything(b), before)
		b.same("runs", [2]int{len(b.runs("new")), len(b.runs(second.ID))}, [2]int{0, 1})
	}
	b.plan(signalbox.Schedule{ID: "upper", Name: "A"}) // names are case-sensitive
}

func scheduleRenamed(b *fixture) {
	s := b.plan(aSchedule("a"), aRun("r", start))
	s.Name = "z"
	s = b.plan(s)
	b.same("runs", len(b.runs(s.ID)), 1)
	b.plan(signalbox.Schedule{ID: "new", Name: "a"})
	b.unplanned(signalbox.CodeConflict, signalbox.Schedule{ID: "newer", Name: "z"})
	b.unplan(s.ID)
	b.plan(signalbox.Schedule{ID: "newer", Name: "z"})
}

func schedulesSorted(b *fixture) {
	for n, name := range []string{"b", "a", "C", "a.1", "é", "z"} {
		b.plan(signalbox.Schedule{ID: fmt.Sprint(9 - n), Name: name})
	}
	var names []string
	for _, s := range b.schedules() {
		names = append(names, s.Name)
	}
	b.same("names", names, []string{"C", "a", "a.1", "b", "z", "é"})
}

func scheduleUnknown(b *fixture) {
	_, err := b.Schedule(b.ctx, "sched-x")
	b.refused(err, signalbox.CodeNotFound)
	b.same("runs", b.runs("sched-x"), []signalbox.ScheduleRun(nil))
	b.same("open", b.openRuns(), []signalbox.ScheduleRun(nil))
}

func scheduleDeleted(b *fixture) {
	a := b.plan(aSchedule("a"), aRun("r", start), opened("o", start))
	other := b.plan(aSchedule("b"), aRun("r", start), opened("o", start))
	b.same("was there", b.unplan(a.ID), true)
	b.same("was there", b.unplan(a.ID), false)
	_, err := b.Schedule(b.ctx, a.ID)
	b.refused(err, signalbox.CodeNotFound)
	b.same("runs", len(b.runs(a.ID)), 0)
	b.same("entries", len(b.journal()), 1)
	b.same("runs of another", len(b.runs(other.ID)), 2)
	b.same("open", len(b.openRuns()), 1)
	a.Rev = 0
	b.plan(a)
	b.same("runs, when it is there again", len(b.runs(a.ID)), 0)
}

func scheduleEntries(b *fixture) {
	s := b.plan(aSchedule("a"), aRun("r", start))
	b.same("entries", len(b.journal()), 0)
	for n, h := range append(hostile(), "a") {
		e := signalbox.Entry{Seq: 77, At: b.now, Kind: signalbox.EventScheduleFired, Message: h, Owner: h, Schedule: h}
		got, err := b.PutSchedule(b.ctx, s, nil, e)
		b.must(err)
		s, e.Seq = got, int64(n+1)
		b.same("entry", b.journal()[n], e)
	}
	_, err := b.DeleteSchedule(b.ctx, s.ID, signalbox.Entry{})
	b.must(err)
	b.same("entries", len(b.journal()), len(hostile())+1)
}

func scheduleNoAlias(b *fixture) {
	scribble := func(s signalbox.Schedule) {
		s.Project.Name, *s.Thinking = "?", false
	}
	s, runs := aSchedule("a"), []signalbox.ScheduleRun{opened("r", start)}
	got, err := b.PutSchedule(b.ctx, s, runs, signalbox.Entry{})
	b.must(err)
	want := aSchedule("a")
	want.Rev = 1
	scribble(s)
	runs[0].Error = "?"
	b.same("answer", got, want)
	scribble(got)
	scribble(b.schedule(want.ID))
	scribble(b.schedules()[0])
	b.runs(want.ID)[0].Error = "?"
	b.openRuns()[0].Error = "?"
	b.same("row", b.schedule(want.ID), want)
	b.same("run", [2]string{b.runs(want.ID)[0].Error, b.openRuns()[0].Error}, [2]string{opened("r", start).Error, opened("r", start).Error})
}

// RunFull checks the maximum number of schedules on a new, empty store. put stores new ones in any fast way,
// since there are many.
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
	b.plan(b.schedule("s00007"), aRun("r", start)) // existing schedules can still be stored
	b.unplan("s00007")
	b.plan(signalbox.Schedule{ID: "more", Name: "more"})
	b.same("schedules", len(b.schedules()), signalbox.MaxSchedules)
}

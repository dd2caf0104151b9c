package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// turn is the work on one schedule: first the instants that have passed are
// decided upon, and that is written; then what is open is gone on with. Nothing
// is submitted of which it is not written that it fires, so whatever crash comes
// between, an instant fires once.
type turn struct {
	s    *Scheduler
	e    *entry
	ctx  context.Context //nolint:containedctx // of this turn
	row  signalbox.Schedule
	due  instants
	open []firing
	// decided are instants that were decided before the cursor was put back.
	decided map[string]bool
}

// maxTries bounds how often a decision is made anew because others write too.
const maxTries = 50

// errGone ends a turn: there is nothing left to work on.
var errGone = errors.New("the schedule is gone")

func (s *Scheduler) turn(e *entry) {
	t := &turn{s: s, e: e, ctx: s.ctx}
	err := t.read(false)
	if err == nil {
		t.manual()
		err = t.decide()
	}
	if err == nil {
		err = t.goOn()
	}
	t.failed(err)
}

// failed lets the schedule be worked on again after a while where something
// could not be read or written.
func (t *turn) failed(err error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if err == nil || errors.Is(err, errGone) {
		t.e.failed, t.e.retryAt = 0, time.Time{}
		return
	}
	wait := backoff(t.e.failed)
	t.e.failed++
	t.e.retryAt = t.s.now().Add(wait)
	if tr := t.e.trigger; tr != nil { // it is not kept for later
		t.e.trigger = nil
		tr.answer(signalbox.ScheduleRun{}, err)
	}
	if t.s.ctx.Err() == nil {
		t.s.log.Error("a schedule cannot be worked on", "job", t.e.row.Name, "error", err, "again_in", wait.String())
	}
}

// backoff is how long to wait after the n-th failure in a row, from 0.
func backoff(n int) time.Duration { return min(firstBackoff<<min(n, 10), mostBackoff) }

// read reads the schedule anew, and its open runs where another may have
// changed them.
func (t *turn) read(stale bool) error {
	row, err := t.s.book.Schedule(t.ctx, t.e.row.ID)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		t.s.mu.Lock()
		t.s.drop(t.e)
		t.s.mu.Unlock()
		return errGone
	}
	if err != nil {
		return err
	}
	t.s.mu.Lock()
	known := t.open
	if !stale {
		known = slices.Clone(t.e.open)
	}
	stale = stale || row.Rev != t.e.row.Rev || t.e.skipped
	t.e.skipped = false
	t.s.mu.Unlock()
	t.open = known
	if stale {
		// Every change of a run changes the revision of its row.
		runs, err := t.s.book.Runs(t.ctx, row.ID, signalbox.MaxScheduleRuns+signalbox.MaxMissed+signalbox.MaxHeld)
		if err != nil {
			t.s.mu.Lock()
			t.e.skipped = true
			t.s.mu.Unlock()
			return err
		}
		t.open = merge(known, runs)
	}
	t.row = row
	t.commit()
	return nil
}

// commit makes what the turn knows the scheduler's, and tells those who wait for
// the decision of the runs that were written: what they do next must find it.
func (t *turn) commit(written ...signalbox.ScheduleRun) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.row.Rev > t.e.row.Rev || t.e.zone == nil {
		t.s.set(t.e, t.row)
	}
	t.due = instants{expr: t.e.expr, zone: t.e.zone}
	t.e.open = slices.Clone(t.open)
	for _, r := range written {
		if tr := t.e.waiters[r.ID]; tr != nil && r.Status != signalbox.RunFiring {
			delete(t.e.waiters, r.ID)
			tr.answer(r, nil)
		}
	}
	t.tellDropped()
}

// tellDropped answers those who wait for a firing that is no longer open here:
// another scheduler decided it.
func (t *turn) tellDropped() {
	for run, tr := range t.e.waiters {
		if t.find(run) == nil {
			delete(t.e.waiters, run)
			tr.answer(tr.run, nil)
		}
	}
}

func (t *turn) find(run string) *firing {
	for i := range t.open {
		if t.open[i].run.ID == run {
			return &t.open[i]
		}
	}
	return nil
}

// put writes the row with runs, of which those that are open are gone on with.
func (t *turn) put(row signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) error {
	for i := range runs {
		runs[i].ScheduleID = row.ID
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), slowest)
	defer cancel()
	stop := context.AfterFunc(t.ctx, func() { time.AfterFunc(lastWords, cancel) })
	defer stop()
	stored, err := t.s.book.Put(ctx, row, runs, entry)
	if err != nil {
		return err
	}
	t.row = stored
	for _, r := range runs {
		if f := t.find(r.ID); f != nil && r.Status.Open() {
			f.run = r
			continue
		}
		t.open = slices.DeleteFunc(t.open, func(f firing) bool { return f.run.ID == r.ID })
		if r.Status.Open() {
			t.open = append(t.open, firing{run: r, mine: true})
		}
	}
	for _, r := range runs {
		t.s.logRun(&t.row, &r)
	}
	t.commit(runs...)
	return nil
}

// decide decides about the instants that have passed.
func (t *turn) decide() error {
	for range maxTries {
		now := t.s.now()
		p := planOf(&t.row, t.due, now, t.decided)
		if p.cursor.IsZero() {
			return nil
		}
		row := t.row
		p.apply(&row)
		err := t.put(row, p.runs, t.entryOf(p.runs))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrStale):
			err = t.read(true)
		case signalbox.CodeOf(err) == signalbox.CodeConflict:
			err = t.learnDecided()
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("others changed the schedule %d times meanwhile", maxTries)
}

// learnDecided finds the instants that have been decided upon: the cursor was
// put back, by an edit while the clock stood behind.
func (t *turn) learnDecided() error {
	runs, err := t.s.book.Runs(t.ctx, t.row.ID, signalbox.MaxScheduleRuns+signalbox.MaxMissed+signalbox.MaxHeld)
	if err != nil {
		return err
	}
	t.decided = map[string]bool{}
	for _, r := range runs {
		t.decided[r.ID] = true
	}
	return t.read(true)
}

// entryOf is the journal's entry of runs that were decided at once.
func (t *turn) entryOf(runs []signalbox.ScheduleRun) signalbox.Entry {
	for i := range runs {
		if runs[i].Status != signalbox.RunFiring {
			return fired(&t.row, &runs[i], t.s.now())
		}
	}
	return signalbox.Entry{}
}

// fired is the journal's entry of a firing.
func fired(row *signalbox.Schedule, r *signalbox.ScheduleRun, now time.Time) signalbox.Entry {
	return signalbox.Entry{
		At: now, Kind: signalbox.EventScheduleFired, Schedule: row.Name, Message: string(r.Status), QueueID: r.QueueID,
		Owner: row.Owner, Agent: row.Agent, By: r.By,
	}
}

// goOn goes on with what is open, the oldest first.
func (t *turn) goOn() error {
	defer t.commit()
	ids := make([]string, len(t.open))
	for i := range t.open {
		ids[i] = t.open[i].run.ID
	}
	first := "" // in line, where there is one
	for _, id := range ids {
		f := t.find(id)
		if f == nil {
			continue
		}
		if before := t.find(first); before != nil && t.inLine(f) {
			f.retryAt = before.retryAt
			continue
		}
		if err := t.step(f); err != nil {
			return err
		}
		f = t.find(id)
		if f != nil && f.run.Status == signalbox.RunFiring && t.row.Overlap != signalbox.OverlapAllow {
			t.block(f)
			break
		}
		if f != nil && first == "" && t.inLine(f) {
			first = id
		}
	}
	return nil
}

// inLine reports whether a firing is held in a line, in which nobody need be
// looked at but the first: its task is what the next one then waits for.
func (t *turn) inLine(f *firing) bool {
	return f.mine && f.run.Status == signalbox.RunHeld && t.row.Enabled && t.row.Overlap == signalbox.OverlapQueue
}

// block lets what comes after a firing that is not decided wait for it.
func (t *turn) block(first *firing) {
	now := t.s.now()
	until := first.wake(now)
	after := 1 + slices.IndexFunc(t.open, func(f firing) bool { return f.run.ID == first.run.ID })
	for i := after; i < len(t.open); i++ {
		f := &t.open[i]
		if !f.mine && f.abandoned(now) { // it is this scheduler's to go on with, when its turn comes
			f.mine, f.recovered = true, true
		}
		if f.mine && f.retryAt.Before(until) {
			f.retryAt = until
		}
	}
}

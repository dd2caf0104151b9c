package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// turn is the work on one schedule: decide about the instants that have passed and store the decision, then
// advance the open firings. Nothing is submitted before its firing is stored, so an instant fires once even
// if the process crashes in between.
type turn struct {
	s    *Scheduler
	e    *entry
	ctx  context.Context //nolint:containedctx // of this turn
	row  signalbox.Schedule
	due  instants
	open []firing
	// IDs of runs decided before the cursor was set back.
	decided map[string]bool
}

// maxRetries bounds how often a decision is repeated because of concurrent changes.
const maxRetries = 50

// errGone ends the turn of a schedule that was removed.
var errGone = errors.New("the schedule is gone")

func (s *Scheduler) turn(e *entry) {
	t := &turn{s: s, e: e, ctx: s.ctx}
	err := t.read(false)
	if err == nil {
		t.startManual()
		err = t.decide()
	}
	if err == nil {
		err = t.advance()
	}
	t.failed(err)
}

// failed schedules a retry after a failed read or write.
func (t *turn) failed(err error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if err == nil || errors.Is(err, errGone) {
		t.e.failures, t.e.retryAt = 0, time.Time{}
		return
	}
	wait := backoff(t.e.failures)
	t.e.failures++
	t.e.retryAt = t.s.now().Add(wait)
	if tr := t.e.trigger; tr != nil { // a trigger is not retried
		t.e.trigger = nil
		tr.answer(signalbox.ScheduleRun{}, err)
	}
	if t.s.ctx.Err() == nil {
		t.s.log.Error("a turn of a schedule failed", "job", t.e.row.Name, "error", err, "again_in", wait.String())
	}
}

// backoff returns the delay after the n-th consecutive failure, from 0.
func backoff(n int) time.Duration { return min(firstBackoff<<min(n, 10), maxBackoff) }

// read reads the schedule, and its runs if another scheduler may have changed them.
func (t *turn) read(stale bool) error {
	row, err := t.s.store.Schedule(t.ctx, t.e.row.ID)
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
	stale = stale || row.Rev != t.e.row.Rev || t.e.runsStale
	t.e.runsStale = false
	t.s.mu.Unlock()
	t.open = known
	if stale {
		// Every change of a run changes the revision of its row.
		runs, err := t.s.store.Runs(t.ctx, row.ID, signalbox.MaxScheduleRuns+signalbox.MaxMissed+signalbox.MaxHeld)
		if err != nil {
			t.s.mu.Lock()
			t.e.runsStale = true
			t.s.mu.Unlock()
			return err
		}
		t.open = merge(known, runs)
	}
	t.row = row
	t.commit()
	return nil
}

// commit publishes the state of the turn to the entry, and answers the triggers of written runs
// after that: their next call must see the result.
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
	t.answerDropped()
}

// answerDropped answers triggers whose firing is no longer open here: another scheduler decided
// it.
func (t *turn) answerDropped() {
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

// put stores the row with runs, and keeps the open ones as owned.
func (t *turn) put(row signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) error {
	for i := range runs {
		runs[i].ScheduleID = row.ID
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), callTimeout)
	defer cancel()
	stop := context.AfterFunc(t.ctx, func() { time.AfterFunc(finalWriteTimeout, cancel) })
	defer stop()
	stored, err := t.s.store.Put(ctx, row, runs, entry)
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
			t.open = append(t.open, firing{run: r, owned: true})
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
	for range maxRetries {
		now := t.s.now()
		p := newPlan(&t.row, t.due, now, t.decided)
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
			err = t.loadDecided()
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("others changed the schedule %d times meanwhile", maxRetries)
}

// loadDecided loads the instants already decided: the cursor was set back by an edit while the
// clock was behind.
func (t *turn) loadDecided() error {
	runs, err := t.s.store.Runs(t.ctx, t.row.ID, signalbox.MaxScheduleRuns+signalbox.MaxMissed+signalbox.MaxHeld)
	if err != nil {
		return err
	}
	t.decided = map[string]bool{}
	for _, r := range runs {
		t.decided[r.ID] = true
	}
	return t.read(true)
}

// entryOf returns the journal entry of runs that were decided at once.
func (t *turn) entryOf(runs []signalbox.ScheduleRun) signalbox.Entry {
	for i := range runs {
		if runs[i].Status != signalbox.RunFiring {
			return firedEntry(&t.row, &runs[i], t.s.now())
		}
	}
	return signalbox.Entry{}
}

// firedEntry returns the journal entry of a firing.
func firedEntry(row *signalbox.Schedule, r *signalbox.ScheduleRun, now time.Time) signalbox.Entry {
	return signalbox.Entry{
		At: now, Kind: signalbox.EventScheduleFired, Schedule: row.Name, Message: string(r.Status), QueueID: r.QueueID,
		Owner: row.Owner, Agent: row.Agent, By: r.By,
	}
}

// advance advances the open firings, oldest first.
func (t *turn) advance() error {
	defer t.commit()
	ids := make([]string, len(t.open))
	for i := range t.open {
		ids[i] = t.open[i].run.ID
	}
	first := "" // the first held firing, if any
	for _, id := range ids {
		f := t.find(id)
		if f == nil {
			continue
		}
		if before := t.find(first); before != nil && t.heldInQueue(f) {
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
		if f != nil && first == "" && t.heldInQueue(f) {
			first = id
		}
	}
	return nil
}

// heldInQueue reports whether a firing is held by the queue policy: only the first held one needs a check,
// the next waits for its task.
func (t *turn) heldInQueue(f *firing) bool {
	return f.owned && f.run.Status == signalbox.RunHeld && t.row.Enabled && t.row.Overlap == signalbox.OverlapQueue
}

// block delays the firings after one that is not decided.
func (t *turn) block(first *firing) {
	now := t.s.now()
	until := first.wake(now)
	after := 1 + slices.IndexFunc(t.open, func(f firing) bool { return f.run.ID == first.run.ID })
	for i := after; i < len(t.open); i++ {
		f := &t.open[i]
		if !f.owned && f.abandoned(now) { // taken over here, after first
			f.owned, f.recovered = true, true
		}
		if f.owned && f.retryAt.Before(until) {
			f.retryAt = until
		}
	}
}

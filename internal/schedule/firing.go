package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// manualSlot is how long a firing that somebody asked for is tried.
const manualSlot = 30 * time.Second

// step goes on with an open firing as far as it comes now. Errors are those of
// the book alone: they end the turn.
func (t *turn) step(f *firing) error {
	now := t.s.now()
	if f.wake(now).After(now) {
		return nil
	}
	if !f.mine {
		f.mine, f.recovered = true, true
	}
	if status, text := t.overdue(f, now); status != "" {
		return t.end(f, status, "", text)
	}
	if t.row.Overlap != signalbox.OverlapAllow {
		if free, err := t.overlap(f, now); err != nil || !free {
			return err
		}
	}
	return t.submit(f)
}

// overdue says what a firing comes to for which it is too late.
func (t *turn) overdue(f *firing, now time.Time) (signalbox.RunStatus, string) {
	r := &f.run
	late := now.Sub(r.Nominal)
	switch {
	case r.Trigger != signalbox.TriggerManual && !t.row.Enabled && r.Status == signalbox.RunHeld:
		return signalbox.SkippedBusy, "the schedule was disabled while this firing waited for the task before it"
	case r.Trigger != signalbox.TriggerManual && !t.row.Enabled && f.failure != "":
		return f.failure, r.Error
	case r.Status == signalbox.RunFiring && f.failure != "" && !now.Before(t.slotEnd(f)):
		return f.failure, r.Error
	case f.recovered && r.Status == signalbox.RunFiring && late > t.lateness(r):
		return signalbox.SkippedMissed, fmt.Sprintf("the scheduler ended while it submitted this firing, and came back too late to go on: if a task was made, its source_job is %s", t.row.Name)
	}
	return "", ""
}

// lateness is how late a firing may still be submitted that was begun before a
// restart: as late as one that was missed, and only while the queue would know
// its key.
func (t *turn) lateness(r *signalbox.ScheduleRun) time.Duration {
	late := max(t.row.MissedWindow, signalbox.OnTime)
	if t.row.Missed == signalbox.MissedSkip && r.Trigger != signalbox.TriggerManual {
		late = signalbox.OnTime
	}
	if life := t.s.opts.KeyLife; life > 0 {
		late = min(late, life)
	}
	return late
}

// slotEnd is until when a firing is tried: the next instant. Who took it over
// leaves the last word to the one before, which may still be there.
func (t *turn) slotEnd(f *firing) time.Time {
	end := f.run.FiredAt.Add(manualSlot)
	if f.run.Trigger != signalbox.TriggerManual {
		end = t.due.expr.Next(latest(f.run.Nominal, f.run.FiredAt), t.due.zone)
	}
	if f.recovered {
		end = end.Add(takeOver)
	}
	return end
}

// overlap asks for the task before. free says that the firing may be submitted;
// otherwise it is held, or decided.
func (t *turn) overlap(f *firing, now time.Time) (free bool, err error) {
	before := t.row.LastQueueID
	if before == "" {
		return true, nil
	}
	ended, err := t.s.queue.Ended(t.ctx, before)
	if err != nil {
		t.later(f, err)
		return false, nil
	}
	if ended {
		return true, nil
	}
	switch t.row.Overlap {
	case signalbox.OverlapSkip:
		return false, t.end(f, signalbox.SkippedBusy, "", fmt.Sprintf("the task before, %s, has not ended", before))
	case signalbox.OverlapCancel:
		if f.run.ID != t.open[len(t.open)-1].run.ID {
			return false, t.end(f, signalbox.SkippedBusy, "", fmt.Sprintf("a newer firing takes its place: the task before, %s, has not ended", before))
		}
		if f.asked != before {
			if err := t.s.queue.Cancel(t.ctx, before, "schedule "+t.row.Name); err != nil {
				t.later(f, err)
				return false, nil
			}
			f.asked = before
		}
	default:
		if t.held() >= signalbox.MaxHeld && f.run.Status != signalbox.RunHeld && f.run.Trigger != signalbox.TriggerMissed {
			return false, t.end(f, signalbox.SkippedBusy, "", fmt.Sprintf("%d firings wait for the end of task %s, the most that may", signalbox.MaxHeld, before))
		}
	}
	return false, t.hold(f, before, now)
}

func (t *turn) held() int {
	n := 0
	for i := range t.open {
		if r := &t.open[i].run; r.Status == signalbox.RunHeld && r.Trigger != signalbox.TriggerMissed {
			n++
		}
	}
	return n
}

// hold lets a firing wait for the end of a task.
func (t *turn) hold(f *firing, before string, now time.Time) error {
	if f.run.Status == signalbox.RunHeld && f.run.Previous == before {
		f.retryAt = now.Add(heldEvery)
		return nil
	}
	// The task may have ended since it was asked for, and its sign come while
	// nothing was held: once it is, it is asked for again.
	f.retryAt = time.Time{}
	return t.change(f, func(_ *signalbox.Schedule, r *signalbox.ScheduleRun) {
		r.Status, r.Previous = signalbox.RunHeld, before
	})
}

// later tries a firing again after a while: nothing is known that would be
// worth writing down.
func (t *turn) later(f *firing, err error) {
	f.retryAt = t.s.now().Add(firstBackoff)
	if t.ctx.Err() == nil {
		t.s.log.Warn("the task before a firing cannot be asked for", "job", t.row.Name, "error", err, "again_in", firstBackoff.String())
	}
}

// submit submits a firing.
func (t *turn) submit(f *firing) error {
	got, err := t.ask(f)
	if err != nil && t.ctx.Err() != nil {
		return t.ctx.Err() // whoever runs next goes on with it
	}
	var full *Full
	switch code := signalbox.CodeOf(err); {
	case err == nil:
		return t.end(f, signalbox.RunQueued, got.QueueID, "")
	case code == signalbox.CodeIdempotency:
		return t.end(f, signalbox.RunQueued, "", "it was submitted before the schedule was edited: its task has the text of that time")
	case code == signalbox.CodeQueueFull:
		waiting := 0
		if errors.As(err, &full) {
			waiting = full.Waiting
		}
		again := t.row.OnFull == signalbox.FullRetry && f.run.Trigger != signalbox.TriggerManual
		return t.unsubmitted(f, signalbox.SkippedQueueFull, fullText(t.row.Agent, waiting), again)
	case code == signalbox.CodeNotFound && fieldOf(err) == "":
		return t.end(f, signalbox.SkippedNoDirector, "", sentence(err))
	default:
		return t.unsubmitted(f, signalbox.SkippedError, sentence(err), passing(code))
	}
}

// ask checks and submits. A submission that takes too long counts as one that
// nobody answered.
func (t *turn) ask(f *firing) (Submitted, error) {
	ctx, cancel := context.WithTimeout(t.ctx, slowest)
	defer cancel()
	got, err := Submitted{}, error(nil)
	if t.s.opts.Check != nil {
		err = t.s.opts.Check(ctx, t.row)
	}
	if err == nil {
		got, err = t.s.queue.Submit(ctx, t.row, Key(t.row.ID, f.run.ID))
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &signalbox.Error{Code: signalbox.CodeUnavailable, Message: fmt.Sprintf("the submission had no answer within %s", slowest), Err: err}
	}
	return got, err
}

// passing reports whether an error may be gone by the next try.
func passing(code signalbox.Code) bool {
	return slices.Contains([]signalbox.Code{signalbox.CodeUnavailable, signalbox.CodeStoreFailed, signalbox.CodeStoreFull, signalbox.CodeRateLimited}, code)
}

// fullText is what the seed execution-queue writes into the record.
func fullText(agent string, waiting int) string {
	queue := "Queue full"
	if agent != "" {
		queue = "Agent queue full"
	}
	if waiting > 0 {
		queue += fmt.Sprintf(" (%d waiting)", waiting)
	}
	return queue + ", skipping scheduled execution"
}

func fieldOf(err error) string {
	if e, ok := errors.AsType[*signalbox.Error](err); ok {
		return e.Field
	}
	return ""
}

// sentence is what people are shown of an error: its cause is for logs.
func sentence(err error) string {
	if e, ok := errors.AsType[*signalbox.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return "the submission failed: the log of the scheduler has the cause"
}

// unsubmitted writes down a try that failed, and tries again where that may help
// and there is time; else the firing comes to status.
func (t *turn) unsubmitted(f *firing, status signalbox.RunStatus, text string, again bool) error {
	now := t.s.now()
	end := t.slotEnd(f)
	if !again || !now.Before(end) {
		return t.end(f, status, "", text)
	}
	f.failure = status
	f.retryAt = now.Add(backoff(f.run.Attempts))
	if f.retryAt.After(end) {
		f.retryAt = end
	}
	return t.change(f, func(_ *signalbox.Schedule, r *signalbox.ScheduleRun) {
		r.Status, r.Previous, r.Error = signalbox.RunFiring, "", text
		r.Attempts++
	})
}

// end decides a firing.
func (t *turn) end(f *firing, status signalbox.RunStatus, queueID, text string) error {
	now := t.s.now()
	return t.change(f, func(row *signalbox.Schedule, r *signalbox.ScheduleRun) {
		r.Status, r.QueueID, r.Error, r.Previous, r.EndedAt = status, queueID, text, "", now
		if queueID != "" {
			row.LastQueueID = queueID
		}
	})
}

// change writes a firing, and into its row what the newest firing has come to.
// Where another scheduler decided it in the meantime, it is let go of.
func (t *turn) change(f *firing, alter func(*signalbox.Schedule, *signalbox.ScheduleRun)) error {
	id := f.run.ID
	for range maxTries {
		row, r := t.row, f.run
		alter(&row, &r)
		if !r.FiredAt.Before(row.LastRun) {
			row.LastStatus, row.LastError = r.Status, r.Error
		}
		runs := []signalbox.ScheduleRun{r}
		err := t.put(row, runs, t.entryOf(runs))
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrStale) && signalbox.CodeOf(err) != signalbox.CodeConflict {
			return err
		}
		if err := t.read(true); err != nil {
			return err
		}
		if f = t.find(id); f == nil {
			return nil
		}
	}
	return fmt.Errorf("others changed the schedule %d times meanwhile", maxTries)
}

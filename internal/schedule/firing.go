package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// manualWindow is how long a manual firing is retried.
const manualWindow = 30 * time.Second

// step advances an open firing as far as possible now. Errors are those of the store; they end
// the turn.
func (t *turn) step(f *firing) error {
	now := t.s.now()
	if f.wake(now).After(now) {
		return nil
	}
	if !f.owned {
		f.owned, f.recovered = true, true
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

// overdue returns the final status of a firing that is too late; "" if it is not.
func (t *turn) overdue(f *firing, now time.Time) (signalbox.RunStatus, string) {
	r := &f.run
	late := now.Sub(r.Nominal)
	switch {
	case r.Trigger != signalbox.TriggerManual && !t.row.Enabled && r.Status == signalbox.RunHeld:
		return signalbox.SkippedBusy, "the schedule was disabled while this firing waited for the task before it"
	case r.Trigger != signalbox.TriggerManual && !t.row.Enabled && f.failure != "":
		return f.failure, r.Error
	case r.Status == signalbox.RunFiring && f.failure != "" && !now.Before(t.deadline(f)):
		return f.failure, r.Error
	case f.recovered && r.Status == signalbox.RunFiring && late > t.maxLateness(r):
		return signalbox.SkippedMissed, fmt.Sprintf("the scheduler ended while it submitted this firing, and came back too late to go on: if a task was made, its source_job is %s", t.row.Name)
	}
	return "", ""
}

// maxLateness returns how late a recovered firing may be submitted: as late as a missed one,
// and only while the queue still knows its key.
func (t *turn) maxLateness(r *signalbox.ScheduleRun) time.Duration {
	late := max(t.row.MissedWindow, signalbox.OnTime)
	if t.row.Missed == signalbox.MissedSkip && r.Trigger != signalbox.TriggerManual {
		late = signalbox.OnTime
	}
	if life := t.s.opts.KeyLife; life > 0 {
		late = min(late, life)
	}
	return late
}

// deadline returns until when a firing is retried: the next instant. A recovered firing gets
// longer, since its first scheduler may still decide it.
func (t *turn) deadline(f *firing) time.Time {
	end := f.run.FiredAt.Add(manualWindow)
	if f.run.Trigger != signalbox.TriggerManual {
		end = t.due.expr.Next(latest(f.run.Nominal, f.run.FiredAt), t.due.zone)
	}
	if f.recovered {
		end = end.Add(takeoverDelay)
	}
	return end
}

// overlap checks the previous task. free: the firing may be submitted; otherwise it was held or
// decided.
func (t *turn) overlap(f *firing, now time.Time) (free bool, err error) {
	before := t.row.LastQueueID
	if before == "" {
		return true, nil
	}
	ended, err := t.s.queue.Ended(t.ctx, before)
	if err != nil {
		t.retryLater(f, err)
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
		if f.cancelSent != before {
			if err := t.s.queue.Cancel(t.ctx, before, "schedule "+t.row.Name); err != nil {
				t.retryLater(f, err)
				return false, nil
			}
			f.cancelSent = before
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

// hold holds a firing until a task has ended.
func (t *turn) hold(f *firing, before string, now time.Time) error {
	if f.run.Status == signalbox.RunHeld && f.run.Previous == before {
		f.retryAt = now.Add(heldInterval)
		return nil
	}
	// The task may have ended between the check and the hold, with its signal ignored: it is
	// checked once more.
	f.retryAt = time.Time{}
	return t.change(f, func(_ *signalbox.Schedule, r *signalbox.ScheduleRun) {
		r.Status, r.Previous = signalbox.RunHeld, before
	})
}

// retryLater retries a firing after a while. There is nothing to store.
func (t *turn) retryLater(f *firing, err error) {
	f.retryAt = t.s.now().Add(firstBackoff)
	if t.ctx.Err() == nil {
		t.s.log.Warn("the previous task of a firing cannot be queried", "job", t.row.Name, "error", err, "again_in", firstBackoff.String())
	}
}

func (t *turn) submit(f *firing) error {
	got, err := t.trySubmit(f)
	if err != nil && t.ctx.Err() != nil {
		return t.ctx.Err() // the next scheduler resumes it
	}
	var full *FullError
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
		return t.submitFailed(f, signalbox.SkippedQueueFull, fullText(t.row.Agent, waiting), again)
	case code == signalbox.CodeNotFound && fieldOf(err) == "":
		return t.end(f, signalbox.SkippedNoDirector, "", publicMessage(err))
	default:
		return t.submitFailed(f, signalbox.SkippedError, publicMessage(err), transient(code))
	}
}

// trySubmit checks and submits. A timeout counts as no answer.
func (t *turn) trySubmit(f *firing) (Submitted, error) {
	ctx, cancel := context.WithTimeout(t.ctx, callTimeout)
	defer cancel()
	got, err := Submitted{}, error(nil)
	if t.s.opts.Check != nil {
		err = t.s.opts.Check(ctx, t.row)
	}
	if err == nil {
		got, err = t.s.queue.Submit(ctx, t.row, Key(t.row.ID, f.run.ID))
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &signalbox.Error{Code: signalbox.CodeUnavailable, Message: fmt.Sprintf("the submission had no answer within %s", callTimeout), Err: err}
	}
	return got, err
}

// transient reports whether a retry may succeed.
func transient(code signalbox.Code) bool {
	return slices.Contains([]signalbox.Code{signalbox.CodeUnavailable, signalbox.CodeStoreFailed, signalbox.CodeStoreFull, signalbox.CodeRateLimited}, code)
}

// fullText is the error text of the seed execution-queue.
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

// publicMessage is the part of an error that users may see.
func publicMessage(err error) string {
	if e, ok := errors.AsType[*signalbox.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return "the submission failed: the log of the scheduler has the cause"
}

// submitFailed records a failed attempt and schedules a retry, if that may help and there is
// time; else the firing ends with status.
func (t *turn) submitFailed(f *firing, status signalbox.RunStatus, text string, again bool) error {
	now := t.s.now()
	end := t.deadline(f)
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

// change stores a change of a firing, and the outcome of the newest firing in its row. If
// another scheduler decided the firing in the meantime, it is dropped.
func (t *turn) change(f *firing, alter func(*signalbox.Schedule, *signalbox.ScheduleRun)) error {
	id := f.run.ID
	for range maxRetries {
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
	return fmt.Errorf("others changed the schedule %d times meanwhile", maxRetries)
}

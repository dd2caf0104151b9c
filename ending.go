package signalbox

import (
	"cmp"
	"fmt"
	"time"
)

// The transitions that end a task or may end it.

func reject(c *Change, ev Event) error {
	if c.Task.CancelRequested {
		return endCancelled(c, ev)
	}
	c.Task.Attempts++
	c.Task.LastError = ev.Message
	return end(c, ev, ReasonRejected, ev.Message)
}

// agentSays holds the reasons that an agent reports. The others have their own
// events, which do more than end the task: a loss may withhold the slot or
// requeue the task.
var agentSays = map[Reason]bool{
	ReasonCompleted: true, ReasonAgentError: true, ReasonExitNonzero: true,
	ReasonRunTimeout: true, ReasonCancelled: true, ReasonInterrupted: true, ReasonBudget: true, ReasonChecks: true,
}

// AgentSays reports whether a task that ended with this reason was ended by what its agent
// reported.
func (r Reason) AgentSays() bool { return agentSays[r] }

func finish(c *Change, ev Event) error {
	if !ev.Reason.AgentSays() {
		return Errorf(CodeConflict, "task %s: an agent cannot end a task with reason %q", c.Task.ID, ev.Reason)
	}
	t := &c.Task
	if t.StartedAt.IsZero() {
		t.StartedAt = t.DispatchedAt
	}
	if ev.TaskID != "" {
		t.TaskID = ev.TaskID
	}
	bind(c, ev.SessionID)
	leave(c, ev.Result)
	if ev.Reason == ReasonCancelled || (t.StopReason != "" && ev.Reason != ReasonCompleted) {
		return endCancelled(c, ev) // an agent that was told to stop may report any of these reasons
	}
	return end(c, ev, ev.Reason, ev.Message)
}

// lostUnstarted requeues the task, because the agent never accepted it. If the agent may
// have run it, the task is handled as lost.
func lostUnstarted(c *Change, ev Event) error {
	if ev.Reason != ReasonLost || ev.MayHaveRun { // interrupted: the agent now says that it had started
		return lost(c, ev)
	}
	c.Task.NoAnswers++
	c.Task.LastError = cmp.Or(ev.Message, "the agent went silent before it accepted the task")
	err := retryOrFail(c, ev, ReasonDispatchFailed)
	withhold(c, ev)
	return err
}

func lost(c *Change, ev Event) error {
	if err := checkLoss(c, ev); err != nil {
		return err
	}
	t := &c.Task
	leave(c, ev.Result)
	var err error
	if t.OnLost == LostRequeue && !t.CancelRequested {
		t.Attempts++
		t.LastError = cmp.Or(ev.Message, plain[ev.Reason])
		if err = retryOrFail(c, ev, ev.Reason); t.State == Pending {
			c.Order = OrderBack // the result is kept: the log of the next attempt is appended to it
		}
	} else if t.CancelRequested {
		err = endCancelled(c, ev)
	} else {
		err = end(c, ev, ev.Reason, ev.Message)
	}
	withhold(c, ev)
	return err
}

// leave records what the execution left behind; nil keeps what an earlier one left.
func leave(c *Change, r *Result) {
	if c.Result = r; r != nil {
		c.Task.ResultSize = r.Size()
		c.Task.Spent = c.Task.Spent.Plus(r.Spent())
	}
}

func checkLoss(c *Change, ev Event) error {
	if ev.Reason != ReasonLost && ev.Reason != ReasonInterrupted {
		return Errorf(CodeConflict, "task %s: a loss has the reason lost or interrupted, not %q", c.Task.ID, ev.Reason)
	}
	return nil
}

func lostCancelling(c *Change, ev Event) error {
	if err := checkLoss(c, ev); err != nil {
		return err
	}
	leave(c, ev.Result)
	err := endCancelled(c, ev)
	withhold(c, ev)
	return err
}

func withhold(c *Change, ev Event) {
	if ev.Withhold {
		c.Slot = SlotWithhold
	}
}

func release(c *Change, ev Event) error {
	if c.Task.CancelRequested {
		return endCancelled(c, ev)
	}
	return end(c, ev, ReasonReleased, cmp.Or(ev.Message, "the slot was released"+by(ev.By)))
}

func releaseCancelling(c *Change, ev Event) error { return endCancelled(c, ev) }

func cancelPending(c *Change, ev Event) error {
	requestCancel(c, ev)
	return endCancelled(c, ev)
}

// cancelDispatching is sticky: the agent may have the task already, so the
// reply decides whether it is cancelled here or must be stopped there.
func cancelDispatching(c *Change, ev Event) error {
	requestCancel(c, ev)
	return nil
}

func cancelWorking(c *Change, ev Event) error {
	requestCancel(c, ev)
	c.Task.State = Cancelling
	return nil
}

// begun refuses a cancel that is only for waiting tasks: this task was claimed in the
// meantime.
func begun(move func(*Change, Event) error) func(*Change, Event) error {
	return func(c *Change, ev Event) error {
		if ev.Waiting {
			return Errorf(CodeConflict, "task %s is %s: it no longer waits", c.Task.ID, c.Task.State)
		}
		return move(c, ev)
	}
}

func requestCancel(c *Change, ev Event) {
	c.Task.CancelRequested = true
	c.Task.CancelledBy = cmp.Or(c.Task.CancelledBy, ev.By)
}

// stop asks the agent to end a task because a limit fired. The agent's answer
// decides the state, as with a cancel; the reason is the limit.
func stop(c *Change, ev Event) error {
	if ev.Reason != ReasonRunTimeout && ev.Reason != ReasonStalled && ev.Reason != ReasonBudget {
		return Errorf(CodeConflict, "task %s: a limit that fires has the reason run_timeout, stalled or budget, not %q", c.Task.ID, ev.Reason)
	}
	t := &c.Task
	t.State, t.StopReason, t.StopMessage = Cancelling, ev.Reason, cmp.Or(ev.Message, plain[ev.Reason])
	t.CancelRequested, t.CancelledBy = true, "a limit"
	return nil
}

func endCancelled(c *Change, ev Event) error {
	if c.Task.StopReason != "" {
		return end(c, ev, c.Task.StopReason, c.Task.StopMessage)
	}
	message := "cancelled" + by(c.Task.CancelledBy)
	if ev.Message != "" && ev.Message != message {
		message += ": " + ev.Message
	}
	return end(c, ev, ReasonCancelled, message)
}

func waitTimeout(c *Change, ev Event) error {
	waited := latest(ev.Now, c.Task.CreatedAt).Sub(c.Task.CreatedAt).Round(time.Second)
	return end(c, ev, ReasonWaitTimeout, cmp.Or(ev.Message, fmt.Sprintf("waited %s without being started", waited)))
}

func moveQueue(c *Change, ev Event) error {
	if !ValidQueue(ev.Queue) {
		return Invalid("queue", "%q is not a queue", ev.Queue)
	}
	c.Task.Queue = ev.Queue
	return nil
}

func undeliverable(c *Change, ev Event) error {
	reason := ReasonDispatchFailed
	if ev.Reason == ReasonInterrupted { // the director was restarted, and its tool does not keep calls over a restart
		reason = ReasonInterrupted
	}
	return end(c, ev, reason, ev.Message)
}

// end makes the task terminal. The message is never empty.
func end(c *Change, ev Event, reason Reason, message string) error {
	t := &c.Task
	held := t.State.InFlight()
	t.State, t.Reason, t.Message = reason.End(), reason, cmp.Or(message, plain[reason])
	t.EndedAt = latest(ev.Now, t.CreatedAt, t.DispatchedAt, t.StartedAt)
	t.HasEnv = false
	t.SettleLanding(t.EndedAt)
	t.SetFailure(c.Result)
	if held {
		c.Slot = SlotFree
	}
	return nil
}

// latest returns now or a later one of the earlier times. It keeps the times of a task in
// order if the clock goes back, so that no duration is negative.
func latest(now time.Time, earlier ...time.Time) time.Time {
	for _, e := range earlier {
		if e.After(now) {
			now = e
		}
	}
	return now
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

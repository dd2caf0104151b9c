package execution

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Refusal is an agent's answer that it does not do what was requested.
type Refusal struct {
	Status int
	From   string // address that answered; "" for a pull agent
	api.AgentRefusal
}

// Error is the refusal as shown to users.
func (r *Refusal) Error() string {
	text := r.Message
	if text == "" {
		text = r.AgentRefusal.Error
	}
	if r.Status/100 == 3 {
		text = "a redirect, which is not followed: give the agent's own address"
	}
	if text == "" {
		text = strings.ToLower(http.StatusText(r.Status))
	}
	return fmt.Sprintf("agent answered %d: %s", r.Status, SanitizeText(text))
}

// codeStorage is an agent's error code for a task that it cannot store.
const codeStorage = "storage_error"

// blames reports whether the refusal is the agent's fault rather than the task's, and
// whether that is certain.
func (r *Refusal) blames() (agent, sure bool) {
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusInsufficientStorage:
		return true, true
	case r.Status >= 500:
		return true, r.AgentRefusal.Error == codeStorage
	}
	return r.Status/100 == 3, false
}

// stale reports whether the agent has seen a higher fence than the task's, as after a
// restore of the store from a backup.
func (r *Refusal) stale() bool {
	return r.Status == http.StatusConflict && r.AgentRefusal.Error == "stale_fence" && r.HighestFence > 0
}

// busy is the seed's message, with what the agent is busy with.
func (r *Refusal) busy() string {
	switch {
	case r.CurrentTask != nil && r.CurrentTask.ID != "":
		return "agent busy with " + SanitizeText(r.CurrentTask.ID)
	case r.Message != "":
		return "agent busy: " + SanitizeText(r.Message)
	}
	return "agent busy"
}

// Offerer receives what a refusal says about the agent that was offered a task.
type Offerer interface {
	RaiseFence(highest int64)                                       // the next claim for the agent uses a higher fence
	Hold(why string)                                                // the agent said busy
	TurnedAway(why string)                                          // it turned an offer away, which should be rare
	Failed(why string, sure bool) (spare bool, delay time.Duration) // see Fault
	Healthy()                                                       // it worked as expected
}

// turnsAwayPrefix starts the reason of an agent that says busy too often.
const turnsAwayPrefix = "it says that it is idle and turns tasks away: "

// Change is a change of a task to be stored.
type Change func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error)

// Refused decides what a refusal means for the agent and for the task.
func (r *Refusal) Refused(by Offerer, hide func(string) string) Change {
	message := hide(r.Error())
	agent, sure := r.blames()
	switch {
	case r.stale():
		by.RaiseFence(r.HighestFence)
		by.TurnedAway(message)
		return func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error) {
			return e.Unsent(ctx, t, message)
		}
	case r.Status == http.StatusConflict:
		by.Hold(message)
		busy := hide(r.busy())
		return func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error) {
			return e.Busy(ctx, t, busy)
		}
	case agent:
		return ReturnTask(by, message, sure)
	}
	by.Healthy() // it judged the task
	return func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error) {
		return e.Reject(ctx, t, message)
	}
}

// ReturnTask returns a task because of its agent. It costs an attempt, unless the agent is
// closed for it. sure says that it is certainly the agent's fault.
func ReturnTask(by Offerer, message string, sure bool) Change {
	spare, delay := by.Failed(message, sure)
	return func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error) {
		if spare {
			return e.Defer(ctx, t, message, delay)
		}
		return e.Refuse(ctx, t, message)
	}
}

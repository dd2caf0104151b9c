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

// Refusal is an agent's answer that it does not do what it was asked to.
type Refusal struct {
	Status int
	From   string // address that said it; "" of an agent that pulls
	api.AgentRefusal
}

// Error is the refusal as people read it.
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

// codeStorage is how an agent says that it cannot store a task.
const codeStorage = "storage_error"

// blames reports whether a refusal of a task speaks of the agent and not of the
// task, and whether that leaves no doubt.
func (r *Refusal) blames() (agent, sure bool) {
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusInsufficientStorage:
		return true, true
	case r.Status >= 500:
		return true, r.AgentRefusal.Error == codeStorage
	}
	return r.Status/100 == 3, false
}

// stale reports whether the agent has seen a higher fence than that of the task, as
// after the store was restored from a backup.
func (r *Refusal) stale() bool {
	return r.Status == http.StatusConflict && r.AgentRefusal.Error == "stale_fence" && r.HighestFence > 0
}

// busy is the seed's text, with what the agent is busy with.
func (r *Refusal) busy() string {
	switch {
	case r.CurrentTask != nil && r.CurrentTask.ID != "":
		return "agent busy with " + SanitizeText(r.CurrentTask.ID)
	case r.Message != "":
		return "agent busy: " + SanitizeText(r.Message)
	}
	return "agent busy"
}

// Offerer is a transport that offered a task which was refused.
type Offerer interface {
	RaiseFence(highest int64)                                       // the next claim for the agent is above it
	Hold(why string)                                                // the agent said busy
	TurnedAway(why string)                                          // it turned an offer away, which it should do only now and then
	Failed(why string, sure bool) (spare bool, delay time.Duration) // as of Fault
	Healthy()                                                       // it did what an agent does
}

// TurnsAway begins what is said of an agent that says busy too often.
const turnsAwayPrefix = "it says that it is idle and turns tasks away: "

// Change is what is stored of a task.
type Change func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error)

// Refused decides what a refusal of a task comes to, for its agent and for the task.
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

// SentBack sends a task back because of its agent. It costs an attempt, unless the
// agent is closed for it. sure says that it is the agent's fault.
func ReturnTask(by Offerer, message string, sure bool) Change {
	spare, delay := by.Failed(message, sure)
	return func(ctx context.Context, e *engine.Engine, t signalbox.Task) (signalbox.Task, error) {
		if spare {
			return e.Defer(ctx, t, message, delay)
		}
		return e.Refuse(ctx, t, message)
	}
}

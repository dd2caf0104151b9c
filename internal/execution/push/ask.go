package push

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// errNeverSeen: the agent says that it does not know the task.
var errNeverSeen = errors.New("agent has never seen it")

// The delay between unanswered requests grows from firstDelay to maxDelay.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 2 * time.Second
)

// errElsewhere: an agent at another address than the one that got the offer does not know
// the task.
var errElsewhere = errors.New("the agent that has the name now does not know the task, and the address that got it is still in use")

// ask finds out what became of a task that was sent without a conclusive answer, or claimed by a director
// that is gone. cause is the error of the offer; nil if it is unknown whether it was sent.
//
// A plain agent, which knows no queue_id, may leave it open whether what it runs is the
// task (plain.go): it is asked again while that runs, for up to the slot lease.
//
// "Never seen" must be confirmed: an offer that was sent may still be in a socket's buffer
// when the first request is answered. An offer that arrives even later is refused by an
// agent that understands fences; see believed.
func (r *run) ask(ctx context.Context, cause error) {
	unseen, unsure := 0, 0
	var doubt ambiguousError
	doubted := false
	for delay := firstDelay; ctx.Err() == nil; delay = min(2*delay, maxDelay) {
		s, err := r.find(ctx)
		switch {
		case err == nil:
			r.markHeard()
			r.found(ctx, s)
			return
		case errors.Is(err, errNeverSeen):
			r.markHeard()
			unsure, doubted = 0, false
			if unseen++; unseen > 1 && r.believed(ctx, unseen) {
				r.neverSeen(ctx, cause)
				return
			}
			if !r.sleep(ctx, r.d.opts.Confirm) {
				return
			}
			continue
		case errors.As(err, &doubt):
			// The agent was heard from, but said nothing about this task.
			r.d.Mu.Lock()
			r.d.agentHeard(r.lane, true)()
			doubted, unseen = true, 0
			if unsure++; doubt.running {
				unsure = 0
			}
			if unsure > 1 || r.silence() >= r.d.Engine.Options().ExecutionTTL {
				r.unknownOutcome(ctx, doubt)
				return
			}
			delay = max(delay, r.d.opts.Confirm)
		case r.silence() >= r.d.Engine.Options().ExecutionTTL && doubted:
			r.unknownOutcome(ctx, doubt)
			return
		case r.silence() >= r.d.Engine.Options().ExecutionTTL:
			r.lose(ctx, signalbox.ReasonLost, r.silenceMessage(err))
			return
		}
		r.lane.probing.Send()
		if !r.sleep(ctx, delay) {
			return
		}
	}
}

// maxUnheard bounds failed requests for the agent's promise.
const maxUnheard = 10

// believed reports whether the task can be sent back after the agent has said times times
// that it never saw it. The sender of the offer may have been paused, and may still send
// it: an agent that understands fences promises to refuse that. One that cannot promise is
// believed.
func (r *run) believed(ctx context.Context, times int) bool {
	if !r.endpoint().fencing {
		return true
	}
	v := api.AgentVoid{Fence: r.Fence, Slot: r.Slot, Director: r.d.ID, Isolated: r.Isolated}
	if r.Isolated {
		v.Slot -= signalbox.FirstIsolatedSlot
	}
	err := r.endpoint().conn.void(ctx, r.ID, v)
	// Otherwise the offer came in between, or nobody knows.
	return err == nil || unknownTask(err) || times > maxUnheard
}

func (r *run) silenceMessage(err error) string {
	ttl := r.d.Engine.Options().ExecutionTTL
	return fmt.Sprintf("agent %s has been silent for %s: the slot lease (execution_ttl) of %s ran out; what came last: %v",
		r.lane.Name, max(r.silence(), ttl).Round(time.Second), ttl, err)
}

// found continues with a task that the agent knows.
func (r *run) found(ctx context.Context, s api.AgentTaskStatus) {
	if execution.Ended(s.State) {
		r.d.MarkHealthy(r.lane)
		r.ended(ctx, s)
		return
	}
	r.accept(ctx, s.TaskID, s.SessionID)
}

// neverSeen sends the task back. It costs an attempt if it was sent from here; if the
// director that claimed it is gone, it may never have been sent.
func (r *run) neverSeen(ctx context.Context, cause error) {
	if cause == nil {
		r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) {
			return r.d.Engine.Unsent(ctx, t, "the director was restarted before the task reached its agent")
		})
		return
	}
	r.refuse(ctx, fmt.Sprintf("%v, and the agent has never seen the task", cause))
}

// find asks the agent about the task by queue_id, or a plain agent by its status and
// history.
func (r *run) find(ctx context.Context) (api.AgentTaskStatus, error) {
	t := r.row()
	s, err := r.endpoint().conn.task(ctx, t.ID, 0)
	switch {
	case err == nil && (s.Fence == t.Fence || s.Fence == 0) && s.TaskID != "":
		return s, nil
	case err == nil:
		return s, errNeverSeen
	case !unknownTask(err):
		return s, err
	case r.mayBeElsewhere(ctx, err):
		return s, errElsewhere
	case r.endpoint().fencing:
		return s, errNeverSeen
	}
	return r.findPlain(ctx, t)
}

// unknownTask reports whether an agent said that it does not know the id. An agent that
// validates ids may answer a queue_id with something other than 404.
func unknownTask(err error) bool {
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusGone, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

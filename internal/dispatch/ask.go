package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// askTimeout bounds one question to an agent.
const askTimeout = 5 * time.Second

// errNeverSeen is the agent's word that it does not know the task.
var errNeverSeen = errors.New("agent has never seen it")

// ask finds out what became of a task that was sent without an answer, or
// claimed by a director that is gone. cause says what happened to the answer;
// nil means that nobody knows whether it was sent.
func (r *run) ask(ctx context.Context, cause error) {
	for delay := 100 * time.Millisecond; ctx.Err() == nil; delay = min(2*delay, 2*time.Second) {
		s, err := r.find(ctx)
		switch {
		case err == nil:
			r.heard()
			r.found(ctx, s)
			return
		case errors.Is(err, errNeverSeen):
			r.heard()
			r.neverSeen(ctx, cause)
			return
		case r.silence() >= r.d.engine.ExecutionTTL():
			r.lose(ctx, signalbox.ReasonLost, fmt.Sprintf("agent %s has been silent for %s: %v", r.lane.name, r.silence().Round(time.Second), err))
			return
		}
		r.d.probe(r.lane)
		if !sleep(ctx, delay) {
			return
		}
	}
}

// found goes on with a task that the agent knows.
func (r *run) found(ctx context.Context, s api.AgentTaskStatus) {
	if s.State != "working" {
		r.ended(ctx, s)
		return
	}
	r.accept(ctx, s.TaskID, s.SessionID)
}

// neverSeen sends the task back. It costs an attempt where it was sent from
// here; where the director that claimed it is gone, it may never have been.
func (r *run) neverSeen(ctx context.Context, cause error) {
	if r.row().State != signalbox.Dispatching {
		r.lose(ctx, signalbox.ReasonLost, "agent "+r.lane.name+" no longer knows the task: it was restarted or its history is gone")
		return
	}
	if cause == nil {
		r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) {
			return r.d.engine.Unsent(ctx, t, "the director was restarted before the task reached its agent")
		})
		return
	}
	r.refuse(ctx, fmt.Sprintf("%v, and the agent has never seen the task", cause))
}

// find asks the agent about the task: by queue_id, or, of an agent that does
// not know those, by what it runs and ran.
func (r *run) find(ctx context.Context) (api.AgentTaskStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t := r.row()
	if t.TaskID != "" {
		s, err := r.conn().task(ctx, t.TaskID, 0)
		if statusOf(err) == http.StatusNotFound {
			err = errNeverSeen
		}
		return s, err
	}
	s, err := r.conn().task(ctx, t.ID, 0)
	switch {
	case err == nil && (s.Fence == t.Fence || s.Fence == 0):
		return s, nil
	case err == nil: // an earlier attempt of the same task
		return s, errNeverSeen
	case statusOf(err) != http.StatusNotFound:
		return s, err
	case r.fencing():
		return s, errNeverSeen
	}
	return r.findPlain(ctx, t)
}

// findPlain looks for the task at an agent without queue_id: it runs one
// thing at a time and nobody else gave it work, so what it began after the
// claim, with this prompt, is the task.
func (r *run) findPlain(ctx context.Context, t signalbox.Task) (api.AgentTaskStatus, error) {
	s, err := r.conn().status(ctx)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	if s.Fencing {
		r.d.learn(r.lane, s)
		return api.AgentTaskStatus{}, errNeverSeen
	}
	if c := s.CurrentTask; c != nil && began(c.StartedAt, t) {
		return r.conn().task(ctx, c.ID, 0)
	}
	h, err := r.conn().history(ctx, 10)
	if statusOf(err) != 0 {
		return api.AgentTaskStatus{}, errNeverSeen // it keeps no history: what it does not run, it does not know
	}
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	for _, e := range h.Entries {
		if e.StartedAt != nil && began(*e.StartedAt, t) {
			return e, nil
		}
	}
	return api.AgentTaskStatus{}, errNeverSeen
}

// began reports whether something that an agent started at this time can be
// the task: after its claim, as far as two clocks can tell.
func began(at time.Time, t signalbox.Task) bool {
	const skew = 2 * time.Second
	return !at.Before(t.DispatchedAt.Add(-skew))
}

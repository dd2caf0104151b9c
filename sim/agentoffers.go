package sim

import (
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
)

// offer decides about a task. The world checks accepted ones.
func (a *agent) offer(r *request) answer {
	t := r.task
	a.director = t.Director
	if a.plain { // it does not read that field
		t.Slot = 0
	} else {
		if old := a.find(t.QueueID); old != nil && old.Fence == t.Fence {
			return respondJSON(http.StatusCreated, a.accepted(old))
		}
		at := slot{t.Isolated, t.Slot}
		if top := a.fences[at]; t.Fence <= top {
			return respondJSON(http.StatusConflict, api.AgentRefusal{Error: "stale_fence", Message: "a higher fence was seen", HighestFence: top})
		}
		if limit := a.limit(t.Isolated); t.Slot >= limit {
			return no(http.StatusBadRequest, "validation_error")
		}
		a.fences[at] = t.Fence
	}
	for _, e := range a.live() {
		if e.slot() != (slot{t.Isolated, t.Slot}) {
			continue
		}
		switch {
		case a.sloppy:
			continue
		case a.plain:
			c := a.current(e)
			return respondJSON(http.StatusConflict, api.AgentRefusal{Error: "agent_busy", Message: "the agent is busy", CurrentTask: &c})
		}
		a.w.checkVoid(a, e, t)
		a.end(e, "failed", &api.AgentError{Type: "stale_fence", Message: "a newer fence voided the run"})
	}
	return respondJSON(http.StatusCreated, a.accepted(a.start(r)))
}

// void makes the agent refuse an offer that has not arrived.
func (a *agent) void(came *execution, id string, t api.AgentTask) answer {
	if came != nil && came.Fence == t.Fence {
		return no(http.StatusConflict, "task_in_progress")
	}
	at := slot{t.Isolated, t.Slot}
	a.fences[at] = max(a.fences[at], t.Fence)
	return respondJSON(http.StatusOK, api.AgentVoided{QueueID: id, Fence: t.Fence, Status: api.StatusVoid})
}

package httpapi

import (
	"cmp"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// laneHandlers show, clear and release the queue of one agent.
type laneHandlers struct {
	engine *engine.Engine
	audit  *access.AuditLog
}

// lane is GET /api/agents/{name}/queue.
func (h *laneHandlers) lane(w http.ResponseWriter, r *http.Request) error {
	row, err := agentRow(r.Context(), h.engine, r.PathValue("name"))
	if err != nil {
		return err
	}
	l, err := h.engine.Lane(r.Context(), row.Name)
	if err != nil {
		return err
	}
	out := api.Lane{
		AgentName: row.Name, IsBusy: l.Busy(), QueueLength: l.Length, QueuedExecutions: view.Executions(l.Waiting),
		Executions: view.Executions(l.Running), Bypass: view.Executions(l.Isolated), Slots: l.Slots,
		MaxQueueSize: h.engine.Options().MaxChats, Paused: view.Pauses(l.Pauses),
	}
	for i := range l.Withheld {
		lost := view.Execution(&l.Withheld[i])
		lost.Status = view.SeedStatus(signalbox.Working) // its real state is unknown
		out.Executions = append(out.Executions, lost)
	}
	if len(out.Executions) > 0 {
		out.CurrentExecution = &out.Executions[0]
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// clearLane is POST /api/agents/{name}/queue/clear.
func (h *laneHandlers) clearLane(w http.ResponseWriter, r *http.Request) error {
	row, err := agentRow(r.Context(), h.engine, r.PathValue("name"))
	if err != nil {
		return err
	}
	n, failed := h.engine.ClearLane(r.Context(), row.Name, access.CallerOf(r).String())
	if failed != nil && n == 0 {
		return failed
	}
	if err := h.audit.Write(r, signalbox.Audit{ // also after an error: a part may have been done
		EventType: "agent_queue", Action: "clear_queue", AgentName: row.Name, Resource: signalbox.AgentQueue(row.Name), Result: access.ResultOf(failed),
		Details: signalbox.AuditDetails(map[string]any{"cleared_count": n}),
	}); err != nil || failed != nil {
		return cmp.Or(failed, err)
	}
	return httpio.Answer(w, http.StatusOK, api.LaneCleared{Status: "cleared", Agent: row.Name, ClearedCount: n})
}

// releaseWarning is the seed's text.
const releaseWarning = "Agent queue state has been reset. Any in-progress execution may still be running."

// releaseLane is POST /api/agents/{name}/queue/release.
func (h *laneHandlers) releaseLane(w http.ResponseWriter, r *http.Request) error {
	row, err := agentRow(r.Context(), h.engine, r.PathValue("name"))
	if err != nil {
		return err
	}
	ids, failed := h.engine.ReleaseLane(r.Context(), row.Name, access.CallerOf(r).String())
	if failed != nil && len(ids) == 0 {
		return failed
	}
	if err := h.audit.Write(r, signalbox.Audit{ // also after an error: a part may have been done
		EventType: "agent_queue", Action: "force_release", AgentName: row.Name, Resource: signalbox.AgentQueue(row.Name), Severity: signalbox.AuditWarning,
		Result: access.ResultOf(failed), Details: signalbox.AuditDetails(map[string]any{"was_running": len(ids) > 0, "queue_ids": ids}),
	}); err != nil || failed != nil {
		return cmp.Or(failed, err)
	}
	return httpio.Answer(w, http.StatusOK, api.Released{
		Status: "released", Agent: row.Name, WasRunning: len(ids) > 0, Warning: releaseWarning, QueueIDs: ids,
	})
}

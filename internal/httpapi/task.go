package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// taskHandlers are about one task: its state, why it waits, cancel, edit and unpark.
type taskHandlers struct {
	engine     *engine.Engine
	audit      *access.AuditLog
	tools      Tools     // nil: no tools
	toolTasks  ToolTasks // nil: no tool call can be a task
	landings   Landings  // nil: this director does not land
	forward    *forward.Forwarder
	log        *slog.Logger
	life       context.Context
	cancelWait time.Duration
}

// task is GET /api/queue/{id}.
func (h *taskHandlers) task(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	wait, err := httpio.Wait(r)
	if err != nil {
		return err
	}
	if wait > 0 {
		ctx, cancel := httpio.Until(r.Context(), h.life)
		defer cancel()
		if _, err := h.engine.Wait(ctx, id, wait, engine.Ended); err != nil {
			return err
		}
	}
	v, err := h.detail(r.Context(), id)
	return httpio.AnswerOr(w, v, err)
}

// detail reads a task with all its parts.
func (h *taskHandlers) detail(ctx context.Context, id string) (api.Task, error) {
	got, err := h.engine.Read().Whole(ctx, id)
	if err != nil {
		return api.Task{}, err
	}
	t, pos := &got.Task, got.Position
	v := view.Task(t)
	places, err := landingPlaces(ctx, h.engine, h.landings, t)
	if err != nil {
		return api.Task{}, err
	}
	v.Landing = view.Landing(t, places[id])
	view.AddRequest(&v, &got.Request)
	v.Revision = t.Rev
	v.Stale = view.Stale(got.Stales)
	calls := got.Result.Calls
	if t.State.InFlight() {
		calls = h.engine.ToolCalls(id)
	}
	view.Course(&v, t, calls)
	v.WaitingFor = view.WaitingFor(h.engine.WaitsAt(t))
	switch {
	case t.State.Terminal():
		v.Result = view.Result(t, &got.Result)
	case t.State == signalbox.Working:
		v.Note = h.engine.Trouble(t)
	case t.State.Waiting():
		v.Position, v.PositionApproximate = pos.N, pos.Approximate
		v.ETA, v.Note = view.ETA(h.engine.ETA(ctx, t, pos)), h.engine.Trouble(t)
	}
	return v, nil
}

// cancel is POST /api/queue/{id}/cancel.
func (h *taskHandlers) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	t, err := h.engine.Read().Task(r.Context(), id)
	if err == nil {
		t, err = h.cancelTask(r.Context(), &t, who.String())
	}
	if err != nil {
		return err
	}
	if err := h.auditOther(r, "cancel", &t); err != nil {
		return err
	}
	dispatched := !t.State.Terminal()
	if dispatched {
		ctx, stop := httpio.Until(r.Context(), h.life)
		defer stop()
		if t, err = h.engine.Wait(ctx, id, h.cancelWait, engine.Ended); err != nil {
			return err
		}
	}
	out := api.Cancelled{QueueID: id, State: string(t.State), WasDispatched: dispatched, Message: t.Message}
	if dispatched {
		out.AgentURL, out.TaskID = t.AgentURL, t.TaskID
	}
	status := http.StatusOK
	if !t.State.Terminal() {
		status = http.StatusAccepted
		out.Message = "the agent has not confirmed yet; signalbox release " + t.Agent + " takes the slot away from the task"
		if t.Mode == signalbox.ModeTool {
			out.Message = stillStopping
		}
	}
	return httpio.Answer(w, status, out)
}

// auditOther records an action on another owner's task in the audit log.
func (h *taskHandlers) auditOther(r *http.Request, action string, t *signalbox.Task) error {
	if t.Owner == access.CallerOf(r).Who.Key() {
		return nil
	}
	return h.audit.Write(r, signalbox.Audit{
		EventType: "task", Action: action, AgentName: view.AgentOf(t), Resource: t.ID, Details: signalbox.AuditDetails(map[string]any{"owner": t.Owner}),
	})
}

// edit is PATCH /api/queue/{id}.
func (h *taskHandlers) edit(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	var req api.EditRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	edit := signalbox.Edit{Rev: req.Revision, Prompt: req.Prompt, Route: routeOf(req.Agent, req.Kind), Priority: req.Priority, Order: signalbox.Order(req.Place)}
	if req.Budget != nil {
		b, err := budgetOf(req.Budget)
		if err != nil {
			return err
		}
		edit.Budget = &b
	}
	t, err := h.engine.Edit(r.Context(), id, edit, access.CallerOf(r).Who)
	if err == nil {
		err = h.auditOther(r, "edit", &t)
	}
	if err != nil {
		return err
	}
	v, err := h.detail(r.Context(), id)
	return httpio.AnswerOr(w, v, err)
}

// unpark is POST /api/queue/{id}/unpark.
func (h *taskHandlers) unpark(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	t, err := h.engine.Unpark(r.Context(), id, access.CallerOf(r).String())
	if err == nil {
		err = h.auditOther(r, "unpark", &t)
	}
	if err != nil {
		return err
	}
	v, err := h.detail(r.Context(), id)
	return httpio.AnswerOr(w, v, err)
}

// routeOf is the new route of a changed task; nil if it was left out.
func routeOf(agent, kind *string) *signalbox.Route {
	if agent == nil && kind == nil {
		return nil
	}
	return &signalbox.Route{Agent: *cmp.Or(agent, new(string)), Kind: *cmp.Or(kind, new(string))}
}

// stillStopping is the message for a cancelled tool run that has not ended yet.
const stillStopping = "it has not ended yet: its processes are still being stopped"

// cancelTask cancels a task at the director where it runs.
func (h *taskHandlers) cancelTask(ctx context.Context, t *signalbox.Task, by string) (signalbox.Task, error) {
	if h.toolTasks != nil && t.Mode == signalbox.ModeTool {
		got, err := h.toolTasks.Cancel(ctx, t.ID, by)
		return got.Task, err
	}
	return h.engine.Cancel(ctx, t.ID, by)
}

// why is GET /api/queue/{id}/why.
func (h *taskHandlers) why(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	got, err := h.engine.Why(r.Context(), id)
	if err != nil {
		return err
	}
	out := api.Why{QueueID: id, State: string(got.Task.State), Summary: got.Summary, Gates: []api.Gate{}, ETA: view.ETA(got.ETA), NoETA: got.NoETA}
	places, err := landingPlaces(r.Context(), h.engine, h.landings, &got.Task)
	if err != nil {
		return err
	}
	for _, g := range got.Gates {
		if got.Task.Mode == signalbox.ModeLand && g.Name == "resources_free" && !g.OK {
			g.Text += view.Before(places[got.Task.RetryOf])
		}
		out.Gates = append(out.Gates, api.Gate(g))
	}
	h.addCapacity(&out, got.Task.State, access.CallerOf(r))
	h.addElsewhere(r.Context(), &out, &got.Task)
	return httpio.Answer(w, http.StatusOK, out)
}

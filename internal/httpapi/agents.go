package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/terminal"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// agentHandlers register, list and remove agents, and receive their heartbeats.
type agentHandlers struct {
	engine    *engine.Engine
	audit     *access.AuditLog
	runs      Runs
	pull      Pull // nil: no agent can pull
	terminals *terminal.Terminals
	forward   *forward.Forwarder
	log       *slog.Logger
	lookup    lookup
	names     agentNameCache
}

// newAgentHandlers initializes h so that the name cache drops agents that are removed,
// here or by another director.
func newAgentHandlers(h *agentHandlers) *agentHandlers {
	h.engine.Observe(func(a *engine.Applied) {
		if a.Kind == signalbox.EventAgentRemoved {
			h.names.forget()
		}
	})
	return h
}

// agents is GET /api/agents.
func (h *agentHandlers) agents(w http.ResponseWriter, r *http.Request) error {
	rows, err := h.engine.Read().Agents(r.Context())
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	rows = slices.DeleteFunc(slices.Clone(rows), func(a signalbox.Agent) bool { return !who.MayUse(a.Name) })
	views, err := h.agentViews(r.Context(), rows)
	if err != nil {
		return err
	}
	var out api.Agents
	out.Agents, out.Executors = splitExecutors(views)
	return httpio.Answer(w, http.StatusOK, out)
}

// agentViews combines the stored agents with their live state.
func (h *agentHandlers) agentViews(ctx context.Context, rows []signalbox.Agent) ([]api.Agent, error) {
	read := h.engine.Read()
	queues := make([]string, len(rows))
	for i := range rows {
		queues[i] = ownQueue(rows[i].Name)
	}
	waiting, err := read.Lengths(ctx, queues...)
	if err != nil {
		return nil, err
	}
	running, err := h.runningTasks(ctx)
	if err != nil {
		return nil, err
	}
	live := map[string]engine.LiveAgent{}
	for _, a := range h.engine.LiveAgents() {
		live[a.Name] = a
	}
	views := make([]api.Agent, len(rows))
	for i := range rows {
		views[i] = view.Agent(&rows[i], live[rows[i].Name], running[rows[i].Name])
		views[i].Waiting = waiting[i]
		views[i].Terminals = h.terminals.Of(rows[i].Name)
		h.forward.SetExecutorState(&views[i])
	}
	slices.SortFunc(views, func(a, b api.Agent) int { return strings.Compare(a.Name, b.Name) })
	return views, nil
}

// runningTasks returns the tasks in slots, by agent. A slot is in use exactly if a row
// holds it.
func (h *agentHandlers) runningTasks(ctx context.Context) (map[string][]api.RunningTask, error) {
	read := h.engine.Read()
	slots, err := read.Slots(ctx)
	if err != nil {
		return nil, err
	}
	inFlight, err := read.InFlight(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*signalbox.Task, len(inFlight))
	for i := range inFlight {
		byID[inFlight[i].ID] = &inFlight[i]
	}
	running := map[string][]api.RunningTask{}
	for _, s := range slots {
		v := api.RunningTask{QueueID: s.TaskID, Slot: s.Slot, Fence: s.Fence, Withheld: s.Withheld}
		t := byID[s.TaskID]
		if t == nil { // withheld, or ended after the slots were read
			if row, err := read.Task(ctx, s.TaskID); err == nil {
				t = &row
			}
		}
		if t != nil {
			v.State, v.PromptPreview, v.StartedAt = string(t.State), t.Preview, view.Time(t.StartedAt)
			v.Note = h.engine.Trouble(t)
		}
		running[s.Agent] = append(running[s.Agent], v)
	}
	for _, list := range running {
		slices.SortFunc(list, func(a, b api.RunningTask) int { return a.Slot - b.Slot })
	}
	return running, nil
}

// heartbeat is POST /api/agents/{name}/heartbeat.
func (h *agentHandlers) heartbeat(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	var beat api.Heartbeat
	if err := httpio.Decode(w, r, &beat, false); err != nil {
		return err
	}
	if !slices.Contains([]string{"idle", "working", "stopping"}, beat.State) {
		return signalbox.Invalid("state", "state must be idle or working, or stopping at the end, not %q", httpio.Clip(beat.State))
	}
	if err := h.checkKnown(r.Context(), name); err != nil {
		return err
	}
	if h.pull != nil {
		stop, pulls, err := h.pull.Heartbeat(r.Context(), name, beat)
		if err != nil {
			return registerAgain(err)
		}
		if pulls {
			return httpio.Answer(w, http.StatusOK, api.HeartbeatAnswer{IntervalSeconds: pullHeartbeatSeconds, Stop: stop})
		}
	}
	if beat.State == "stopping" { // so that its director stops dispatching to it at once
		h.forwardHeartbeat(r.Context(), name, beat)
	}
	if !h.runs.Heartbeat(name, beat) {
		return httpio.Refuse(signalbox.CodeConflict, "register again", "agent %s is registered at another address than %s", name, httpio.Clip(beat.URL))
	}
	every := max(1, int(h.runs.HeartbeatInterval()/time.Second))
	return httpio.Answer(w, http.StatusOK, api.HeartbeatAnswer{IntervalSeconds: every})
}

// forwardHeartbeat forwards a heartbeat to the director that dispatches to the agent. If
// that fails, that director notices the stop by itself.
func (h *agentHandlers) forwardHeartbeat(ctx context.Context, name string, beat api.Heartbeat) {
	holder, elsewhere := h.forward.RemoteHolder(ctx, name)
	if !elsewhere {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	q := httpio.Outgoing{Method: http.MethodPost, Path: "/api/agents/" + name + "/heartbeat", Body: beat}
	if err := h.forward.Ask(ctx, holder, q, 0, &api.HeartbeatAnswer{}); err != nil {
		h.log.Debug("heartbeat not forwarded", "agent", name, "director", holder.ID, "error", err)
	}
}

// forwardTimeout limits forwardHeartbeat. It is short because the agent is about to stop.
const forwardTimeout = time.Second

// removeAgent is DELETE /api/agents/{name}.
func (h *agentHandlers) removeAgent(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	row, err := agentRow(r.Context(), h.engine, name)
	if err != nil {
		return err
	}
	if row.Source == signalbox.AgentFromConfig {
		return httpio.Refuse(signalbox.CodeConflict, "take it out of the configuration and restart the director",
			"agent %s is in the configuration: it would come back", name)
	}
	if err := h.engine.RemoveAgent(r.Context(), name, access.CallerOf(r).String()); err != nil {
		return err
	}
	h.names.forget()
	return h.audit.WriteAndAnswer(w, r, signalbox.Audit{EventType: "agent", Action: "remove", AgentName: name, Resource: row.URL}, http.StatusNoContent, nil)
}

// agentRow reads an agent. It returns CodeNotFound also for an invalid name.
func agentRow(ctx context.Context, e *engine.Engine, name string) (signalbox.Agent, error) {
	if signalbox.IsExecutor(name) {
		return signalbox.Agent{}, noAgent(name)
	}
	if !signalbox.ValidName(name) {
		return signalbox.Agent{}, signalbox.Errorf(signalbox.CodeNotFound, "%q is not the name of an agent", httpio.Clip(name))
	}
	return e.Agent(ctx, name)
}

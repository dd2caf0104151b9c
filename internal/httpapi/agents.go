package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// agents is GET /api/agents.
func (d *Server) agents(w http.ResponseWriter, r *http.Request) error {
	rows, err := d.engine.Read().Agents(r.Context())
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	rows = slices.DeleteFunc(slices.Clone(rows), func(a signalbox.Agent) bool { return !who.MayUse(a.Name) })
	views, err := d.agentViews(r.Context(), rows)
	if err != nil {
		return err
	}
	var out api.Agents
	out.Agents, out.Executors = splitExecutors(views)
	return httpio.Answer(w, http.StatusOK, out)
}

// agentViews joins what is stored of agents with what the dispatcher sees.
func (d *Server) agentViews(ctx context.Context, rows []signalbox.Agent) ([]api.Agent, error) {
	read := d.engine.Read()
	queues := make([]string, len(rows))
	for i := range rows {
		queues[i] = ownQueue(rows[i].Name)
	}
	waiting, err := read.Lengths(ctx, queues...)
	if err != nil {
		return nil, err
	}
	running, err := d.runningTasks(ctx)
	if err != nil {
		return nil, err
	}
	live := map[string]engine.LiveAgent{}
	for _, a := range d.engine.LiveAgents() {
		live[a.Name] = a
	}
	views := make([]api.Agent, len(rows))
	for i := range rows {
		views[i] = view.Agent(&rows[i], live[rows[i].Name], running[rows[i].Name])
		views[i].Waiting = waiting[i]
		views[i].Terminals = d.terminals.Of(rows[i].Name)
		d.ofOther(&views[i])
	}
	slices.SortFunc(views, func(a, b api.Agent) int { return strings.Compare(a.Name, b.Name) })
	return views, nil
}

// runningTasks returns the tasks in slots by agent: slots in use are exactly
// the rows that hold them.
func (d *Server) runningTasks(ctx context.Context) (map[string][]api.RunningTask, error) {
	read := d.engine.Read()
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
		if t == nil { // withheld, or ended since the slots were read
			if row, err := read.Task(ctx, s.TaskID); err == nil {
				t = &row
			}
		}
		if t != nil {
			v.State, v.PromptPreview, v.StartedAt = string(t.State), t.Preview, view.Time(t.StartedAt)
			v.Note = d.engine.Trouble(t)
		}
		running[s.Agent] = append(running[s.Agent], v)
	}
	for _, list := range running {
		slices.SortFunc(list, func(a, b api.RunningTask) int { return a.Slot - b.Slot })
	}
	return running, nil
}

// heartbeat is POST /api/agents/{name}/heartbeat.
func (d *Server) heartbeat(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	var beat api.Heartbeat
	if err := httpio.Decode(w, r, &beat, false); err != nil {
		return err
	}
	if !slices.Contains([]string{"idle", "working", "stopping"}, beat.State) {
		return signalbox.Invalid("state", "state must be idle or working, or stopping at the end, not %q", httpio.Clip(beat.State))
	}
	if err := d.known(r.Context(), name); err != nil {
		return err
	}
	if d.cfg.Pull != nil {
		stop, pulls, err := d.cfg.Pull.Heartbeat(r.Context(), name, beat)
		if err != nil {
			return registerAgain(err)
		}
		if pulls {
			return httpio.Answer(w, http.StatusOK, api.HeartbeatAnswer{IntervalSeconds: pullBeat, Stop: stop})
		}
	}
	if beat.State == "stopping" { // who dispatches to it need not find out by itself
		d.passBeat(r.Context(), name, beat)
	}
	if !d.runs.Heartbeat(name, beat) {
		return httpio.Refuse(signalbox.CodeConflict, "register again", "agent %s is known at another address than %s", name, httpio.Clip(beat.URL))
	}
	every := max(1, int(d.runs.HeartbeatInterval()/time.Second))
	return httpio.Answer(w, http.StatusOK, api.HeartbeatAnswer{IntervalSeconds: every})
}

// passBeat tells the director that dispatches to an agent what it said. Where
// that one does not hear it, it finds out by itself.
func (d *Server) passBeat(ctx context.Context, name string, beat api.Heartbeat) {
	holder, elsewhere := d.otherHolder(ctx, name)
	if !elsewhere {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, beatPassTimeout)
	defer cancel()
	q := httpio.Outgoing{Method: http.MethodPost, Path: "/api/agents/" + name + "/heartbeat", Body: beat}
	if err := d.ask(ctx, holder, q, 0, &api.HeartbeatAnswer{}); err != nil {
		d.log.Debug("what an agent said was not passed on", "agent", name, "director", holder.ID, "error", err)
	}
}

// beatPassTimeout bounds it: the agent is about to stop.
const beatPassTimeout = time.Second

// removeAgent is DELETE /api/agents/{name}.
func (d *Server) removeAgent(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	row, err := d.agentRow(r.Context(), name)
	if err != nil {
		return err
	}
	if row.Source == signalbox.AgentFromConfig {
		return httpio.Refuse(signalbox.CodeConflict, "take it out of the configuration and restart the director",
			"agent %s stands in the configuration: it would come back", name)
	}
	if err := d.engine.RemoveAgent(r.Context(), name, access.CallerOf(r).String()); err != nil {
		return err
	}
	d.names.forget()
	return d.audit.WriteAndAnswer(w, r, signalbox.Audit{EventType: "agent", Action: "remove", AgentName: name, Resource: row.URL}, http.StatusNoContent, nil)
}

// agentRow reads an agent. What cannot be a name names no agent.
func (d *Server) agentRow(ctx context.Context, name string) (signalbox.Agent, error) {
	if signalbox.IsExecutor(name) {
		return signalbox.Agent{}, noAgent(name)
	}
	if !signalbox.ValidName(name) {
		return signalbox.Agent{}, signalbox.Errorf(signalbox.CodeNotFound, "%q is not the name of an agent", httpio.Clip(name))
	}
	return d.engine.Agent(ctx, name)
}

// clearLane is POST /api/agents/{name}/queue/clear.
func (d *Server) clearLane(w http.ResponseWriter, r *http.Request) error {
	row, err := d.agentRow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	n, failed := d.engine.ClearLane(r.Context(), row.Name, access.CallerOf(r).String())
	if failed != nil && n == 0 {
		return failed
	}
	if err := d.audit.Write(r, signalbox.Audit{ // what was done before it failed, too
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
func (d *Server) releaseLane(w http.ResponseWriter, r *http.Request) error {
	row, err := d.agentRow(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	ids, failed := d.engine.ReleaseLane(r.Context(), row.Name, access.CallerOf(r).String())
	if failed != nil && len(ids) == 0 {
		return failed
	}
	if err := d.audit.Write(r, signalbox.Audit{ // what was done before it failed, too
		EventType: "agent_queue", Action: "force_release", AgentName: row.Name, Resource: signalbox.AgentQueue(row.Name), Severity: signalbox.AuditWarning,
		Result: access.ResultOf(failed), Details: signalbox.AuditDetails(map[string]any{"was_running": len(ids) > 0, "queue_ids": ids}),
	}); err != nil || failed != nil {
		return cmp.Or(failed, err)
	}
	return httpio.Answer(w, http.StatusOK, api.Released{
		Status: "released", Agent: row.Name, WasRunning: len(ids) > 0, Warning: releaseWarning, QueueIDs: ids,
	})
}

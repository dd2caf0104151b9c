package httpapi

import (
	"context"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// task is GET /api/queue/{id}.
func (d *Server) task(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	wait, err := httpio.Wait(r)
	if err != nil {
		return err
	}
	if wait > 0 {
		ctx, cancel := d.untilStopped(r.Context())
		defer cancel()
		if _, err := d.engine.Wait(ctx, id, wait, engine.Ended); err != nil {
			return err
		}
	}
	v, err := d.detail(r.Context(), id)
	return httpio.AnswerOr(w, v, err)
}

// untilStopped returns a context that also ends when the director stops:
// then long polls answer with what there is.
func (d *Server) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(d.life, cancel)
	return ctx, func() {
		unlink()
		cancel()
	}
}

// detail reads all that there is to say about a task.
func (d *Server) detail(ctx context.Context, id string) (api.Task, error) {
	got, err := d.engine.Read().Whole(ctx, id)
	if err != nil {
		return api.Task{}, err
	}
	t, pos := &got.Task, got.Position
	v := view.Task(t)
	view.AddRequest(&v, &got.Request)
	v.Stale = view.Stale(got.Stales)
	switch {
	case t.State.Terminal():
		v.Result = view.Result(t, &got.Result)
	case t.State == signalbox.Working:
		v.Note = d.engine.Trouble(t)
	case t.State == signalbox.Pending:
		v.Position, v.PositionApproximate = pos.N, pos.Approximate
		v.ETA, v.Note = view.ETA(d.engine.ETA(ctx, t, pos)), d.engine.Trouble(t)
	}
	return v, nil
}

// cancel is POST /api/queue/{id}/cancel.
func (d *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	t, err := d.engine.Read().Task(r.Context(), id)
	if err == nil {
		t, err = d.cancelTask(r.Context(), &t, who.String())
	}
	if err != nil {
		return err
	}
	if t.Owner != who.Key() {
		if err := d.audit.Write(r, signalbox.Audit{
			EventType: "task", Action: "cancel", AgentName: agentOf(&t), Resource: id, Details: signalbox.AuditDetails(map[string]any{"owner": t.Owner}),
		}); err != nil {
			return err
		}
	}
	dispatched := !t.State.Terminal()
	if dispatched {
		ctx, stop := d.untilStopped(r.Context())
		defer stop()
		if t, err = d.engine.Wait(ctx, id, d.cancelWait, engine.Ended); err != nil {
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

// stillStopping is said of a tool's run that was cancelled and still lives.
const stillStopping = "it has not ended yet: what it started is still being stopped"

// cancelTask cancels a task where it runs.
func (d *Server) cancelTask(ctx context.Context, t *signalbox.Task, by string) (signalbox.Task, error) {
	if d.cfg.ToolTasks != nil && t.Mode == signalbox.ModeTool {
		got, err := d.cfg.ToolTasks.Cancel(ctx, t.ID, by)
		return got.Task, err
	}
	return d.engine.CancelTask(ctx, t, by)
}

// why is GET /api/queue/{id}/why.
func (d *Server) why(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	got, err := d.engine.Why(r.Context(), id)
	if err != nil {
		return err
	}
	out := api.Why{QueueID: id, State: string(got.Task.State), Summary: got.Summary, Gates: []api.Gate{}, ETA: view.ETA(got.ETA)}
	for _, g := range got.Gates {
		out.Gates = append(out.Gates, api.Gate(g))
	}
	d.addCapacity(&out, got.Task.State, access.CallerOf(r))
	d.addElsewhere(r.Context(), &out, &got.Task)
	return httpio.Answer(w, http.StatusOK, out)
}

// pause is POST /api/queue/pause.
func (d *Server) pause(w http.ResponseWriter, r *http.Request) error {
	var req api.PauseRequest
	if err := httpio.Decode(w, r, &req, true); err != nil {
		return err
	}
	until, err := d.pauseEnd(req)
	if err != nil {
		return err
	}
	before, err := d.pauseWords(r.Context(), req.Queue)
	if err != nil {
		return err
	}
	if err := d.engine.Pause(r.Context(), req.Queue, req.Reason, access.CallerOf(r).String(), until); err != nil {
		return err
	}
	if err := d.auditPause(r, "pause", req, before); err != nil {
		return err
	}
	return d.paused(w, r)
}

// resume is POST /api/queue/resume.
func (d *Server) resume(w http.ResponseWriter, r *http.Request) error {
	var req api.PauseRequest
	if err := httpio.Decode(w, r, &req, true); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"reason", req.Reason != ""}, {"until", req.Until != nil}, {"seconds", req.Seconds != 0}} {
		if f.given {
			return signalbox.Invalid(f.name, "%s belongs to a pause; a resume takes queue alone", f.name)
		}
	}
	before, err := d.pauseWords(r.Context(), req.Queue)
	if err != nil {
		return err
	}
	if err := d.engine.Resume(r.Context(), req.Queue, access.CallerOf(r).String()); err != nil {
		return err
	}
	if err := d.auditPause(r, "resume", req, before); err != nil {
		return err
	}
	return d.paused(w, r)
}

// orAll names the queue of a pause for the audit log.
func orAll(queue string) string {
	if queue == "" {
		return "all queues"
	}
	return queue
}

func queueAgent(queue string) string {
	name, _ := signalbox.OnlyAgent(queue)
	return name
}

func (d *Server) paused(w http.ResponseWriter, r *http.Request) error {
	pauses, err := d.engine.Read().Pauses(r.Context())
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.Paused{Paused: view.Pauses(pauses)})
}

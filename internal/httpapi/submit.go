package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// submitHandlers accept tasks.
type submitHandlers struct {
	engine   *engine.Engine
	metrics  Metrics
	calls    *toolTaskHandlers // retries tool tasks
	landings Landings          // nil: this director does not land
}

// submit is POST /api/queue/task.
func (h *submitHandlers) submit(w http.ResponseWriter, r *http.Request) error {
	var req api.SubmitRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return refused(h.metrics, err)
	}
	return h.store(w, r, req, http.StatusCreated, "")
}

// The seed's texts of POST /api/task, which is for the web view.
const (
	webQueued = "Task queued for execution"
	webFull   = "Queue is at capacity. Please try again later."
)

// submitTask is POST /api/task.
func (h *submitHandlers) submitTask(w http.ResponseWriter, r *http.Request) error {
	var req api.SubmitRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return refused(h.metrics, err)
	}
	req.Source = cmp.Or(req.Source, string(signalbox.SourceWeb))
	err := h.store(w, r, req, http.StatusAccepted, webQueued)
	if full, ok := errors.AsType[*httpio.Refusal](err); ok && full.Err.Code == signalbox.CodeQueueFull {
		full.Err.Message = webFull
	}
	return err
}

func (h *submitHandlers) store(w http.ResponseWriter, r *http.Request, req api.SubmitRequest, status int, message string) error {
	n, err := newTask(req)
	if err == nil {
		n.IdempotencyKey, err = httpio.IdempotencyKey(r)
	}
	if err == nil {
		n.By = access.CallerOf(r).Who
		n.CallerID, err = access.ExecutionOf(r)
	}
	if err != nil {
		return refused(h.metrics, err)
	}
	got, err := h.engine.Submit(r.Context(), n)
	if err != nil {
		return h.submitError(r, err)
	}
	return h.receipt(w, got, status, message)
}

// retry is POST /api/queue/{id}/retry.
func (h *submitHandlers) retry(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	var req api.RetryRequest
	if err := httpio.Decode(w, r, &req, true); err != nil {
		return refused(h.metrics, err)
	}
	t, unread := h.engine.Read().Task(r.Context(), id)
	if unread == nil && t.Mode == signalbox.ModeTool {
		return h.calls.retryTool(w, r, &t, req)
	}
	key, err := httpio.IdempotencyKey(r)
	if err != nil {
		return refused(h.metrics, err)
	}
	caller, err := access.ExecutionOf(r)
	if err != nil {
		return refused(h.metrics, err)
	}
	if unread != nil {
		return h.submitError(r, unread)
	}
	got, err := h.engine.Retry(r.Context(), id, engine.RetryEdit{
		Prompt: req.Prompt, Model: req.Model, TimeoutSeconds: req.TimeoutSeconds, Env: req.Env, Route: routeOf(req.Agent, req.Kind), IdempotencyKey: key,
		By: access.CallerOf(r).Who, CallerID: caller,
	})
	if err != nil {
		return h.submitError(r, err)
	}
	return h.receipt(w, got, http.StatusCreated, "")
}

func (h *submitHandlers) receipt(w http.ResponseWriter, got engine.Receipt, status int, message string) error {
	if got.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	if gone := h.engine.Trouble(&got.Task); gone != "" {
		message = strings.TrimPrefix(message+": "+gone, ": ")
	}
	if h.landings != nil && !got.Task.State.Terminal() {
		if trouble := h.landings.Trouble(&got.Task); trouble != "" {
			message = strings.TrimPrefix(message+"; its work will not land: "+trouble, "; ")
		}
	}
	return httpio.Answer(w, status, api.SubmitResponse{
		QueueID: got.Task.ID, Position: got.Position.N, PositionApproximate: got.Position.Approximate,
		State: string(got.Task.State), Queue: got.Task.Queue, ETA: view.ETA(got.ETA), Message: message,
		Replayed: got.Replayed, RetryOf: got.Task.RetryOf,
	})
}

func newTask(req api.SubmitRequest) (engine.NewTask, error) {
	if signalbox.IsExecutor(req.Agent) {
		return engine.NewTask{}, &httpio.Refusal{
			Err:  signalbox.Invalid("agent", "agent %s is the director's own executor, which takes tool calls and no prompts", httpio.Clip(req.Agent)),
			Hint: "POST /api/tools/{tool}/tasks calls a tool as a task, as signalbox tools call --task does",
		}
	}
	prompt, err := promptOf(req.Prompt, req.Message)
	if err != nil {
		return engine.NewTask{}, err
	}
	budget, err := budgetOf(req.Budget)
	if err != nil {
		return engine.NewTask{}, err
	}
	n := engine.NewTask{
		Prompt: prompt, Model: req.Model, Tier: req.Tier, TimeoutSeconds: req.TimeoutSeconds, Budget: budget,
		SessionID: req.SessionID, Session: signalbox.SessionMode(req.Session), Env: req.Env, Thinking: req.Thinking,
		Source: signalbox.Source(req.Source), SourceJob: req.SourceJob, Agent: req.Agent, Kind: req.Kind,
		Priority: req.Priority, WaitTimeout: waitTimeout(req.WaitTimeout), OnLost: signalbox.OnLost(req.OnLost), Needs: req.Needs,
		Overflow: signalbox.Overflow(req.Overflow), Waits: req.Waits,
	}
	n.Project, n.Workspace = (*signalbox.Project)(req.Project), signalbox.NewWorkspace(req.Workspace, req.Repo, req.Base)
	n.Checking = view.Checking(req.Checks, req.CheckRetries)
	if n.Landing = signalbox.NewLandWish(req.Land, req.LandMethod, req.FastForward); n.Landing != nil {
		if err := n.Landing.Validate("land"); err != nil {
			return n, err
		}
	}
	if req.NotBefore != nil {
		n.NotBefore = *req.NotBefore
	}
	return n, nil
}

// waitTimeout converts seconds to a duration. A number that is too large for a duration must
// not wrap around to one that the engine accepts.
func waitTimeout(seconds int) time.Duration {
	const most = int(engine.MaxWaitTimeout / time.Second)
	return time.Duration(max(-1, min(seconds, most+1))) * time.Second
}

// submitError adds when to retry a submit to a full queue.
func (h *submitHandlers) submitError(r *http.Request, err error) error {
	_ = refused(h.metrics, err)
	var full *signalbox.Error
	if !errors.As(err, &full) || full.Code != signalbox.CodeQueueFull {
		return err
	}
	copied := *full
	return &httpio.Refusal{Err: &copied, RetryAfter: view.RetryAfter(r.Context(), h.engine, signalbox.QueueWork)}
}

// refused counts a submit that did not reach the engine.
func refused(m Metrics, err error) error {
	m.Refused(signalbox.CodeOf(err))
	return err
}

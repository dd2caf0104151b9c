package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// pauseHandlers pause and resume queues.
type pauseHandlers struct {
	engine *engine.Engine
	audit  *access.AuditLog
}

// pause is POST /api/queue/pause.
func (h *pauseHandlers) pause(w http.ResponseWriter, r *http.Request) error {
	var req api.PauseRequest
	if err := httpio.Decode(w, r, &req, true); err != nil {
		return err
	}
	until, err := h.pauseEnd(req)
	if err != nil {
		return err
	}
	before, err := h.pauseWords(r.Context(), req.Queue)
	if err != nil {
		return err
	}
	if err := h.engine.Pause(r.Context(), req.Queue, req.Reason, access.CallerOf(r).String(), until); err != nil {
		return err
	}
	if err := h.auditPause(r, "pause", req, before); err != nil {
		return err
	}
	return h.paused(w, r)
}

// resume is POST /api/queue/resume.
func (h *pauseHandlers) resume(w http.ResponseWriter, r *http.Request) error {
	var req api.PauseRequest
	if err := httpio.Decode(w, r, &req, true); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"reason", req.Reason != ""}, {"until", req.Until != nil}, {"seconds", req.Seconds != 0}} {
		if f.given {
			return signalbox.Invalid(f.name, "%s belongs to a pause; a resume takes only queue", f.name)
		}
	}
	before, err := h.pauseWords(r.Context(), req.Queue)
	if err != nil {
		return err
	}
	if err := h.engine.Resume(r.Context(), req.Queue, access.CallerOf(r).String()); err != nil {
		return err
	}
	if err := h.auditPause(r, "resume", req, before); err != nil {
		return err
	}
	return h.paused(w, r)
}

// orAll is the resource of a pause in the audit log.
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

func (h *pauseHandlers) paused(w http.ResponseWriter, r *http.Request) error {
	pauses, err := h.engine.Read().Pauses(r.Context())
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.Paused{Paused: view.Pauses(pauses)})
}

// maxPauseSeconds is the maximum length of a pause with an end, 366 days.
const maxPauseSeconds = 366 * 24 * 3600

// pauseEnd returns when a pause ends automatically; zero for never.
func (h *pauseHandlers) pauseEnd(req api.PauseRequest) (time.Time, error) {
	switch {
	case req.Until != nil && req.Seconds != 0:
		return time.Time{}, signalbox.Invalid("seconds", "until and seconds both say when the pause ends: give one of them")
	case req.Until != nil:
		return *req.Until, nil
	case req.Seconds < 0 || req.Seconds > maxPauseSeconds:
		return time.Time{}, signalbox.Invalid("seconds", "seconds must be 0 to %d, not %d", maxPauseSeconds, req.Seconds)
	case req.Seconds > 0:
		return h.engine.Now().Add(time.Duration(req.Seconds) * time.Second), nil
	}
	return time.Time{}, nil
}

// pauseWords is the pause of a queue for the audit log: its own, not a pause of all queues.
func (h *pauseHandlers) pauseWords(ctx context.Context, queue string) (map[string]any, error) {
	pauses, err := h.engine.Read().Pauses(ctx)
	for _, p := range pauses {
		if p.Queue != queue {
			continue
		}
		words := map[string]any{"paused": true, "reason": p.Reason, "by": p.By}
		if p.UntilMS != 0 {
			words["until"] = time.UnixMilli(p.UntilMS).UTC()
		}
		return words, err
	}
	return map[string]any{"paused": false}, err
}

// auditPause records a pause or a resume, with the state before and after.
func (h *pauseHandlers) auditPause(r *http.Request, action string, req api.PauseRequest, before map[string]any) error {
	after, err := h.pauseWords(r.Context(), req.Queue)
	if err != nil { // the change succeeded, so it must be recorded
		after = map[string]any{"paused": action == "pause"}
	}
	said := map[string]any{"before": before, "after": after}
	if req.Reason != "" {
		said["reason"] = req.Reason
	}
	return h.audit.Write(r, signalbox.Audit{
		EventType: "queue", Action: action, Resource: orAll(req.Queue), AgentName: queueAgent(req.Queue), Details: signalbox.AuditDetails(said),
	})
}

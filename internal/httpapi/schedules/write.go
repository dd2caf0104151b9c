package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// Create is POST /api/schedules.
func (h *Handlers) Create(w http.ResponseWriter, r *http.Request) error {
	all, err := h.required()
	if err != nil {
		return err
	}
	req, s, err := readSchedule(w, r)
	if err != nil {
		return err
	}
	c := access.CallerOf(r)
	if err := mayAimAt(c, &s); err != nil {
		return asSent(err, &req)
	}
	s.Owner, s.OwnerEmail = c.Who.Key(), c.Who.Email
	if s, err = all.Add(r.Context(), s, c.String()); err != nil {
		return asSent(err, &req)
	}
	if err := h.auditSchedule(r, "created", &s, map[string]any{"after": changeable(&s)}, nil); err != nil {
		return err
	}
	return h.answerSchedule(w, r, http.StatusCreated, all, s)
}

// mayAimAt refuses a schedule for an agent that the caller may not use, and a schedule for
// any agent if the caller is limited to some.
func mayAimAt(c access.Caller, s *signalbox.Schedule) error {
	switch {
	case !c.Who.Limited():
		return nil
	case s.Agent == "":
		return &signalbox.Error{Code: signalbox.CodeForbidden, Field: "agent",
			Message: fmt.Sprintf("this token is limited to %s: name one of them in agent_name", strings.Join(c.Who.Agents, ", "))}
	case !c.Who.MayUse(s.Agent):
		return c.Who.NoAgent(httpio.Clip(s.Agent))
	}
	return nil
}

// ownScheduleOf returns the schedule in the path. It refuses callers that are neither its
// owner nor an admin.
func (h *Handlers) ownScheduleOf(r *http.Request) (Scheduler, signalbox.Schedule, error) {
	all, s, err := h.scheduleOf(r)
	if err != nil {
		return nil, s, err
	}
	who := access.CallerOf(r).Who
	if who.Has(signalbox.ScopeAdmin) || s.Owner != "" && s.Owner == who.Key() {
		return all, s, nil
	}
	return nil, s, httpio.Refuse(signalbox.CodeForbidden, "use the token of its owner, or one with the scope admin",
		"schedule %s does not belong to %s: only its owner and admins may change or trigger it", s.Name, who.String())
}

// Put is PUT /api/schedules/{id}. The owner stays the same, and so does enabled if the
// body does not have it.
func (h *Handlers) Put(w http.ResponseWriter, r *http.Request) error {
	all, before, err := h.ownScheduleOf(r)
	if err != nil {
		return err
	}
	if before.Source == signalbox.ScheduleFromConfig {
		return fromFile(&before, "edited")
	}
	req, s, err := readSchedule(w, r)
	if err != nil {
		return err
	}
	c := access.CallerOf(r)
	if err := mayAimAt(c, &s); err != nil {
		return asSent(err, &req)
	}
	if req.Enabled == nil {
		s.Enabled = before.Enabled
	}
	if before.Timezone == "" && s.Timezone == h.scheduleZone() { // the default was shown; the schedule keeps following the configuration
		s.Timezone = ""
	}
	s.ID, s.Rev, s.Owner, s.OwnerEmail = before.ID, before.Rev, before.Owner, before.OwnerEmail
	if s, err = all.Edit(r.Context(), s, c.String()); err != nil {
		return asSent(err, &req)
	}
	was, is := difference(changeable(&before), changeable(&s))
	if err := h.auditSchedule(r, "edited", &s, map[string]any{"before": was, "after": is}, nil); err != nil {
		return err
	}
	return h.answerSchedule(w, r, http.StatusOK, all, s)
}

func fromFile(s *signalbox.Schedule, what string) error {
	return httpio.Refuse(signalbox.CodeConflict, "change it there: the director follows the file; enable, disable and trigger work here too",
		"schedule %s is in the director's configuration, and cannot be %s here", s.Name, what)
}

// Remove is DELETE /api/schedules/{id}.
func (h *Handlers) Remove(w http.ResponseWriter, r *http.Request) error {
	all, s, err := h.ownScheduleOf(r)
	if err != nil {
		return err
	}
	if s.Source == signalbox.ScheduleFromConfig {
		return fromFile(&s, "removed")
	}
	if err := all.Remove(r.Context(), s.ID, access.CallerOf(r).String()); err != nil {
		return err
	}
	if err := h.auditSchedule(r, "removed", &s, map[string]any{"before": changeable(&s)}, nil); err != nil {
		return err
	}
	return httpio.NoContent(w)
}

// Enable is POST /api/schedules/{id}/enable.
func (h *Handlers) Enable(w http.ResponseWriter, r *http.Request) error {
	return h.setEnabled(w, r, "enabled", true)
}

// Disable is POST /api/schedules/{id}/disable.
func (h *Handlers) Disable(w http.ResponseWriter, r *http.Request) error {
	return h.setEnabled(w, r, "disabled", false)
}

func (h *Handlers) setEnabled(w http.ResponseWriter, r *http.Request, action string, on bool) error {
	all, before, err := h.ownScheduleOf(r)
	if err != nil {
		return err
	}
	s, err := all.SetEnabled(r.Context(), before.ID, on, access.CallerOf(r).String())
	if err != nil {
		return err
	}
	if err := h.auditSchedule(r, action, &s, map[string]any{"before": map[string]any{"enabled": before.Enabled}, "after": map[string]any{"enabled": s.Enabled}}, nil); err != nil {
		return err
	}
	return h.answerSchedule(w, r, http.StatusOK, all, s)
}

// Trigger is POST /api/schedules/{id}/trigger. A firing that made no task is an error for
// the caller; it is recorded nevertheless.
func (h *Handlers) Trigger(w http.ResponseWriter, r *http.Request) error {
	all, s, err := h.ownScheduleOf(r)
	if err != nil {
		return err
	}
	if err := h.Engine.ChargeRate(access.CallerOf(r).Who, len(s.Prompt)); err != nil {
		return err
	}
	// A firing is completed even if the caller disconnects.
	run, err := all.Trigger(context.WithoutCancel(r.Context()), s.ID, access.CallerOf(r).String())
	if err == nil {
		err = h.noTask(r, &run)
	}
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		if noted := h.auditSchedule(r, "triggered", &s, map[string]any{"execution": run.ID, "outcome": run.Status, "queue_id": run.QueueID}, err); err == nil {
			err = noted
		}
	}
	if err != nil {
		return err
	}
	v, err := h.executionView(r.Context(), &run)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusCreated, api.Triggered{Execution: v, QueueID: run.QueueID})
}

// noTask is the error for a firing that made no task.
func (h *Handlers) noTask(r *http.Request, run *signalbox.ScheduleRun) error {
	const record = "signalbox schedules executions has the record, as GET /api/schedules/{id}/executions does"
	switch run.Status {
	case signalbox.SkippedQueueFull:
		return &httpio.Refusal{Err: signalbox.Errorf(signalbox.CodeQueueFull, "%s", run.Error), RetryAfter: view.RetryAfter(r.Context(), h.Engine, signalbox.QueueWork)}
	case signalbox.SkippedBusy:
		return httpio.Refuse(signalbox.CodeConflict, "wait for its end, or cancel it", "%s", run.Error)
	case signalbox.SkippedError, signalbox.SkippedMissed, signalbox.SkippedNoDirector:
		return httpio.Refuse(signalbox.CodeConflict, record, "the firing made no task: %s", run.Error)
	}
	return nil
}

func (h *Handlers) answerSchedule(w http.ResponseWriter, r *http.Request, status int, all Scheduler, s signalbox.Schedule) error {
	v, err := h.scheduleView(r.Context(), all, s, 0)
	if err != nil {
		return err
	}
	return httpio.Answer(w, status, v)
}

func (h *Handlers) auditSchedule(r *http.Request, action string, s *signalbox.Schedule, more map[string]any, failed error) error {
	more["name"] = s.Name
	if failed != nil {
		more["error"] = signalbox.CodeOf(failed)
	}
	return h.Audit.Write(r, signalbox.Audit{
		EventType: "schedule", Action: action, AgentName: s.Agent, Resource: s.ID, Result: access.ResultOf(failed), Details: signalbox.AuditDetails(more),
	})
}

// changeable returns the fields of a schedule that people can change, for the audit log.
// Texts that may be long are given by their beginning, length and hash.
func changeable(s *signalbox.Schedule) map[string]any {
	sum := sha256.Sum256([]byte(s.Prompt))
	out := map[string]any{
		"name": s.Name, "description": s.Description, "cron_expression": s.Cron, "timezone": s.Timezone, "enabled": s.Enabled, "agent_name": s.Agent, "kind": s.Kind,
		"message": fmt.Sprintf("%s (%d bytes, sha256 %s)", signalbox.Preview(s.Prompt), len(s.Prompt), hex.EncodeToString(sum[:4])),
		"model":   s.Model, "tier": s.Tier, "timeout_seconds": s.TimeoutSeconds, "session_id": s.SessionID, "priority": s.Priority, "on_lost": s.OnLost,
		"overlap": s.Overlap, "missed": s.Missed, "missed_window_seconds": int64(s.MissedWindow.Seconds()), "on_full": s.OnFull,
	}
	if s.Project != nil {
		out["project"] = *s.Project
	}
	if s.Workspace != nil {
		out["workspace"] = *s.Workspace
	}
	if !s.Checking.IsZero() { // only names: commands may be long
		text, _ := json.Marshal(s.Checking)
		names := make([]string, len(s.Checking.Checks))
		for i, c := range s.Checking.Checks {
			names[i] = c.Name
		}
		sum := sha256.Sum256(text)
		out["checks"] = fmt.Sprintf("%s (sha256 %s)", strings.Join(names, ", "), hex.EncodeToString(sum[:4]))
	}
	if s.Landing != nil {
		out["land"] = *s.Landing
	}
	if s.Thinking != nil {
		out["thinking"] = *s.Thinking
	}
	for key, v := range out { // leave out empty values
		if v == "" || v == 0 || v == signalbox.OnLost("") {
			delete(out, key)
		}
	}
	return out
}

// difference returns the values that differ between two sets.
func difference(a, b map[string]any) (was, is map[string]any) {
	differs := func(a, b map[string]any) map[string]any {
		out := maps.Clone(a)
		maps.DeleteFunc(out, func(key string, v any) bool { other, ok := b[key]; return ok && other == v })
		return out
	}
	return differs(a, b), differs(b, a)
}

// readSchedule reads the body of POST and PUT /api/schedules.
func readSchedule(w http.ResponseWriter, r *http.Request) (api.NewSchedule, signalbox.Schedule, error) {
	var req api.NewSchedule
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return req, signalbox.Schedule{}, err
	}
	s, err := newSchedule(&req)
	return req, s, err
}

// newSchedule makes a schedule from a request. Enabled is true by default.
func newSchedule(req *api.NewSchedule) (s signalbox.Schedule, err error) {
	s = signalbox.Schedule{
		Name: req.Name, Description: req.Description, Timezone: req.Timezone, Enabled: req.Enabled == nil || *req.Enabled,
		Model: req.Model, Tier: req.Tier, TimeoutSeconds: req.TimeoutSeconds, SessionID: req.SessionID, Thinking: req.Thinking,
		Kind: req.Kind, Priority: req.Priority, OnLost: signalbox.OnLost(req.OnLost),
		Overlap: signalbox.Overlap(req.Overlap), Missed: signalbox.Missed(req.Missed), OnFull: signalbox.OnFull(req.OnFull),
		Source: signalbox.ScheduleFromAPI,
	}
	s.Project, s.Workspace = (*signalbox.Project)(req.Project), signalbox.NewWorkspace(req.Workspace, req.Repo, req.Base)
	s.Checking, s.Landing = view.Checking(req.Checks, req.CheckRetries), signalbox.NewLandWish(req.Land, req.LandMethod, req.FastForward)
	if s.MissedWindow, err = missedWindow(req.MissedWindowSeconds); err != nil {
		return s, err
	}
	if s.Cron, err = httpio.EitherName("cron_expression", req.CronExpression, "schedule", req.Schedule); err != nil {
		return s, err
	}
	if s.Prompt, err = httpio.EitherName("message", req.Message, "prompt", req.Prompt); err != nil {
		return s, err
	}
	s.Agent, err = httpio.EitherName("agent_name", req.AgentName, "agent", req.Agent)
	switch {
	case err != nil:
		return s, err
	case s.Name == "":
		return s, signalbox.Invalid("name", "name is required")
	case s.Cron == "":
		return s, signalbox.Invalid("cron_expression", "cron_expression is required, such as \"0 1 * * *\" or @daily; schedule is another name for it")
	case strings.TrimSpace(s.Prompt) == "":
		return s, signalbox.Invalid("message", "message is required: the prompt for the agent; prompt is another name for it")
	case signalbox.IsExecutor(s.Agent):
		return s, signalbox.Invalid("agent_name", "agent %s is the director's own executor, which takes tool calls and no prompts", httpio.Clip(s.Agent))
	}
	return s, nil
}

// Limits of missed_window_seconds.
const (
	minMissedWindow = 60
	MaxMissedWindow = 366 * 24 * 3600
)

// missedWindow converts seconds to a duration; 0 is the default.
func missedWindow(seconds int64) (time.Duration, error) {
	if seconds == 0 {
		return signalbox.DefaultMissedWindow, nil
	}
	if seconds < minMissedWindow || seconds > MaxMissedWindow {
		return 0, signalbox.Invalid("missed_window_seconds", "missed_window_seconds must be %d to %d, not %d", minMissedWindow, MaxMissedWindow, seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

// asSent makes an error use the caller's name of a field.
func asSent(err error, req *api.NewSchedule) error {
	var e *signalbox.Error
	if !errors.As(err, &e) {
		return err
	}
	sent := map[string]string{"cron": "cron_expression", "prompt": "message", "agent": "agent_name"}
	if req.Schedule != "" {
		sent["cron"], sent["cron_expression"] = "schedule", "schedule"
	}
	if req.Prompt != "" {
		sent["prompt"], sent["message"] = "prompt", "prompt"
	}
	if req.Agent != "" {
		sent["agent"], sent["agent_name"] = "agent", "agent"
	}
	if name, ok := sent[e.Field]; ok {
		named := *e
		named.Field = name
		return &named
	}
	return err
}

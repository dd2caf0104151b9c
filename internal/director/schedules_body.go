package director

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// readSchedule reads a body of POST and PUT /api/schedules.
func readSchedule(w http.ResponseWriter, r *http.Request) (api.NewSchedule, signalbox.Schedule, error) {
	var req api.NewSchedule
	if err := decode(w, r, &req, false); err != nil {
		return req, signalbox.Schedule{}, err
	}
	s, err := newSchedule(&req)
	return req, s, err
}

// newSchedule makes a schedule of what was sent. Enabled is what it says, or
// true.
func newSchedule(req *api.NewSchedule) (s signalbox.Schedule, err error) {
	s = signalbox.Schedule{
		Name: req.Name, Description: req.Description, Timezone: req.Timezone, Enabled: req.Enabled == nil || *req.Enabled,
		Model: req.Model, Tier: req.Tier, TimeoutSeconds: req.TimeoutSeconds, SessionID: req.SessionID, Thinking: req.Thinking,
		Kind: req.Kind, Priority: req.Priority, OnLost: signalbox.OnLost(req.OnLost),
		Overlap: signalbox.Overlap(req.Overlap), Missed: signalbox.Missed(req.Missed), OnFull: signalbox.OnFull(req.OnFull),
		Source: signalbox.ScheduleFromAPI,
	}
	if req.Project != nil {
		s.Project = &signalbox.Project{Name: req.Project.Name, Path: req.Project.Path}
	}
	if s.MissedWindow, err = missedWindow(req.MissedWindowSeconds); err != nil {
		return s, err
	}
	if s.Cron, err = eitherName("cron_expression", req.CronExpression, "schedule", req.Schedule); err != nil {
		return s, err
	}
	if s.Prompt, err = eitherName("message", req.Message, "prompt", req.Prompt); err != nil {
		return s, err
	}
	s.Agent, err = eitherName("agent_name", req.AgentName, "agent", req.Agent)
	switch {
	case err != nil:
		return s, err
	case s.Name == "":
		return s, signalbox.Invalid("name", "name is required")
	case s.Cron == "":
		return s, signalbox.Invalid("cron_expression", "cron_expression is required, such as \"0 1 * * *\" or @daily; schedule is another name for it")
	case strings.TrimSpace(s.Prompt) == "":
		return s, signalbox.Invalid("message", "message is required: what the agent is to do; prompt is another name for it")
	case isExecutor(s.Agent):
		return s, signalbox.Invalid("agent_name", "agent %s is the director's own executor, which takes tool calls and no prompts", clip(s.Agent))
	}
	return s, nil
}

// eitherName takes a field that the seeds call differently.
func eitherName(one, first, other, second string) (string, error) {
	if first != "" && second != "" {
		return "", signalbox.Invalid(other, "%s is another name for %s: give one of them", other, one)
	}
	return first + second, nil
}

// Bounds of missed_window_seconds.
const (
	minMissedWindow = 60
	maxMissedWindow = 366 * 24 * 3600
)

// missedWindow makes a duration of seconds; 0 is the default.
func missedWindow(seconds int64) (time.Duration, error) {
	if seconds == 0 {
		return signalbox.DefaultMissedWindow, nil
	}
	if seconds < minMissedWindow || seconds > maxMissedWindow {
		return 0, signalbox.Invalid("missed_window_seconds", "missed_window_seconds must be %d to %d, not %d", minMissedWindow, maxMissedWindow, seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

// asSent has an error name a field as the caller named it.
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

package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// scheduleRoutes are the routes of schedules. A schedule's task runs as its message
// says (runPrompt). The firing of one named held waits until its executions are
// listed.
func (f *fake) scheduleRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"schedules": f.schedules, "createSchedule": f.putSchedule, "putSchedule": f.putSchedule,
		"schedule": f.withSchedule(func(w http.ResponseWriter, s *api.Schedule) { answer(w, 200, s) }),
		"removeSchedule": f.withSchedule(func(w http.ResponseWriter, s *api.Schedule) {
			delete(f.stored, s.Name)
			w.WriteHeader(http.StatusNoContent)
		}),
		"enableSchedule": f.withSchedule(func(w http.ResponseWriter, s *api.Schedule) {
			s.Enabled = true
			answer(w, 200, s)
		}),
		"disableSchedule": f.withSchedule(func(w http.ResponseWriter, s *api.Schedule) {
			s.Enabled = false
			answer(w, 200, s)
		}),
		"triggerSchedule": f.withSchedule(f.trigger),
		"executions":      f.withSchedule(f.executions),
	}
}

func (f *fake) withSchedule(do func(http.ResponseWriter, *api.Schedule)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		s := f.stored[r.PathValue("id")]
		if s == nil {
			fail(w, 404, "not_found", fmt.Sprintf("there is no schedule %q", r.PathValue("id")))
			return
		}
		do(w, s)
	}
}

func (f *fake) schedules(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := api.Schedules{Schedules: []api.Schedule{}}
	for _, name := range slices.Sorted(maps.Keys(f.stored)) {
		if s := f.stored[name]; name > r.URL.Query().Get("after") && (r.URL.Query().Get("agent") == "" || s.AgentName == r.URL.Query().Get("agent")) {
			if len(out.Schedules) == 2 { // a short page, so that there are several
				out.Next = out.Schedules[1].Name
				break
			}
			out.Schedules = append(out.Schedules, *s)
		}
	}
	answer(w, 200, out)
}

// putSchedule makes or changes a schedule, and records the request.
func (f *fake) putSchedule(w http.ResponseWriter, r *http.Request) {
	var req api.NewSchedule
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		fail(w, 400, "validation_error", err.Error())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := json.Marshal(req)
	f.calls = append(f.calls, "schedule "+string(body))
	if f.stored[req.Name] != nil && r.PathValue("id") == "" {
		fail(w, 409, "conflict", "there is already a schedule named "+req.Name)
		return
	}
	delete(f.stored, r.PathValue("id"))
	next := noon.Add(13 * time.Hour)
	s := &api.Schedule{
		ID: req.Name, Name: req.Name, Description: req.Description, CronExpression: req.CronExpression, Words: "at 01:00", Timezone: "UTC", Enabled: *req.Enabled,
		Source: "api", Message: req.Message, AgentName: req.AgentName, Kind: req.Kind, Model: req.Model, TimeoutSeconds: req.TimeoutSeconds,
		Overlap: "queue", Missed: "once", MissedWindowSeconds: 86400, OnFull: "skip", NextRunAt: &next, NextRuns: []time.Time{next, next.Add(24 * time.Hour)},
	}
	if req.Timezone != "" {
		s.Timezone = req.Timezone
	}
	f.stored[req.Name] = s
	status := 201
	if r.Method == http.MethodPut {
		status = 200
	}
	answer(w, status, s)
}

func (f *fake) trigger(w http.ResponseWriter, s *api.Schedule) {
	at := noon.Add(-time.Minute)
	s.LastRunAt, s.LastStatus = &at, "queued"
	e := api.ScheduleExecution{ID: fmt.Sprintf("run-%d", len(s.Outcomes)+1), ScheduleID: s.ID, Nominal: at, FiredAt: at, Trigger: "manual", By: "a local caller", Status: "queued", Outcome: "queued"}
	if s.Name == "held" {
		e.Status, e.Outcome, s.LastStatus = "held", "held", "held"
	} else {
		e.QueueID = f.add(s.Message).QueueID
	}
	s.Outcomes = slices.Insert(s.Outcomes, 0, e)
	answer(w, 201, api.Triggered{Execution: e, QueueID: e.QueueID})
}

func (f *fake) executions(w http.ResponseWriter, s *api.Schedule) {
	for i := range s.Outcomes {
		if e := &s.Outcomes[i]; e.Status == "held" {
			e.Status, e.Outcome, e.QueueID = "queued", "queued", f.add(s.Message).QueueID
		}
	}
	answer(w, 200, api.Executions{Executions: s.Outcomes})
}

// addSchedule adds a schedule whose last run ended as given; disabled and overdue are
// states of the schedule itself.
func (f *fake) addSchedule(name, last string) {
	next, at := noon.Add(90*time.Minute), noon.Add(-22*time.Hour)
	s := &api.Schedule{
		ID: name, Name: name, CronExpression: "30 13 * * *", Words: "at 13:30", Timezone: "Europe/Berlin", Enabled: last != "disabled", Source: "config",
		Message: "Tidy up\nand more", AgentName: "coder", Overlap: "skip", Missed: "all", MissedWindowSeconds: 7200, OnFull: "retry",
		NextRunAt: &next, NextRuns: []time.Time{next}, LastRunAt: &at, LastStatus: last, OwnerID: "user:ada",
		Outcomes: []api.ScheduleExecution{
			{ID: "2", Nominal: at, Trigger: "cron", Status: "failed", Outcome: "skipped_queue_full", Error: "Agent queue full (50 waiting), skipping scheduled execution"},
			{ID: "1", Nominal: at.Add(-24 * time.Hour), Trigger: "missed", Status: "completed", Outcome: "queued", QueueID: id(9), Missed: 2},
		},
	}
	switch last {
	case "disabled":
		s.LastStatus, s.NextRunAt, s.NextRuns = "queued", nil, nil
	case "overdue":
		s.LastStatus, s.OverdueSeconds = "queued", 300
	case "skipped_queue_full":
		s.LastError = s.Outcomes[0].Error
	}
	f.stored[name] = s
}

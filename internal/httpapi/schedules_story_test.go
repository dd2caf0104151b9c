package httpapi_test

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
)

func (s *session) pagesStory() {
	s.ask("home", "", "/", "")
	s.ask("page", "", "/ui/tasks", "")
	s.ask("asset", "", "/ui/assets/4f2c9d7e/main.js", "")
}

// scheduleStory makes a schedule, fires it, and reads the outcome.
func (s *session) scheduleStory() {
	body := `{"name":"nightly-maintenance","cron_expression":"0 1 * * *","timezone":"Europe/Berlin","message":"Perform nightly maintenance and report what you changed.","agent_name":"reviewer","timeout_seconds":1800}`
	s.ask("createSchedule", "", "/api/schedules", body).Want(s.T, http.StatusCreated, nil)
	s.ask("createSchedule", "An instant that never comes", "/api/schedules", `{"name":"never","schedule":"0 0 31 2 *","prompt":"p"}`)
	s.ask("createSchedule", "A name that is taken", "/api/schedules", body)
	s.ask("checkCron", "", "/api/cron?expression=30+9+*+*+mon-fri&timezone=Europe%2FBerlin", "")
	s.ask("putSchedule", "", "/api/schedules/nightly-maintenance",
		`{"name":"nightly-maintenance","schedule":"0 3 * * *","timezone":"Europe/Berlin","prompt":"Perform nightly maintenance and report what you changed.","agent":"reviewer","overlap":"skip"}`)
	s.ask("disableSchedule", "", "/api/schedules/nightly-maintenance/disable", "")
	s.ask("enableSchedule", "", "/api/schedules/nightly-maintenance/enable", "")
	task := s.submitted(s.Do("POST", "/api/queue/task", `{"prompt":"Perform nightly maintenance and report what you changed.","agent":"reviewer","source":"scheduler","source_job":"nightly-maintenance"}`))
	s.plans.TriggerResult = signalbox.ScheduleRun{Status: signalbox.RunQueued, QueueID: task}
	s.ask("triggerSchedule", "", "/api/schedules/nightly-maintenance/trigger", "").Want(s.T, http.StatusCreated, nil)
	s.plans.TriggerResult = signalbox.ScheduleRun{Status: signalbox.SkippedQueueFull, Error: "Agent queue full (3 waiting), skipping scheduled execution"}
	s.ask("triggerSchedule", "The queue is full", "/api/schedules/nightly-maintenance/trigger", "")
	s.ask("executions", "", "/api/schedules/nightly-maintenance/executions", "")
	s.ask("schedule", "", "/api/schedules/nightly-maintenance", "")
	s.ask("schedules", "", "/api/schedules?outcomes=1", "")
	s.ask("removeSchedule", "", "/api/schedules/nightly-maintenance", "")
	s.Do("POST", "/api/queue/"+task+"/cancel", "").Want(s.T, http.StatusOK, nil)
}

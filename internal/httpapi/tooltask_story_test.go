package httpapi_test

import "github.com/signalbox-ai/signalbox/internal/httpapi/apitest"

// toolTaskStory calls a tool as a task and follows it to its end. Another one waits for ever.
func (s *session) toolTaskStory() {
	key := apitest.Header("Idempotency-Key", "report-2025-01")
	body := `{"arguments":{"month":"2025-01"},"metadata":{"requested_by":"accounting"},"timeout_ms":600000}`
	var made struct{ ID string }
	s.ask("createToolTask", "", "/api/tools/report/tasks", body, key).Want(s.T, 201, &made)
	s.ask("createToolTask", "An argument that is of the wrong type", "/api/tools/report/tasks", `{"arguments":"2025-01"}`)
	s.ask("callTool", "An async tool is answered with the id of its task", "/api/tools/report/call", `{"arguments":{"month":"2025-02"}}`)
	s.ask("toolTask", "While it waits", "/api/tools/tasks/"+made.ID, "")
	row := s.RunTool(s.toolTasks, "Reading the ledger …\n")
	s.ask("toolTasks", "", "/api/tools/tasks", "")
	s.ask("task", "A call of a tool, while it runs", "/api/queue/"+made.ID, "")
	s.AnswerTool(s.toolTasks, row, "Reading the ledger …\nThe report is in report.pdf.\n", "")
	s.ask("toolTask", "", "/api/tools/tasks/"+made.ID+"?wait=30s", "")
	s.ask("getTaskStatus", "", "/getTaskStatus?taskId="+made.ID, "")
	s.ask("getTaskStatus", "Without the id", "/getTaskStatus", "")
	var next struct{ ID string }
	s.Do("POST", "/api/tools/report/tasks", `{}`).Want(s.T, 201, &next)
	s.ask("cancelToolTask", "", "/api/tools/tasks/"+next.ID+"/cancel", "")
	s.ask("agents", "Where tools are configured, the director's own executor", "/api/agents", "")
	s.ask("releaseLane", "It is no agent", "/api/agents/commands@local/queue/release", "")
	s.RefreshLive() // the view may be outdated
	s.ask("status", "Where tools are configured", "/status", "")
	s.ask("doctor", "", "/api/doctor", "")
	s.ask("directors", "One that is alone", "/api/directors", "")
}

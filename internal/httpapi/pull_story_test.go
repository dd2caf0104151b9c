package httpapi_test

import (
	"net/http"
	"strconv"

	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
)

// withPullers lets the director serve agents that pull.
func (s *session) withPullers() *pull.Lanes {
	return pull.New(s.Engine, pull.Options{Options: execution.Options{Monotonic: s.clock.Now}})
}

func (s *session) fence(id string) string {
	s.T.Helper()
	t, err := s.Store.Task(s.T.Context(), id)
	if err != nil {
		s.T.Fatal(err)
	}
	return strconv.FormatInt(t.Fence, 10)
}

// pullStory has an agent behind NAT, which pulls its task, reports, and leaves.
func (s *session) pullStory() {
	s.ask("registerAgent", "An agent that nobody can connect to", "/api/agents",
		`{"name":"basement","kind":"codex","slots":1,"fencing":true,"pull":true,"instance":"7d1f0c52-basement"}`).Want(s.T, http.StatusCreated, nil)
	const claim = `{"instance":"7d1f0c52-basement","slots":1}`
	s.ask("claim", "Nothing came within the wait", "/api/agents/basement/claim?wait=1ms", claim).Want(s.T, http.StatusOK, nil)
	task := s.submitted(s.Do("POST", "/api/queue/task", `{"prompt":"Count the boxes","agent":"basement","timeout_seconds":600}`))
	s.ask("claim", "", "/api/agents/basement/claim?wait=30s", claim).Want(s.T, http.StatusOK, nil)
	report := "/api/agents/basement/tasks/" + task + "/report"
	s.ask("report", "", report, `{"instance":"7d1f0c52-basement","fence":`+s.fence(task)+`,"accepted":{"task_id":"task-0123456789abcdef"}}`).Want(s.T, http.StatusOK, nil)
	s.ask("report", "What it printed", report, `{"instance":"7d1f0c52-basement","fence":`+s.fence(task)+`,"output":{"seq":0,"text":"Shelf 1: 4\n","next":11}}`).Want(s.T, http.StatusOK, nil)
	if _, err := s.Engine.Cancel(s.T.Context(), task, "anna"); err != nil {
		s.T.Fatal(err)
	}
	s.ask("claim", "A run to stop", "/api/agents/basement/claim?wait=30s",
		`{"instance":"7d1f0c52-basement","slots":1,"runs":[{"queue_id":"`+task+`","fence":`+s.fence(task)+`,"ran_ms":4200,"silent_ms":900}]}`).Want(s.T, http.StatusOK, nil)
	s.ask("report", "How it ended", report, `{"instance":"7d1f0c52-basement","fence":`+s.fence(task)+
		`,"finished":{"task_id":"task-0123456789abcdef","state":"cancelled","output":"","duration_seconds":4.4,"error":{"type":"cancelled","message":"the task was cancelled while it ran"}},"output":{"seq":11,"next":11}}`).Want(s.T, http.StatusOK, nil)
	s.ask("report", "The execution was taken away", report, `{"instance":"7d1f0c52-basement","fence":`+s.fence(task)+`,"unknown":true}`)
	s.ask("claim", "Another agent goes by the name", "/api/agents/basement/claim?wait=30s", `{"instance":"another-one","slots":1}`)
	s.ask("heartbeat", "Of an agent that pulls, when it stops", "/api/agents/basement/heartbeat", `{"state":"stopping","instance":"7d1f0c52-basement"}`).Want(s.T, http.StatusOK, nil)
	s.Do("DELETE", "/api/agents/basement", "").Want(s.T, http.StatusNoContent, nil)
	s.ask("claim", "An agent that is not known has to register", "/api/agents/basement/claim", `{"instance":"7d1f0c52-basement","slots":1}`)
}

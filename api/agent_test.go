package api_test

import (
	"encoding/json"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// TestCurrentTaskByItsIDAlone covers agents of the work-queue seed, which refuse an
// offer with the id of their task; our daemon sends an object.
func TestCurrentTaskByItsIDAlone(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"agent_busy","current_task":"task-9"}`:        "task-9",
		`{"error":"agent_busy","current_task":{"id":"task-9"}}`: "task-9",
		`{"error":"agent_busy","current_task":{}}`:              "",
	} {
		var r api.AgentRefusal
		if err := json.Unmarshal([]byte(body), &r); err != nil || r.CurrentTask == nil || r.CurrentTask.ID != want {
			t.Errorf("%s is taken as %+v: %v", body, r.CurrentTask, err)
		}
	}
}

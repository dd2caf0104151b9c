package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// seedTime is how the seed async-task-queue writes times.
const seedTime = "2006-01-02T15:04:05.000Z"

// Queued is the answer to a call that became a task, in the words of the seed
// async-task-queue. It is what a caller is told who was not promised a task:
// the text names the id, and metadata has it for programs. agentName is whose
// tools these are; "" is the tool itself.
func Queued(t ToolTask, agentName string) Result {
	row := &t.Task
	meta := struct {
		Agent     string `json:"agent"`
		TaskID    string `json:"taskId"`
		ToolName  string `json:"toolName"`
		Status    string `json:"status"`
		CreatedAt string `json:"createdAt"`
		UpdatedAt string `json:"updatedAt"`
	}{
		Agent: cmp.Or(agentName, row.Tool), TaskID: row.ID, ToolName: row.Tool, Status: SeedStatus(row.State),
		CreatedAt: seedTimeOf(row.CreatedAt), UpdatedAt: seedTimeOf(t.UpdatedAt()),
	}
	text := fmt.Sprintf("Task '%s' queued with id %s", row.Tool, row.ID)
	return Result{Content: plainContent(text), Metadata: mustMarshal(meta)}
}

func seedTimeOf(t time.Time) string { return t.UTC().Format(seedTime) }

// plainContent is one text as the content of a result.
func plainContent(text string) json.RawMessage {
	return mustMarshal([]struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{{"text", text}})
}

// mustMarshal is for strings in structs, which always marshal.
func mustMarshal(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

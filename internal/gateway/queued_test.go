package gateway_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// TestSeedQueuedAnswer: the answer to a call that became a task equals the seed's
// answer.
func TestSeedQueuedAnswer(t *testing.T) {
	at := time.Date(2025, 1, 17, 11, 0, 0, 5_000_000, time.FixedZone("", 3600))
	task := gateway.ToolTask{Task: signalbox.Task{
		ID: "queue-1", Tool: "report", State: signalbox.Dispatching, CreatedAt: at, DispatchedAt: at.Add(time.Second),
	}}
	for agent, want := range map[string]string{
		"":       `{"agent":"report","taskId":"queue-1","toolName":"report","status":"pending","createdAt":"2025-01-17T10:00:00.005Z","updatedAt":"2025-01-17T10:00:01.005Z"}`,
		"worker": `{"agent":"worker","taskId":"queue-1","toolName":"report","status":"pending","createdAt":"2025-01-17T10:00:00.005Z","updatedAt":"2025-01-17T10:00:01.005Z"}`,
	} {
		got := gateway.Queued(task, agent)
		if string(got.Content) != `[{"type":"text","text":"Task 'report' queued with id queue-1"}]` || got.IsError {
			t.Errorf("content %s, error %v", got.Content, got.IsError)
		}
		if string(got.Metadata) != want {
			t.Errorf("metadata of agent %q:\n%s\nwant\n%s", agent, got.Metadata, want)
		}
	}
}

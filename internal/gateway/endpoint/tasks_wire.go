package endpoint

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// Kinds of results.
const (
	resultComplete = "complete"
	resultTask     = "task"
)

// The states of a task in the protocol. There is none for waiting: the status
// message says so. Signalbox does not use input_required.
const (
	statusWorking   = "working"
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
)

// task is the wire format of a task.
type task struct {
	ID        string          `json:"taskId"`
	Status    string          `json:"status"`
	Message   string          `json:"statusMessage,omitempty"`
	CreatedAt string          `json:"createdAt"`
	UpdatedAt string          `json:"lastUpdatedAt"`
	TTL       *int64          `json:"ttlMs"`
	Poll      int64           `json:"pollIntervalMs,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *taskFailure    `json:"error,omitempty"`
}

// taskFailure is a JSON-RPC error: the call got no answer from the tool.
type taskFailure struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// wireTask converts a task. whole: with its result.
func wireTask(t *gateway.ToolTask, whole bool) task {
	out := task{
		ID: t.Task.ID, Status: statusOf(t), Message: messageOf(t),
		CreatedAt: wireTime(t.Task.CreatedAt), UpdatedAt: wireTime(t.UpdatedAt()),
	}
	if t.TTL > 0 {
		ms := max(t.TTL.Milliseconds(), 1)
		out.TTL = &ms
	}
	if !t.Task.State.Terminal() && t.Poll > 0 {
		out.Poll = max(t.Poll.Milliseconds(), 1)
	}
	if !whole {
		return out
	}
	switch out.Status {
	case statusCompleted:
		out.Result = answerOf(t)
	case statusFailed:
		out.Error = failureOf(t)
	}
	return out
}

// failureOf is the error of the tool's server, unchanged, or an error of
// Signalbox.
func failureOf(t *gateway.ToolTask) *taskFailure {
	if e := t.Error; e != nil {
		out := &taskFailure{Code: e.Code, Message: e.Message}
		if len(e.Data) > 0 {
			out.Data = e.Data
		}
		return out
	}
	return &taskFailure{Code: jsonrpc.CodeInternalError, Message: t.Task.Message, Data: map[string]signalbox.Reason{"reason": t.Task.Reason}}
}

// statusOf is the status of a task. If the tool itself failed, the task is completed with an
// error result: failed is for calls without an answer.
func statusOf(t *gateway.ToolTask) string {
	switch {
	case !t.Task.State.Terminal():
		return statusWorking
	case t.Task.State == signalbox.Cancelled:
		return statusCancelled
	case t.Error != nil:
		return statusFailed
	case t.Task.State == signalbox.Completed, t.Task.Reason == signalbox.ReasonExitNonzero, t.Task.Reason == signalbox.ReasonAgentError:
		return statusCompleted
	}
	return statusFailed
}

// messageOf is the status message, for people and models.
func messageOf(t *gateway.ToolTask) string {
	switch t.Task.State {
	case signalbox.Completed, signalbox.Working:
		return t.Wait
	case signalbox.Cancelling:
		return "being cancelled"
	case signalbox.Pending, signalbox.Dispatching, signalbox.Parked:
		switch {
		case t.Position > 0:
			return fmt.Sprintf("queued, position %d", t.Position)
		case t.Wait != "":
			return t.Wait
		}
		return "queued"
	}
	return t.Task.Message
}

// answerOf is the tool's answer, or a text saying that there is none.
func answerOf(t *gateway.ToolTask) json.RawMessage {
	res := callResult{modern: true}
	if t.Result != nil {
		res.Result = *t.Result
	} else {
		res.Result = textResult(t.Task.Message, t.Task.State != signalbox.Completed)
	}
	data, err := res.MarshalJSON()
	if err != nil { // the store has it unchanged
		return json.RawMessage(`{"resultType":"complete","content":[],"isError":true}`)
	}
	return data
}

// wireTime formats UTC times with a fixed length.
func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// taskResult is a task as the answer to tools/call or tasks/get.
type taskResult struct {
	mcp.ResultBase
	task
	kind string
}

// MarshalJSON writes the task with the fields that the protocol requires of a
// result.
func (r *taskResult) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		Meta map[string]any `json:"_meta,omitempty"`
		Type string         `json:"resultType"`
		task
	}{r.GetMeta(), r.kind, r.task})
}

// ack is an empty answer.
type ack struct{ mcp.ResultBase }

// MarshalJSON writes it as a complete result.
func (a *ack) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		Meta map[string]any `json:"_meta,omitempty"`
		Type string         `json:"resultType"`
	}{a.GetMeta(), resultComplete})
}

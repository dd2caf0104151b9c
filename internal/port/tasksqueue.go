package port

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// asyncTask is an entry of .tasksQueue (seed async-task-queue, Storage Format).
type asyncTask struct {
	ID       string `json:"id"`
	ToolName string `json:"toolName"`
	Payload  struct {
		Input    json.RawMessage `json:"input"`
		Metadata json.RawMessage `json:"metadata"`
	} `json:"payload"`
	Status    string    `json:"status"`
	TimeoutMS *int64    `json:"timeoutMs"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Error     *string   `json:"error"`
}

// maxTasksQueue bounds the file: the seed writes it whole at each change, so
// no larger one is in use.
const maxTasksQueue = 256 << 20

// tasksQueue reads the file of an asynchronous tool queue. The tools must be
// configured under the same names.
func tasksQueue(path string) Source {
	return Source{What: "a .tasksQueue", Read: func(ctx context.Context, take func(api.ExportedTask) error, bad func(where, why string)) error {
		entries, err := readEntries(path)
		if err != nil {
			return err
		}
		for i, raw := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			where := fmt.Sprintf("%s: entry %d", path, i+1)
			var a asyncTask
			if err := json.Unmarshal(raw, &a); err != nil {
				bad(where, "it is no task: "+err.Error())
				continue
			}
			t, why, err := a.task()
			if err != nil {
				return err
			}
			if why != "" {
				bad(where, why)
				continue
			}
			if err := take(t); err != nil {
				return err
			}
		}
		return nil
	}}
}

func readEntries(path string) (entries []json.RawMessage, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTasksQueue {
		return nil, fmt.Errorf("%s has %d bytes: too large for a .tasksQueue", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("%s is no .tasksQueue: want a JSON array of tasks: %w", path, err)
	}
	return entries, nil
}

func (a *asyncTask) task() (t api.ExportedTask, why string, err error) {
	if a.ID == "" || a.ToolName == "" || a.CreatedAt.IsZero() {
		return t, "it has no id, toolName or createdAt", nil
	}
	t = plain(signalbox.ImportAsyncTaskQueue, a.ID, a.CreatedAt)
	t.Mode, t.Tool, t.Queue, t.Limit = string(signalbox.ModeTool), a.ToolName, signalbox.QueueCommands, signalbox.LimitCommands
	t.Preview = signalbox.Preview("tool " + a.ToolName)
	r := signalbox.Request{Arguments: object(a.Payload.Input), Metadata: object(a.Payload.Metadata)}
	if a.TimeoutMS != nil {
		r.TimeoutMS = *a.TimeoutMS
	}
	ended := a.UpdatedAt.UTC().Truncate(time.Millisecond)
	if ended.Before(t.CreatedAt) {
		ended = t.CreatedAt
	}
	switch a.Status {
	case "", "pending":
	case "running":
		t.State = string(signalbox.Working)
	case "completed":
		t.State, t.Reason, t.Message, t.EndedAt = string(signalbox.Completed), string(signalbox.ReasonCompleted), "completed; the old queue kept no result", &ended
	case "failed":
		t.State, t.Reason, t.Message, t.EndedAt = string(signalbox.Failed), string(signalbox.ReasonAgentError), "failed", &ended
		if a.Error != nil && *a.Error != "" {
			t.Message = *a.Error
		}
	default:
		return t, fmt.Sprintf("%q is no status of a task", a.Status), nil
	}
	return t, "", request(&t, r)
}

// object is a JSON object, or nothing: the seed writes null and {} alike.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

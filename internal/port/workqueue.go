package port

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// queuedTask is a file in the seed's folders pending/ and dispatched/ (seed
// work-queue, File Format).
type queuedTask struct {
	QueueID        string            `json:"queue_id"`
	State          string            `json:"state"`
	CreatedAt      time.Time         `json:"created_at"`
	Prompt         string            `json:"prompt"`
	Model          string            `json:"model"`
	TimeoutSeconds int               `json:"timeout_seconds"`
	SessionID      string            `json:"session_id"`
	Project        *queuedProject    `json:"project"`
	Env            map[string]string `json:"env"`
	Thinking       *bool             `json:"thinking"`
	DispatchedAt   *time.Time        `json:"dispatched_at"`
	TaskID         string            `json:"task_id"`
	AgentURL       string            `json:"agent_url"`
	Attempts       int               `json:"attempts"`
	LastError      string            `json:"last_error"`
	Source         string            `json:"source"`
	SourceJob      string            `json:"source_job"`
}

// queuedProject is the seed's project: its prompt precedes that of the task.
type queuedProject struct {
	signalbox.Project
	Prompt string `json:"prompt"`
}

// maxFile bounds a file of the seed, in bytes.
const maxFile = 4 << 20

// workQueue reads the folder of a work queue in the order of created_at, as
// the seed does.
func workQueue(dir string) (Source, error) {
	found := false
	for _, sub := range []string{"pending", "dispatched"} {
		if info, err := os.Stat(filepath.Join(dir, sub)); err == nil && info.IsDir() {
			found = true
		}
	}
	if !found {
		return Source{}, fmt.Errorf("%s has no folder pending or dispatched: want the folder of a work queue (AG_QUEUE_DIR)", dir)
	}
	return Source{What: "the folder of a work queue", Read: func(ctx context.Context, to Taker) error {
		tasks, err := readFolders(dir, to.Bad)
		if err != nil {
			return err
		}
		for i := range tasks {
			if err := ctx.Err(); err != nil {
				return err
			}
			t, err := tasks[i].task()
			if err != nil {
				return err
			}
			if err := to.Task(t); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func readFolders(dir string, bad func(where, why string)) ([]queuedTask, error) {
	seen := map[string]bool{}
	var tasks []queuedTask
	for _, sub := range []string{"dispatched", "pending"} { // a task in both was being moved: it may be running
		files, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for _, f := range files {
			path := filepath.Join(dir, sub, f.Name())
			t, why := readTask(path)
			switch {
			case why != "":
				bad(path, why)
			case !seen[t.QueueID]:
				seen[t.QueueID] = true
				if sub == "dispatched" {
					t.State = string(signalbox.Working)
				} else {
					t.State = string(signalbox.Pending)
				}
				tasks = append(tasks, t)
			}
		}
	}
	sort.SliceStable(tasks, func(i, j int) bool { return tasks[i].CreatedAt.Before(tasks[j].CreatedAt) })
	return tasks, nil
}

func readTask(path string) (t queuedTask, why string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return t, err.Error()
	case !info.Mode().IsRegular():
		return t, "it is not a file"
	case info.Size() > maxFile:
		return t, "it is too large for a task"
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return t, err.Error()
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, "it is not the JSON of a task: " + err.Error()
	}
	if t.QueueID == "" || t.Prompt == "" || t.CreatedAt.IsZero() {
		return t, "it has no queue_id, prompt or created_at"
	}
	return t, ""
}

func (q *queuedTask) task() (api.ExportedTask, error) {
	t := plain(signalbox.ImportWorkQueue, q.QueueID, q.CreatedAt)
	t.State, t.Attempts, t.LastError, t.Env = q.State, q.Attempts, q.LastError, q.Env
	t.Source, t.SourceJob, t.SessionID = sourceOf(q.Source), q.SourceJob, q.SessionID
	if t.State != string(signalbox.Pending) {
		t.DispatchedAt, t.StartedAt, t.TaskID, t.AgentURL = q.DispatchedAt, q.DispatchedAt, q.TaskID, q.AgentURL
	}
	prompt, project := q.Prompt, (*signalbox.Project)(nil)
	if p := q.Project; p != nil {
		if p.Project != (signalbox.Project{}) {
			project = &p.Project
		}
		if p.Prompt != "" {
			prompt = p.Prompt + "\n\n" + prompt
		}
	}
	return t, request(&t, signalbox.Request{
		Prompt: prompt, Model: q.Model, TimeoutSeconds: q.TimeoutSeconds, SessionID: q.SessionID, Project: project, Thinking: q.Thinking,
	})
}

// sourceOf converts a seed's source.
func sourceOf(s string) string {
	if s == "schedule" {
		return string(signalbox.SourceScheduler)
	}
	for _, known := range signalbox.Sources() {
		if s == string(known) {
			return s
		}
	}
	return string(signalbox.SourceAPI)
}

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

// maxTasksQueue bounds the file, in bytes: the seed rewrites it at each
// change, so larger ones are not in use.
const maxTasksQueue = 256 << 20

// tasksQueue reads the file of an asynchronous tool queue. The tools must be
// configured under the same names.
func tasksQueue(path string) Source {
	return Source{What: "a .tasksQueue", Read: func(ctx context.Context, to Taker) error {
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
				to.Bad(where, "it is not a task: "+err.Error())
				continue
			}
			t, why, err := a.task()
			if err != nil {
				return err
			}
			if why != "" {
				to.Bad(where, why)
				continue
			}
			if err := to.Task(t); err != nil {
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
		return nil, fmt.Errorf("%s is not a .tasksQueue: want a JSON array of tasks: %w", path, err)
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
		return t, fmt.Sprintf("%q is not the status of a task", a.Status), nil
	}
	return t, "", request(&t, r)
}

// object returns a JSON object, or nothing: the seed writes null and {}
// alike.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

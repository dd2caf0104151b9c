package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// createToolTask makes a task that runs as the name of its tool says, and records the
// call.
func (f *fake) createToolTask(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	tool := r.PathValue("tool")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf("%s %s %s", tool, r.Header.Get("X-Signalbox-Session"), body))
	if tool == "nothing" {
		fail(w, 404, "not_found", `There is no tool "nothing": signalbox tools lists those that there are`)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	for _, t := range f.tasks {
		if f.keys[key] == t.QueueID {
			answer(w, 201, toolView(t))
			return
		}
	}
	t := f.add(tool + " from the tool")
	t.Mode, t.Tool, t.Queue, t.PromptPreview, t.Prompt, t.ETA = "tool", tool, "commands", "tool "+tool, tool+" from the tool", nil
	t.Position = f.waiting(t.Queue)
	var req api.NewToolTask
	json.Unmarshal(body, &req)
	t.Arguments, t.TimeoutMS = req.Arguments, req.TimeoutMS
	f.keys[key] = t.QueueID
	answer(w, 201, toolView(t))
}

// toolView is a task in the form of the routes of tool tasks.
func toolView(t *api.Task) api.ToolTask {
	v := api.ToolTask{
		ID: t.QueueID, ToolName: t.Tool, Status: t.State, CreatedAt: t.CreatedAt, UpdatedAt: t.CreatedAt, State: t.State,
		Reason: t.Reason, Message: t.Message, Position: t.Position,
	}
	switch t.State {
	case "dispatching":
		v.Status = "pending"
	case "working", "cancelling":
		v.Status = "running"
	case "timeout":
		v.Status = "failed"
	case "completed":
		warning := ""
		if t.Tool == "echo" {
			warning = `,{"type":"text","text":"stderr:\na warning\n"}`
		}
		v.Result = &api.ToolResult{Content: json.RawMessage(`[{"type":"text","text":` + strconv.Quote(t.Result.Output) + `}` + warning + `]`)}
	}
	if t.EndedAt != nil {
		v.UpdatedAt = *t.EndedAt
	}
	if v.Status == "failed" {
		v.Error = &v.Message
	}
	return v
}

func (f *fake) toolTask(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.lookup(w, r)
	switch {
	case t == nil:
	case t.Tool == "":
		fail(w, 404, "not_found", "there is no task "+t.QueueID+" of a tool")
	default:
		f.answerWait(w, r, t, func(t *api.Task) any { return toolView(t) })
	}
}

// cancelToolTask is refused where the queue's own cancel would not be.
func (f *fake) cancelToolTask(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.lookup(w, r)
	switch {
	case t == nil:
	case t.Tool == "":
		fail(w, 404, "not_found", "there is no task "+t.QueueID+" of a tool")
	case client.Ended(t.State):
		fail(w, 409, "already_ended", "task "+t.QueueID+" has ended: "+t.State)
	default:
		f.end(t, "cancelled", "cancelled", "cancelled", "")
		answer(w, 200, toolView(t))
	}
}

func (f *fake) toolTasks(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	page := api.ToolTasks{Tasks: []api.ToolTask{}}
	for _, t := range f.tasks {
		v := toolView(t)
		if t.Tool != "" && (q.Get("tool") == "" || q.Get("tool") == t.Tool) && (q.Get("status") == "" || q.Get("status") == v.Status) {
			page.Tasks = append(page.Tasks, v)
		}
	}
	if most, _ := strconv.Atoi(q.Get("limit")); most < len(page.Tasks) {
		page.Tasks, page.Next = page.Tasks[:most], "more"
	}
	answer(w, 200, page)
}

// toolCounts is nil where no tool was called as a task; f.mu is held.
func (f *fake) toolCounts() *api.ToolTaskCounts {
	if !slices.ContainsFunc(f.tasks, func(t *api.Task) bool { return t.Tool != "" }) {
		return nil
	}
	var c api.ToolTaskCounts
	for _, t := range f.tasks {
		switch {
		case t.Tool == "" || client.Ended(t.State):
		case t.State == "pending":
			c.Waiting++
		default:
			c.Running++
		}
	}
	return &c
}

func (f *fake) executors() []api.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.toolCounts()
	if c == nil {
		return nil
	}
	x := api.Agent{Name: "commands@local", Kind: "commands", State: "idle", Slots: 10, InUse: c.Running, Waiting: c.Waiting, Source: "internal"}
	for _, t := range f.tasks {
		if t.Tool != "" && t.State == "working" {
			x.Running = append(x.Running, api.RunningTask{QueueID: t.QueueID, State: t.State, PromptPreview: t.PromptPreview})
		}
	}
	return []api.Agent{x}
}

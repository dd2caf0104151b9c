package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// runPrompt runs a task as its prompt says; f.mu is held.
func (f *fake) runPrompt(t *api.Task) {
	if t.State != "pending" {
		return
	}
	word, rest, _ := strings.Cut(t.Prompt, " ")
	if !slices.Contains([]string{"echo", "failed", "cancelled", "timeout", "lost", "hang"}, word) {
		return
	}
	f.set(t, "claim", "dispatching")
	f.set(t, "accept", "working")
	switch word {
	case "echo":
		f.end(t, "completed", "completed", "completed", rest)
	case "failed":
		f.end(t, "failed", "exit_nonzero", "the command ended with code 2", rest)
	case "lost":
		f.end(t, "failed", "lost", "its agent went silent", "")
	case "cancelled":
		f.end(t, "cancelled", "cancelled", "cancelled", "")
	case "timeout":
		f.end(t, "timeout", "run_timeout", "ran longer than its timeout", "")
	}
}

// lookup returns the task that a request names, or answers 404 and returns nil.
func (f *fake) lookup(w http.ResponseWriter, r *http.Request) *api.Task {
	for _, t := range f.tasks {
		if t.QueueID == r.PathValue("id") {
			return t
		}
	}
	fail(w, 404, "not_found", "there is no task "+r.PathValue("id"))
	return nil
}

func (f *fake) task(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.lookup(w, r)
	if t == nil {
		return
	}
	f.answerWait(w, r, t, func(t *api.Task) any { return t })
}

// answerWait answers with a task, at once or when it has ended; f.mu is held.
func (f *fake) answerWait(w http.ResponseWriter, r *http.Request, t *api.Task, view func(*api.Task) any) {
	if r.URL.Query().Get("wait") == "" {
		if f.subscribed[t.QueueID] && !f.polled[t.QueueID] {
			f.polled[t.QueueID] = true
			f.broadcast()
		}
		answer(w, 200, view(t))
		return
	}
	for !client.Ended(t.State) {
		if f.polled[t.QueueID] {
			f.runPrompt(t)
		}
		if !client.Ended(t.State) && !f.waitForChange(r) {
			return
		}
	}
	answer(w, 200, view(t))
}

// waitForChange waits for a change of any task; f.mu is held before and after.
func (f *fake) waitForChange(r *http.Request) bool {
	changed := f.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := len(f.events)
	if after, err := strconv.Atoi(r.URL.Query().Get("after")); err == nil {
		at = after
	}
	only := r.URL.Query().Get("queue_id")
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "id: %d\n\n", at)
	f.subscribed[only] = true
	for {
		for ; at < len(f.events); at++ {
			e := f.events[at]
			if only == "" || e.QueueID == only {
				data, _ := json.Marshal(e)
				fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data)
			}
		}
		w.(http.Flusher).Flush()
		if !f.waitForChange(r) {
			return
		}
	}
}

func (f *fake) queue(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := api.Queue{MaxSize: f.max, Tasks: []api.Task{}, Paused: f.paused, Depth: f.waiting("work"), Tools: f.toolCounts()}
	for _, t := range f.tasks {
		if t.State == "pending" || t.State == "dispatching" {
			row := *t
			row.Prompt = ""
			q.Tasks = append(q.Tasks, row)
		}
		if t.State == "working" {
			q.DispatchedCount++
		}
	}
	answer(w, 200, q)
}

func (f *fake) cancel(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.lookup(w, r)
	switch {
	case t == nil:
	case client.Ended(t.State):
		fail(w, 409, "already_ended", "task "+t.QueueID+" has already ended: "+t.State)
	case t.State == "working":
		f.set(t, "cancel", "cancelling")
		answer(w, 202, api.Cancelled{QueueID: t.QueueID, State: t.State, WasDispatched: true})
	default:
		f.end(t, "cancelled", "cancelled", "cancelled", "")
		answer(w, 200, api.Cancelled{QueueID: t.QueueID, State: t.State})
	}
}

func (f *fake) retry(w http.ResponseWriter, r *http.Request) {
	var edit api.RetryRequest
	json.NewDecoder(r.Body).Decode(&edit)
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.lookup(w, r)
	if t == nil {
		return
	}
	if !client.Ended(t.State) {
		fail(w, 409, "conflict", "task "+t.QueueID+" has not ended: it is "+t.State)
		return
	}
	prompt := t.Prompt
	if edit.Prompt != "" {
		prompt = edit.Prompt
	}
	again := f.add(prompt)
	again.Mode, again.Tool, again.Queue = t.Mode, t.Tool, t.Queue
	answer(w, 201, api.SubmitResponse{QueueID: again.QueueID, State: "pending", Queue: again.Queue, Position: again.Position, RetryOf: t.QueueID})
}

func (f *fake) why(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.lookup(w, r); t != nil {
		answer(w, 200, api.Why{
			QueueID: t.QueueID, State: t.State, Summary: "It waits: Agent coder is busy.",
			Gates: []api.Gate{
				{Name: "due", OK: true, Text: "Task is due", Detail: "created 5s ago"},
				{Name: "agent_free", Text: "Agent coder is busy", Detail: "coder runs " + id(1), Cure: "Wait, or signalbox cancel " + id(1), TaskID: id(1), Agent: "coder"},
			},
			ETA: &api.ETA{LowSeconds: 180, HighSeconds: 540, Runs: 40},
		})
	}
}

// output serves a task's result as its log.
func (f *fake) output(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.lookup(w, r)
	if t == nil {
		return
	}
	log := ""
	if t.Result != nil {
		log = t.Result.Output + "\n"
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	after = min(after, len(log))
	out := api.Output{QueueID: t.QueueID, State: t.State, Seq: int64(after), Text: log[after:], Next: int64(len(log)), Done: client.Ended(t.State)}
	if r.Header.Get("Accept") != "text/event-stream" {
		answer(w, 200, out)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for !client.Ended(t.State) {
		w.(http.Flusher).Flush()
		if !f.waitForChange(r) {
			return
		}
	}
	out.Text, out.Next, out.Done, out.State = t.Result.Output+"\n", int64(len(t.Result.Output)+1), true, t.State
	data, _ := json.Marshal(out)
	fmt.Fprintf(w, "event: output\ndata: %s\n\n", data)
}

func (f *fake) pause(w http.ResponseWriter, r *http.Request) {
	var req api.PauseRequest
	json.NewDecoder(r.Body).Decode(&req)
	f.mu.Lock()
	defer f.mu.Unlock()
	p := api.Pause{Queue: req.Queue, Reason: req.Reason, Since: noon}
	if req.Seconds > 0 {
		until := noon.Add(time.Duration(req.Seconds) * time.Second)
		p.Until = &until
	}
	f.paused = append(f.paused, p)
	answer(w, 200, api.Paused{Paused: f.paused})
}

func (f *fake) resume(w http.ResponseWriter, r *http.Request) {
	var req api.PauseRequest
	json.NewDecoder(r.Body).Decode(&req)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = slices.DeleteFunc(f.paused, func(p api.Pause) bool { return p.Queue == req.Queue })
	answer(w, 200, api.Paused{Paused: append([]api.Pause{}, f.paused...)})
}

func (f *fake) history(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	before, _ := strconv.Atoi(r.URL.Query().Get("before"))
	var ended []api.Task
	for _, t := range slices.Backward(f.tasks) {
		if state := r.URL.Query().Get("state"); client.Ended(t.State) && (state == "" || state == t.State) {
			row := *t
			row.Prompt, row.Result = "", nil
			ended = append(ended, row)
		}
	}
	ended = ended[min(before, len(ended)):]
	page := api.History{Tasks: ended[:min(limit, len(ended))]}
	if len(page.Tasks) < len(ended) {
		page.Next = strconv.Itoa(before + len(page.Tasks))
	}
	answer(w, 200, page)
}

func (f *fake) lane(w http.ResponseWriter, r *http.Request, v any) {
	if r.PathValue("name") != "coder" {
		fail(w, 404, "not_found", "there is no agent "+r.PathValue("name"))
		return
	}
	answer(w, 200, v)
}

// finish ends a task from a test.
func (f *fake) finish(n int, state, output string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(f.tasks[n-1], state, state, state, output)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

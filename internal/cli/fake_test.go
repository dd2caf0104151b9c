package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// noon is the time of all tests.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fake is a director that does as the test says. A task's prompt is its fate:
// "echo X" completes with the answer X; failed, cancelled, timeout and lost
// end so; hang works for ever; anything else waits. A fate runs its course
// when somebody waits for the task and hears its events.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	changed chan struct{} // closed at each change
	tasks   []*api.Task
	keys    map[string]string // idempotency key → id
	events  []api.Event
	agents  []api.Agent
	paused  []api.Pause
	max     int
	token   string

	refuse   map[string]api.Error // route → refusal, whose status is RetryAfter
	loseNext int                  // replies to submit that are lost
	submits  []submitted
	heard    map[string]bool // id → its events are listened to
	looked   map[string]bool // id → it was read after that
}

type submitted struct {
	key string
	req api.SubmitRequest
}

func newFake(t testing.TB) *fake {
	f := &fake{
		max: 50, changed: make(chan struct{}), keys: map[string]string{}, refuse: map[string]api.Error{},
		heard: map[string]bool{}, looked: map[string]bool{},
		agents: []api.Agent{{Name: "coder", Kind: "claude", URL: "http://127.0.0.1:9000", State: "idle", Slots: 2}},
	}
	f.Server = httptest.NewServer(f.mux())
	t.Cleanup(f.Close)
	return f
}

func (f *fake) Close() {
	f.CloseClientConnections() // streams do not end by themselves
	f.Server.Close()
}

func (f *fake) mux() http.Handler {
	handlers := map[string]http.HandlerFunc{
		"submit": f.submit, "queue": f.queue, "task": f.task, "find": f.find, "cancel": f.cancel, "retry": f.retry, "why": f.why,
		"output": f.output, "pause": f.pause, "resume": f.resume, "history": f.history, "events": f.stream,
		"agents": func(w http.ResponseWriter, r *http.Request) { answer(w, 200, api.Agents{Agents: f.agents}) },
		"clearLane": func(w http.ResponseWriter, r *http.Request) {
			f.lane(w, r, api.LaneCleared{Agent: "coder", ClearedCount: 3})
		},
		"releaseLane": func(w http.ResponseWriter, r *http.Request) {
			f.lane(w, r, api.Released{Agent: "coder", WasRunning: true, QueueIDs: []string{id(9)}, Warning: "what it still reports is discarded"})
		},
		"healthz": func(w http.ResponseWriter, r *http.Request) { answer(w, 200, api.Health{Status: "ok"}) },
	}
	mux := http.NewServeMux()
	for _, route := range api.Routes() {
		handle := handlers[route.Name]
		if handle == nil {
			continue
		}
		mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			no, refused := f.refuse[route.Name]
			token := f.token
			f.mu.Unlock()
			switch {
			case token != "" && route.Scope != api.ScopePublic && r.Header.Get("Authorization") != "Bearer "+token:
				fail(w, 401, "unauthorized", "a token is required")
			case refused:
				answer(w, no.RetryAfter, no)
			default:
				handle(w, r)
			}
		})
	}
	return mux
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, api.Error{Error: code, Message: message})
}

// id is the id of the n-th task.
func id(n int) string { return fmt.Sprintf("queue-%026d", n) }

func (f *fake) find(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	part := r.PathValue("part")
	found := api.Found{QueueIDs: []string{}}
	for _, t := range f.tasks {
		if strings.HasPrefix(t.QueueID, part) || strings.HasSuffix(t.QueueID, part) {
			found.QueueIDs = append(found.QueueIDs, t.QueueID)
		}
	}
	answer(w, 200, found)
}

func (f *fake) submit(w http.ResponseWriter, r *http.Request) {
	var req api.SubmitRequest
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		fail(w, 400, "validation_error", err.Error())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	f.submits = append(f.submits, submitted{key, req})
	if old := f.keys[key]; old != "" {
		answer(w, 201, api.SubmitResponse{QueueID: old, State: "pending", Position: 1, Replayed: true})
		return
	}
	if f.waiting() >= f.max {
		fail(w, 503, "queue_full", fmt.Sprintf("Queue is at capacity (%d tasks)", f.max))
		return
	}
	t := f.add(req.Prompt)
	f.keys[key] = t.QueueID
	if f.loseNext > 0 {
		f.loseNext--
		panic(http.ErrAbortHandler)
	}
	answer(w, 201, api.SubmitResponse{QueueID: t.QueueID, State: t.State, Position: t.Position, Queue: t.Queue})
}

// add adds a pending task; f.mu is held.
func (f *fake) add(prompt string) *api.Task {
	preview, _, _ := strings.Cut(prompt, "\n")
	t := &api.Task{
		QueueID: id(len(f.tasks) + 1), State: "pending", Queue: "work", Position: f.waiting() + 1, CreatedAt: noon,
		Source: "cli", Prompt: prompt, PromptPreview: preview, MaxAttempts: 3, ETA: &api.ETA{LowSeconds: 180, HighSeconds: 540, Runs: 40},
	}
	f.tasks = append(f.tasks, t)
	f.note(t, "submit", "")
	return t
}

// seed adds tasks from a test.
func (f *fake) seed(prompts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range prompts {
		f.add(p)
	}
}

func (f *fake) waiting() int {
	n := 0
	for _, t := range f.tasks {
		if t.State == "pending" {
			n++
		}
	}
	return n
}

// note writes the journal; f.mu is held.
func (f *fake) note(t *api.Task, kind, message string) {
	seq := int64(len(f.events) + 1)
	f.events = append(f.events, api.Event{
		Seq: seq, At: noon.Add(time.Duration(seq) * time.Second), Kind: kind, QueueID: t.QueueID, State: t.State, Agent: t.Agent, Message: message,
	})
	f.poke()
}

// poke wakes whoever waits; f.mu is held.
func (f *fake) poke() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// set changes a task; f.mu is held.
func (f *fake) set(t *api.Task, kind, state string) {
	at := noon.Add(time.Duration(len(f.events)+1) * time.Second)
	t.State = state
	switch state {
	case "dispatching":
		t.Agent, t.Position, t.DispatchedAt = "coder", 0, &at
	case "working":
		t.StartedAt = &at
	case "pending":
	default:
		t.EndedAt = &at
	}
	f.note(t, kind, t.Message)
}

// change changes a task from a test.
func (f *fake) change(n int, kind, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(f.tasks[n-1], kind, state)
}

// end ends a task with an answer; f.mu is held.
func (f *fake) end(t *api.Task, state, reason, message, output string) {
	t.Reason, t.Message = reason, message
	t.Result = &api.Result{Output: output, DurationSeconds: 1}
	f.set(t, "finish", state)
}

// fate lets a task run its course; f.mu is held.
func (f *fake) fate(t *api.Task) {
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

// of returns the task of a request, having answered where there is none.
func (f *fake) of(w http.ResponseWriter, r *http.Request) *api.Task {
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
	t := f.of(w, r)
	if t == nil {
		return
	}
	if r.URL.Query().Get("wait") == "" {
		if f.heard[t.QueueID] && !f.looked[t.QueueID] {
			f.looked[t.QueueID] = true
			f.poke()
		}
		answer(w, 200, t)
		return
	}
	for !client.Ended(t.State) {
		if f.looked[t.QueueID] {
			f.fate(t)
		}
		if !client.Ended(t.State) && !f.wait(r) {
			return
		}
	}
	answer(w, 200, t)
}

// wait waits for a change; f.mu is held before and after.
func (f *fake) wait(r *http.Request) bool {
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
	f.heard[only] = true
	for {
		for ; at < len(f.events); at++ {
			e := f.events[at]
			if only == "" || e.QueueID == only {
				data, _ := json.Marshal(e)
				fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data)
			}
		}
		w.(http.Flusher).Flush()
		if !f.wait(r) {
			return
		}
	}
}

func (f *fake) queue(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := api.Queue{MaxSize: f.max, Tasks: []api.Task{}, Paused: f.paused, Depth: f.waiting()}
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
	t := f.of(w, r)
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
	t := f.of(w, r)
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
	answer(w, 201, api.SubmitResponse{QueueID: again.QueueID, State: "pending", Position: again.Position, RetryOf: t.QueueID})
}

func (f *fake) why(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.of(w, r); t != nil {
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

// output has the lines of a task's answer as its log.
func (f *fake) output(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.of(w, r)
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
		if !f.wait(r) {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = nil
	answer(w, 200, api.Paused{Paused: []api.Pause{}})
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

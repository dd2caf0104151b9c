package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// noon is the current time in all tests.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fake is a director that answers as the test wants. A task's prompt says how it
// runs: "echo X" completes with the result X; failed, cancelled, timeout and lost
// end that way; hang runs for ever; anything else stays pending. A task runs as soon
// as a client waits for it, has subscribed to its events and has then read it once,
// so that the client sees every state.
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

	refuse      map[string]api.Error // route → refusal, whose status is RetryAfter
	dropReplies int                  // how many replies to submit are lost
	submits     []submitted
	subscribed  map[string]bool // id → a client has subscribed to its events
	polled      map[string]bool // id → it was read after that

	calls  []string // tool calls, with their executions and bodies
	chats  []chatCall
	audit  []api.AuditRow
	users  []api.PutUser
	stored map[string]*api.Schedule
}

type submitted struct {
	key string
	req api.SubmitRequest
}

func newFake(t testing.TB) *fake {
	f := &fake{
		max: 50, changed: make(chan struct{}), keys: map[string]string{}, refuse: map[string]api.Error{},
		subscribed: map[string]bool{}, polled: map[string]bool{}, audit: auditChain(5), stored: map[string]*api.Schedule{},
		agents: []api.Agent{{Name: "coder", Kind: "claude", URL: "http://127.0.0.1:9000", State: "idle", Slots: 2}},
	}
	f.Server = httptest.NewServer(f.mux())
	t.Cleanup(f.Close)
	return f
}

func (f *fake) Close() {
	f.Listener.Close() // first, so that a client whose connection is closed cannot reconnect
	closed := make(chan struct{})
	go func() {
		f.Server.Close()
		close(closed)
	}()
	for {
		f.CloseClientConnections() // streams and long polls do not end by themselves
		select {
		case <-closed:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (f *fake) mux() http.Handler {
	handlers := map[string]http.HandlerFunc{
		"submit": f.submit, "queue": f.queue, "task": f.task, "find": f.find, "cancel": f.cancel, "retry": f.retry, "why": f.why,
		"output": f.output, "pause": f.pause, "resume": f.resume, "history": f.history, "events": f.stream,
		"agents": func(w http.ResponseWriter, r *http.Request) {
			answer(w, 200, api.Agents{Agents: f.agents, Executors: f.executors()})
		},
		"clearLane": func(w http.ResponseWriter, r *http.Request) {
			f.lane(w, r, api.LaneCleared{Agent: "coder", ClearedCount: 3})
		},
		"releaseLane": func(w http.ResponseWriter, r *http.Request) {
			f.lane(w, r, api.Released{Agent: "coder", WasRunning: true, QueueIDs: []string{id(9)}, Warning: "what it still reports is discarded"})
		},
		"status":  func(w http.ResponseWriter, r *http.Request) { answer(w, 200, api.Status{}) },
		"healthz": func(w http.ResponseWriter, r *http.Request) { answer(w, 200, api.Health{Status: "ok"}) },
	}
	maps.Copy(handlers, f.accessRoutes())
	maps.Copy(handlers, f.toolRoutes())
	maps.Copy(handlers, f.doctorRoutes())
	maps.Copy(handlers, f.scheduleRoutes())
	maps.Copy(handlers, f.searchRoutes())
	mux := http.NewServeMux()
	for _, route := range api.Routes() {
		handle := handlers[route.Name]
		if handle == nil {
			continue
		}
		mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			refusal, refused := f.refuse[route.Name]
			token := f.token
			f.mu.Unlock()
			switch {
			case token != "" && route.Scope != api.ScopePublic && r.Header.Get("Authorization") != "Bearer "+token:
				fail(w, 401, "unauthorized", "a token is required")
			case refused:
				answer(w, refusal.RetryAfter, refusal)
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
	if f.waiting("work") >= f.max {
		fail(w, 503, "queue_full", fmt.Sprintf("Queue is at capacity (%d tasks)", f.max))
		return
	}
	t := f.add(req.Prompt)
	f.keys[key] = t.QueueID
	if f.dropReplies > 0 {
		f.dropReplies--
		panic(http.ErrAbortHandler)
	}
	answer(w, 201, api.SubmitResponse{QueueID: t.QueueID, State: t.State, Position: t.Position, Queue: t.Queue})
}

// add adds a pending task; f.mu is held.
func (f *fake) add(prompt string) *api.Task {
	preview, _, _ := strings.Cut(prompt, "\n")
	t := &api.Task{
		QueueID: id(len(f.tasks) + 1), State: "pending", Queue: "work", Position: f.waiting("work") + 1, CreatedAt: noon,
		Source: "cli", Prompt: prompt, PromptPreview: preview, MaxAttempts: 3, ETA: &api.ETA{LowSeconds: 180, HighSeconds: 540, Runs: 40},
	}
	f.tasks = append(f.tasks, t)
	f.addEvent(t, "submit", "")
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

// waiting counts the pending tasks of a queue.
func (f *fake) waiting(queue string) int {
	n := 0
	for _, t := range f.tasks {
		if t.State == "pending" && t.Queue == queue {
			n++
		}
	}
	return n
}

// addEvent adds an event and wakes those who wait; f.mu is held.
func (f *fake) addEvent(t *api.Task, kind, message string) {
	seq := int64(len(f.events) + 1)
	f.events = append(f.events, api.Event{
		Seq: seq, At: noon.Add(time.Duration(seq) * time.Second), Kind: kind, QueueID: t.QueueID, State: t.State, Agent: t.Agent, Message: message,
	})
	f.broadcast()
}

// broadcast wakes everyone who waits for a change; f.mu is held.
func (f *fake) broadcast() {
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
		if t.Tool != "" {
			t.Agent = "commands@local"
		}
	case "working":
		t.StartedAt = &at
	case "pending":
	default:
		t.EndedAt = &at
	}
	f.addEvent(t, kind, t.Message)
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

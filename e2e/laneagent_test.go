package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// laneAgentEnv makes this test binary an agent that records its own starts and
// ends:
//
//	ADDR LOG fenced   understands fences: a higher one stops what runs, a lower one is refused
//	ADDR LOG plain    knows neither fences nor waits, and never says that it is busy:
//	                  whatever is offered runs, so an overlap in its log is the director's
const laneAgentEnv = "SIGNALBOX_E2E_LANE_AGENT"

// laneRun is an execution.
type laneRun struct {
	execLine
	state  string // working, completed, failed, cancelled
	key    string // part of the prompt: "run 5ms KEY"
	cause  string // error.type if it did not complete
	began  time.Time
	ended  time.Time
	done   chan struct{} // closed at its end
	cancel context.CancelFunc
}

type laneAgent struct {
	fenced bool
	log    *os.File

	mu      sync.Mutex
	runs    []*laneRun
	highest int64
	serial  int
}

// serveLaneAgent is the agent's program.
func serveLaneAgent(spec string) error {
	words := strings.Fields(spec)
	if len(words) != 3 {
		return fmt.Errorf("%s=%q: want ADDR LOG KIND", laneAgentEnv, spec)
	}
	a := &laneAgent{fenced: words[2] == "fenced"}
	if err := a.remember(words[1]); err != nil {
		return err
	}
	var l net.Listener
	var err error
	if !testkit.Within(5*time.Second, func() bool { // a connection of the killed process may still exist
		l, err = net.Listen("tcp", words[0])
		return err == nil
	}) {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /task", a.offer)
	mux.HandleFunc("GET /task/{id}", a.state)
	mux.HandleFunc("POST /task/{id}/cancel", a.stop)
	mux.HandleFunc("GET /status", a.status)
	mux.HandleFunc("GET /history", a.history)
	return http.Serve(l, mux)
}

// remember opens the log. An agent that understands fences reads from it what
// it did before it was killed; the runs of that time are interrupted.
func (a *laneAgent) remember(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	a.log = f
	byTask := map[string]*laneRun{}
	for s := bufio.NewScanner(f); a.fenced && s.Scan(); {
		var l laneLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return err
		}
		r := byTask[l.TaskID]
		if r == nil {
			r = &laneRun{execLine: l.execLine, key: l.Key, state: "failed", cause: "interrupted", began: l.At, done: make(chan struct{}), cancel: func() {}}
			close(r.done)
			byTask[l.TaskID] = r
			a.runs = append(a.runs, r)
			a.highest = max(a.highest, l.Fence)
		}
		if l.Event == "end" {
			r.state, r.cause, r.ended = l.State, l.Cause, l.At
		}
	}
	return nil
}

// laneLine is a line of its log.
type laneLine struct {
	execLine
	Key   string `json:"key,omitempty"`
	State string `json:"state,omitempty"`
	Cause string `json:"cause,omitempty"`
}

// write appends to the log; the caller holds mu, so that its order is that of
// events.
func (a *laneAgent) write(r *laneRun, event string) {
	line := laneLine{execLine: r.execLine, Key: r.key}
	line.Event, line.At, line.PID = event, time.Now(), os.Getpid()
	if event == "end" {
		line.State, line.Cause = r.state, r.cause
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = a.log.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err) // a log with gaps proves nothing
	}
}

var lanePrompt = regexp.MustCompile(`^run ([0-9a-z.µ]+) (\S+)$`)

func (a *laneAgent) offer(w http.ResponseWriter, r *http.Request) {
	var t api.AgentTask
	if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
		reply(w, http.StatusBadRequest, api.AgentRefusal{Error: "validation_error", Message: err.Error()})
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fenced {
		for _, run := range a.runs {
			if run.QueueID == t.QueueID && run.Fence == t.Fence {
				reply(w, http.StatusCreated, run.accepted())
				return
			}
		}
		if t.Fence <= a.highest {
			reply(w, http.StatusConflict, api.AgentRefusal{Error: "stale_fence", Message: "a higher fence was seen", HighestFence: a.highest})
			return
		}
		a.highest = t.Fence
		for _, run := range a.runs {
			a.end(run, "failed", "stale_fence")
		}
	}
	reply(w, http.StatusCreated, a.start(t).accepted())
}

func (run *laneRun) accepted() api.AgentTaskAccepted {
	return api.AgentTaskAccepted{TaskID: run.TaskID, Status: "working", QueueID: run.QueueID, Fence: run.Fence}
}

// start begins a run; the caller holds mu.
func (a *laneAgent) start(t api.AgentTask) *laneRun {
	a.serial++
	ctx, cancel := context.WithCancel(context.Background())
	run := &laneRun{state: "working", began: time.Now(), done: make(chan struct{}), cancel: cancel}
	run.execLine = execLine{QueueID: t.QueueID, Fence: t.Fence, Slot: t.Slot, TaskID: fmt.Sprintf("task-%d-%d", os.Getpid(), a.serial)}
	length := time.Millisecond
	if m := lanePrompt.FindStringSubmatch(t.Prompt); m != nil {
		length, _ = time.ParseDuration(m[1])
		run.key = m[2]
	}
	a.runs = append(a.runs, run)
	a.write(run, "start")
	go func() {
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
			a.mu.Lock()
			defer a.mu.Unlock()
			a.end(run, "completed", "")
		case <-ctx.Done():
		}
	}()
	return run
}

// end ends a run that has not ended; the caller holds mu.
func (a *laneAgent) end(run *laneRun, state, cause string) {
	if run.state != "working" {
		return
	}
	run.state, run.cause, run.ended = state, cause, time.Now()
	run.cancel()
	a.write(run, "end")
	close(run.done)
}

// find finds a run by its task ID or, if queue IDs are understood, the newest
// with that queue ID.
func (a *laneAgent) find(id string) *laneRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.runs) - 1; i >= 0; i-- {
		if run := a.runs[i]; run.TaskID == id || (a.fenced && run.QueueID == id) {
			return run
		}
	}
	return nil
}

func (a *laneAgent) state(w http.ResponseWriter, r *http.Request) {
	run := a.find(r.PathValue("id"))
	if run == nil {
		reply(w, http.StatusNotFound, api.AgentRefusal{Error: "not_found", Message: "never seen"})
		return
	}
	if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil && a.fenced {
		select {
		case <-run.done:
		case <-time.After(wait):
		case <-r.Context().Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	reply(w, http.StatusOK, a.told(run))
}

// told is the status of a run; the caller holds mu.
func (a *laneAgent) told(run *laneRun) api.AgentTaskStatus {
	s := api.AgentTaskStatus{TaskID: run.TaskID, State: run.state, StartedAt: &run.began}
	if a.fenced {
		s.QueueID, s.Fence = run.QueueID, run.Fence
	}
	switch {
	case run.state == "completed":
		s.Output = fmt.Sprintf("%s under fence %d", run.key, run.Fence)
	case run.cause != "":
		s.Error = &api.AgentError{Type: run.cause, Message: "it was stopped: " + run.cause}
	}
	if run.state != "working" && !run.ended.IsZero() {
		s.CompletedAt, s.DurationSeconds = &run.ended, run.ended.Sub(run.began).Seconds()
	}
	return s
}

func (a *laneAgent) stop(w http.ResponseWriter, r *http.Request) {
	run := a.find(r.PathValue("id"))
	if run == nil {
		reply(w, http.StatusNotFound, api.AgentRefusal{Error: "not_found", Message: "never seen"})
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if run.state != "working" {
		reply(w, http.StatusConflict, api.AgentRefusal{Error: "already_completed", Message: "it has ended", FinalState: run.state})
		return
	}
	a.end(run, "cancelled", "cancelled")
	reply(w, http.StatusOK, api.AgentCancelled{TaskID: run.TaskID, State: "cancelled", Message: "stopped"})
}

func (a *laneAgent) status(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := api.AgentStatus{Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"}, Version: "0", AgentKind: "fake", State: "idle"}
	for _, run := range a.runs {
		if run.state == "working" {
			c := api.AgentCurrentTask{ID: run.TaskID, StartedAt: run.began, PromptPreview: run.key}
			if a.fenced {
				c.QueueID, c.Fence, c.Slot = run.QueueID, run.Fence, run.Slot
			}
			s.CurrentTasks = append(s.CurrentTasks, c)
		}
	}
	if len(s.CurrentTasks) > 0 {
		s.State, s.CurrentTask = "working", &s.CurrentTasks[0]
	}
	if a.fenced {
		s.Slots, s.Fencing, s.LongPoll, s.HighestFence = 1, true, true, a.highest
	} else {
		s.CurrentTasks = nil
	}
	reply(w, http.StatusOK, s)
}

func (a *laneAgent) history(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := api.AgentHistory{Entries: []api.AgentTaskStatus{}, Page: 1, Limit: 100, TotalPages: 1}
	for i := len(a.runs) - 1; i >= 0 && len(h.Entries) < 100; i-- {
		if a.runs[i].state != "working" {
			h.Entries = append(h.Entries, a.told(a.runs[i]))
		}
	}
	h.Total = len(h.Entries)
	reply(w, http.StatusOK, h)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller may have disconnected
}

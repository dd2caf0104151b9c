package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Request is a kind of request to an agent.
type Request string

// The kinds of requests.
const (
	Offer    Request = "POST /task"
	Void     Request = "POST /task/{id}/void"
	State    Request = "GET /task/{id}"
	Output   Request = "GET /task/{id}/output"
	Patch    Request = "GET /task/{id}/patch"
	Cancel   Request = "POST /task/{id}/cancel"
	Status   Request = "GET /status"
	History  Request = "GET /history"
	Past     Request = "GET /history/{id}"
	Sessions Request = "GET /sessions"

	Workspaces Request = "GET /workspaces"
	Discard    Request = "DELETE /workspaces/{id}"
)

// Seen is a request that arrived.
type Seen struct {
	Kind   Request
	ID     string        // of the task in the path
	Task   api.AgentTask // Offer, Void
	Header http.Header
}

// String is a short form for messages of failed tests.
func (s Seen) String() string { return string(s.Kind) + " " + s.ID + s.Task.QueueID }

// Requests lists the requests of one kind; "" is all kinds.
func (a *Agent) Requests(kind Request) []Seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []Seen
	for _, s := range a.requests {
		if kind == "" || s.Kind == kind {
			list = append(list, s)
		}
	}
	return list
}

func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	for kind, answer := range map[Request]func(*Exchange){
		Offer: a.offer, Void: a.void, State: a.state, Output: a.output, Patch: a.patch, Cancel: a.cancel, Status: a.status, History: a.history, Past: a.past, Sessions: a.listSessions,
		Workspaces: unserved, Discard: unserved,
	} {
		mux.HandleFunc(string(kind), func(w http.ResponseWriter, r *http.Request) { a.serve(kind, answer, w, r) })
	}
	return mux
}

// unserved answers a request for a path that the agent does not have.
func unserved(x *Exchange) {
	x.Answer(http.StatusNotFound, api.AgentRefusal{Error: "not_found", Message: "there is no such path"})
}

// serve logs a request and answers it by the script, else by the default.
func (a *Agent) serve(kind Request, answer func(*Exchange), w http.ResponseWriter, r *http.Request) {
	x := &Exchange{Agent: a, W: w, R: r, Kind: kind, ID: r.PathValue("id"), answer: answer}
	if kind == Offer || kind == Void { // the fields of Void are also fields of Offer
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &x.Task)
	}
	a.mu.Lock()
	a.requests = append(a.requests, Seen{Kind: kind, ID: x.ID, Task: x.Task, Header: r.Header.Clone()})
	a.change()
	silent := a.silent
	a.mu.Unlock()
	if silent != nil {
		// A stopped process reads what was sent when it continues, even if the client no longer waits for the
		// answer.
		if kind == Offer {
			<-silent
		} else {
			select {
			case <-silent:
			case <-r.Context().Done():
				return
			}
		}
	}
	a.mu.Lock()
	step := a.habits[kind]
	if s := a.scripts[kind]; len(s) > 0 {
		step, a.scripts[kind] = s[0], s[1:]
	}
	closed := a.closed
	a.mu.Unlock()
	switch {
	case closed:
	case step != nil:
		step(x)
	case a.Token != "" && r.Header.Get("Authorization") != "Bearer "+a.Token:
		x.Answer(http.StatusUnauthorized, api.AgentRefusal{Error: "unauthorized", Message: "a token is needed"})
	default:
		answer(x)
	}
}

func (a *Agent) offer(x *Exchange) {
	a.mu.Lock()
	status, body := a.accept(x.Task)
	a.mu.Unlock()
	x.Answer(status, body)
}

// accept decides about an offer. mu is held.
func (a *Agent) accept(t api.AgentTask) (int, any) {
	if t.Isolated && (t.Slot < 0 || t.Slot >= a.Isolated) {
		return http.StatusConflict, api.AgentRefusal{Error: "agent_busy", Message: fmt.Sprintf("there is no slot %d for isolated runs", t.Slot)}
	}
	if a.Plain {
		t.Slot = 0
	} else if t.Fence > 0 {
		a.director = t.Director
		if e := a.find(t.QueueID); e != nil && e.Fence == t.Fence {
			return http.StatusCreated, accepted(e)
		}
		if top := a.fences[placeOf(t)]; t.Fence <= top {
			return http.StatusConflict, api.AgentRefusal{Error: "stale_fence", Message: "a higher fence was seen", HighestFence: top}
		}
		a.fences[placeOf(t)] = t.Fence
	}
	for _, e := range a.running() {
		switch {
		case e.place() != placeOf(t) || a.NeverBusy:
		case !a.Plain && e.Fence > 0:
			a.end(e, End{State: "failed", Error: &api.AgentError{Type: "stale_fence", Message: "a newer fence voided the run"}})
		default:
			c := a.current(e)
			return http.StatusConflict, api.AgentRefusal{Error: "agent_busy", Message: "the agent is busy", CurrentTask: &c}
		}
	}
	e := a.start(t)
	if a.Auto {
		a.end(e, End{Output: "done: " + t.Prompt})
	}
	if a.Plain {
		return http.StatusCreated, api.AgentTaskAccepted{TaskID: e.TaskID, SessionID: e.Answered, Status: "working"}
	}
	return http.StatusCreated, accepted(e)
}

// void promises not to accept an offer that has not arrived yet. A plain agent does not know this request.
func (a *Agent) void(x *Exchange) {
	if a.Plain {
		x.Answer(http.StatusNotFound, nil)
		return
	}
	a.mu.Lock()
	e, fence := a.find(x.ID), x.Task.Fence
	came := e != nil && e.Fence == fence
	if at := placeOf(x.Task); !came {
		a.fences[at] = max(a.fences[at], fence)
	}
	a.mu.Unlock()
	if came {
		x.Answer(http.StatusConflict, api.AgentRefusal{Error: "task_in_progress", Message: "it came"})
		return
	}
	x.Answer(http.StatusOK, api.AgentVoided{QueueID: x.ID, Fence: fence, Status: api.StatusVoid})
}

func placeOf(t api.AgentTask) place { return place{t.Isolated, t.Slot} }

// await waits until ok returns true, the wait of the request is over or the client is gone. ok is called with
// mu held.
func (x *Exchange) await(ok func() bool) {
	wait, _ := time.ParseDuration(x.R.URL.Query().Get("wait"))
	if x.Agent.Plain {
		wait = 0
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		x.Agent.mu.Lock()
		done, changed := ok(), x.Agent.changed
		x.Agent.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-over.C:
			return
		case <-x.R.Context().Done():
			return
		}
	}
}

// lookup returns the task of a request, or answers 404.
func (x *Exchange) lookup() *execution {
	a := x.Agent
	a.mu.Lock()
	e := a.find(x.ID)
	a.mu.Unlock()
	switch {
	case e != nil:
		return e
	case a.StrictIDs && !strings.HasPrefix(x.ID, "task-"):
		x.Answer(http.StatusBadRequest, api.AgentRefusal{Error: "validation_error", Message: "that is not an id of a task"})
	default:
		x.Answer(http.StatusNotFound, api.AgentRefusal{Error: "not_found", Message: "no such task"})
	}
	return nil
}

func (a *Agent) cancel(x *Exchange) {
	e := x.lookup()
	if e == nil {
		return
	}
	a.mu.Lock()
	was := e.State
	if e.End == 0 && !a.IgnoresCancel {
		a.end(e, End{State: "cancelled", Error: &api.AgentError{Type: "cancelled", Message: "cancelled while it ran"}})
	}
	now := e.State
	a.mu.Unlock()
	switch {
	case was != "working":
		x.Answer(http.StatusConflict, api.AgentRefusal{Error: "already_completed", Message: "it has ended", FinalState: was})
	case now == "working":
		x.Answer(http.StatusAccepted, api.AgentCancelled{TaskID: e.TaskID, State: "cancelling", Message: "it is being stopped"})
	default:
		x.Answer(http.StatusOK, api.AgentCancelled{TaskID: e.TaskID, State: now, Message: "it was cancelled"})
	}
}

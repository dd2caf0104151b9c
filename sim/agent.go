package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// agent is a simulated agent: all of its state, and what it answers. It has no
// goroutine. Its runs end by the clock, which it looks at whenever it is asked.
type agent struct {
	w        *world
	name     string
	sloppy   bool // never says busy: what is offered runs, whatever else does
	plain    bool // of the work-queue seed: no queue_id, no fence, no wait, one task at a time
	deaf     bool // answers a cancel with 202, and takes its time
	slots    int
	isolated int
	sessions bool
	pulls    bool         // it asks for its tasks: nobody can connect to it
	parked   atomic.Int32 // its claims that a director has in hand
	leaving  atomic.Int32 // its words that it stops
	lives    int

	down   bool      // refuses connections
	silent bool      // takes requests and answers nothing
	hung   time.Time // since when, if it does
	liar   bool      // says that it is idle, whatever it runs
	// told says that someone freed a slot of it without its word, or that it lied
	// or forgot: then another task may be offered while it is still at one.
	told bool

	director string
	runs     []*execution
	fences   map[place]int64
	talks    map[string]time.Time
	serial   int
	changed  chan struct{} // closed with each change that a long poll may wait for
}

// place is a slot; those of isolated runs are apart.
type place struct {
	isolated bool
	slot     int
}

// execution is one run of a task, as its agent knows it.
type execution struct {
	api.AgentTask
	taskID    string
	begun     time.Time
	until     time.Time // when it ends by itself
	state     string
	failure   *api.AgentError
	ended     time.Time
	forgotten bool
	late      bool // of an agent without fences: whoever sent it was told that it never came
	// Of one that pulls: its end is stored, somebody reports on it.
	reported, followed bool
}

func (e *execution) live() bool   { return e.state == "working" }
func (e *execution) place() place { return place{e.Isolated, e.Slot} }

// answer is an HTTP answer. A wait says that the agent holds the request for so
// long, unless something changes.
type answer struct {
	status int
	body   any
	wait   time.Duration
	wake   <-chan struct{}
}

func say(status int, body any) answer { return answer{status: status, body: body} }

func no(status int, code string) answer {
	return say(status, api.AgentRefusal{Error: code, Message: strings.ReplaceAll(code, "_", " ")})
}

// request is what came over the network.
type request struct {
	method, path string
	wait         time.Duration // what is left of it
	after        int
	task         api.AgentTask
	late         bool // it comes so late that its sender was told that it never came
}

// handle answers a request now.
func (a *agent) handle(r *request) answer {
	a.look()
	parts := strings.Split(strings.Trim(r.path, "/"), "/")
	switch {
	case r.path == "/task":
		return a.offer(r)
	case r.path == "/status":
		return say(http.StatusOK, a.status())
	case r.path == "/history":
		return say(http.StatusOK, a.history())
	case r.path == "/sessions" && a.sessions:
		return say(http.StatusOK, a.conversations())
	case parts[0] != "task" || len(parts) < 2:
		return no(http.StatusNotFound, "not_found")
	}
	e := a.find(parts[1])
	switch {
	case len(parts) == 3 && parts[2] == "void" && !a.plain:
		return a.void(e, parts[1], r.task)
	case e == nil:
		return no(http.StatusNotFound, "not_found")
	case len(parts) == 2:
		return a.hold(e, r, say(http.StatusOK, a.state(e)))
	case parts[2] == "cancel":
		return a.cancel(e)
	case parts[2] == "output" && !a.plain:
		text := a.output(e)
		after := min(r.after, len(text))
		o := api.AgentOutput{Seq: int64(after), Text: text[after:], Next: int64(len(text)), Done: !e.live()}
		return a.hold(e, r, say(http.StatusOK, o))
	}
	return no(http.StatusNotFound, "not_found")
}

// hold makes a request about a run that goes on wait.
func (a *agent) hold(e *execution, r *request, now answer) answer {
	if a.plain || !e.live() || r.wait <= 0 {
		return now
	}
	now.wait, now.wake = r.wait, a.changed
	if left := e.until.Sub(a.w.now()); left < now.wait {
		now.wait = max(left, time.Millisecond)
	}
	return now
}

// look ends the runs whose time has come.
func (a *agent) look() {
	for _, e := range a.runs {
		if e.live() && !a.w.now().Before(e.until) {
			state, failure := "completed", (*api.AgentError)(nil)
			if strings.HasSuffix(e.Prompt, "fails") {
				state, failure = "failed", &api.AgentError{Type: "claude_error", Message: "it broke"}
			}
			a.end(e, state, failure)
		}
	}
}

func (a *agent) end(e *execution, state string, failure *api.AgentError) {
	e.state, e.failure, e.ended = state, failure, a.w.now()
	a.change()
}

func (a *agent) change() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *agent) live() []*execution {
	var list []*execution
	for _, e := range a.runs {
		if e.live() && !e.forgotten {
			list = append(list, e)
		}
	}
	return list
}

func (a *agent) find(id string) *execution {
	for _, e := range slices.Backward(a.runs) {
		if !e.forgotten && (e.taskID == id || (!a.plain && e.QueueID == id)) {
			return e
		}
	}
	return nil
}

func (a *agent) limit(isolated bool) int {
	if isolated {
		return a.isolated
	}
	return a.slots
}

func (a *agent) start(r *request) *execution {
	t := r.task
	if len(a.live()) == 0 {
		a.told = a.liar // nothing is left of what was hidden
	}
	a.serial++
	now := a.w.now()
	e := &execution{
		AgentTask: t, taskID: fmt.Sprintf("task-%s-%08x", a.name, a.serial), state: "working", begun: now, late: a.plain && r.late,
		until: now.Add(a.w.runtime()),
	}
	if e.SessionID == "" && !e.Isolated {
		e.SessionID = "session-" + e.taskID
	}
	if !e.Isolated {
		a.talks[e.SessionID] = now
	}
	a.runs = append(a.runs, e)
	a.change()
	a.w.started(a, e)
	return e
}

func (a *agent) accepted(e *execution) api.AgentTaskAccepted {
	b := api.AgentTaskAccepted{TaskID: e.taskID, SessionID: e.SessionID, Status: "working"}
	if !a.plain {
		b.QueueID, b.Fence = e.QueueID, e.Fence
	}
	return b
}

func (a *agent) cancel(e *execution) answer {
	switch {
	case !e.live():
		return say(http.StatusConflict, api.AgentRefusal{Error: "already_completed", Message: "it has ended", FinalState: e.state})
	case a.deaf:
		e.until = minTime(e.until, a.w.now().Add(3*time.Second))
		return say(http.StatusAccepted, api.AgentCancelled{TaskID: e.taskID, State: "cancelling", Message: "it is being stopped"})
	}
	a.end(e, "cancelled", &api.AgentError{Type: "cancelled", Message: "cancelled while it ran"})
	return say(http.StatusOK, api.AgentCancelled{TaskID: e.taskID, State: "cancelled", Message: "it was cancelled"})
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// restart is the end of its process and the next one. What ran is interrupted;
// without memory it knows no task any more.
func (a *agent) restart(memory bool) {
	for _, e := range a.runs {
		if e.live() {
			a.end(e, "failed", &api.AgentError{Type: "interrupted", Message: "the agent was restarted"})
		}
		e.forgotten = e.forgotten || !memory
	}
	a.lives++
	if !memory {
		clear(a.talks)
	}
	a.down, a.silent = false, false
}

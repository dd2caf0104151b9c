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

// agent is a simulated agent with its state and answers. It has no goroutine: runs end by the
// clock, which is checked at every request.
type agent struct {
	w             *world
	name          string
	sloppy        bool // never answers busy: every offer runs
	plain         bool // of the work-queue seed: no queue_id, no fence, no wait, one task at a time
	cancelsSlowly bool // answers a cancel with 202 and ends later
	slots         int
	isolated      int
	sessions      bool
	pulls         bool         // claims its tasks: no director can connect to it
	heldClaims    atomic.Int32 // claims that a director holds
	goodbyes      atomic.Int32 // its notifications that it stops
	incarnation   int

	down       bool      // refuses connections
	silent     bool      // accepts requests and does not answer
	hung       time.Time // since when; zero: it is not hung
	claimsIdle bool      // reports idle, whatever it runs
	// A slot was freed without the agent's answer, or the agent lied or lost its memory: another task may be
	// offered while one runs.
	overlapAllowed bool

	login    *login     // that its runs spend; nil: it reports none
	answered *time.Time // when the provider last answered

	director string
	runs     []*execution
	fences   map[slot]int64
	talks    map[string]time.Time
	serial   int
	changed  chan struct{} // closed at each change that a long poll waits for
}

// slot identifies a slot; isolated runs have their own.
type slot struct {
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
	limit     *api.AgentLimit // that it met
	began     bool            // it did something before it met the limit
	ended     time.Time
	forgotten bool
	late      bool // of an agent without fences: the sender was told that the offer never arrived
	// of a pulling agent: its end is stored; a goroutine reports on it
	reported, followed bool
}

func (e *execution) live() bool { return e.state == "working" }
func (e *execution) slot() slot { return slot{e.Isolated, e.Slot} }

// answer is an HTTP answer. With a wait, the agent holds the request for that time, unless something changes.
type answer struct {
	status int
	body   any
	wait   time.Duration
	wake   <-chan struct{}
}

func respondJSON(status int, body any) answer { return answer{status: status, body: body} }

func no(status int, code string) answer {
	return respondJSON(status, api.AgentRefusal{Error: code, Message: strings.ReplaceAll(code, "_", " ")})
}

// request is a delivered request.
type request struct {
	method, path string
	wait         time.Duration // remaining long poll time
	after        int
	task         api.AgentTask
	late         bool // its sender was told that it never arrived
}

// handle answers a request now.
func (a *agent) handle(r *request) answer {
	a.endDueRuns()
	parts := strings.Split(strings.Trim(r.path, "/"), "/")
	switch {
	case r.path == "/task":
		return a.offer(r)
	case r.path == "/status":
		return respondJSON(http.StatusOK, a.status())
	case r.path == "/history":
		return respondJSON(http.StatusOK, a.history())
	case r.path == "/sessions" && a.sessions:
		return respondJSON(http.StatusOK, a.conversations())
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
		return a.hold(e, r, respondJSON(http.StatusOK, a.state(e)))
	case parts[2] == "cancel":
		return a.cancel(e)
	case parts[2] == "output" && !a.plain:
		text := a.output(e)
		after := min(r.after, len(text))
		o := api.AgentOutput{Seq: int64(after), Text: text[after:], Next: int64(len(text)), Done: !e.live()}
		return a.hold(e, r, respondJSON(http.StatusOK, o))
	}
	return no(http.StatusNotFound, "not_found")
}

// hold makes a long poll about a running task wait.
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

// endDueRuns ends the runs whose time is over.
func (a *agent) endDueRuns() {
	for _, e := range a.runs {
		if e.live() && !a.w.now().Before(e.until) {
			state, failure := "completed", (*api.AgentError)(nil)
			if kind, limit := a.meets(e); limit != nil {
				a.w.fault(kind)
				e.limit = limit
				state, failure = "failed", &api.AgentError{Type: kind, Message: limit.Text}
			} else if strings.HasSuffix(e.Prompt, "fails") {
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
		a.overlapAllowed = a.claimsIdle // nothing hidden is left
	}
	a.serial++
	now := a.w.now()
	e := &execution{
		AgentTask: t, taskID: fmt.Sprintf("task-%s-%08x", a.name, a.serial), state: "working", begun: now, late: a.plain && r.late,
		until: now.Add(a.w.runtime()),
	}
	e.began = t.Resume != nil && t.Resume.Began
	if a.login != nil && (a.login.refused || now.Before(a.login.resets)) {
		e.until = now.Add(a.w.between(time.Millisecond, 200*time.Millisecond))
	}
	if e.SessionID == "" && !e.Isolated {
		e.SessionID = "session-" + e.taskID
	}
	_, known := a.talks[e.SessionID]
	if !e.Isolated {
		a.talks[e.SessionID] = now
	}
	a.runs = append(a.runs, e)
	a.change()
	a.w.checkStart(a, e)
	if e.began && !known {
		a.w.fault("conversation gone")
		a.end(e, "failed", &api.AgentError{Type: "cannot_resume", Message: "the conversation is gone"})
	}
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
		return respondJSON(http.StatusConflict, api.AgentRefusal{Error: "already_completed", Message: "it has ended", FinalState: e.state})
	case a.cancelsSlowly:
		e.until = minTime(e.until, a.w.now().Add(3*time.Second))
		return respondJSON(http.StatusAccepted, api.AgentCancelled{TaskID: e.taskID, State: "cancelling", Message: "it is being stopped"})
	}
	a.end(e, "cancelled", &api.AgentError{Type: "cancelled", Message: "cancelled while it ran"})
	return respondJSON(http.StatusOK, api.AgentCancelled{TaskID: e.taskID, State: "cancelled", Message: "it was cancelled"})
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// restart restarts the process. Runs are interrupted; without memory it forgets all tasks.
func (a *agent) restart(memory bool) {
	for _, e := range a.runs {
		if e.live() {
			a.end(e, "failed", &api.AgentError{Type: "interrupted", Message: "the agent was restarted"})
		}
		e.forgotten = e.forgotten || !memory
	}
	a.incarnation++
	if !memory {
		clear(a.talks)
	}
	a.down, a.silent = false, false
}

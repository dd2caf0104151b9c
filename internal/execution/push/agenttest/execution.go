package agenttest

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Execution is one run of a task, as logged.
type Execution struct {
	TaskID  string
	QueueID string // "" if it did not come from a queue
	Fence   int64
	Slot    int
	// Isolated: Slot is one of the slots for isolated executions.
	Isolated bool
	Prompt   string
	Session  string // session that it was offered, or started
	Answered string // the agent's own id for the session
	// Start and End number the starts and ends of all executions of the agent, in order; End is 0 while it
	// runs.
	Start, End int
	State      string
	Begun      time.Time
	Resume     *api.AgentResume // as it was offered
	Budget     *api.Budget      // likewise
	Holds      []api.AgentHold  // likewise
	Checks     []api.TaskCheck  // likewise, this and below
	Retries    *int             //
}

// End is the final report of an execution.
type End struct {
	State  string // "" is "completed"
	Output string
	Error  *api.AgentError
	Exit   *int
	Limit  *api.AgentLimit // limit of its provider, with Error
	// Changes are what it changed in its repository. Patch is the whole patch; "" if it is that of Changes.
	Changes *api.Changes
	Patch   string
	Checks  *api.AgentChecks // results of its checks
}

// place is a slot; isolated slots are numbered separately.
type place struct {
	isolated bool
	slot     int
}

func (e *Execution) place() place { return place{e.Isolated, e.Slot} }

type execution struct {
	Execution
	printed   time.Time // zero: nothing yet
	ended     time.Time
	log       string
	note      string
	usd       float64
	result    End
	forgotten bool
}

// Executions lists all executions in the order of their starts.
func (a *Agent) Executions() []Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]Execution, len(a.execs))
	for i, e := range a.execs {
		list[i] = e.Execution
	}
	return list
}

// Finish ends an execution, named by queue_id or task_id. The test fails if it is not running.
func (a *Agent) Finish(id string, how End) {
	a.t.Helper()
	if !a.TryFinish(id, how) {
		a.t.Errorf("fake agent %s runs no task %s", a.Name, id)
	}
}

// TryFinish is Finish for an execution that may have ended meanwhile. It reports whether it was running.
func (a *Agent) TryFinish(id string, how End) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.execs {
		if e.End == 0 && (e.QueueID == id || e.TaskID == id) {
			a.end(e, how)
			return true
		}
	}
	return false
}

// Print appends to the log of a running task.
func (a *Agent) Print(id, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.execs {
		if e.End == 0 && (e.QueueID == id || e.TaskID == id) {
			e.log += text
			e.printed = a.now()
			a.change()
		}
	}
}

// Trouble prints a line and sets the problem that the agent reports for the execution; "": it is solved.
func (a *Agent) Trouble(id, note string) {
	a.mu.Lock()
	for _, e := range a.execs {
		if e.End == 0 && e.QueueID == id {
			e.note = note
		}
	}
	a.mu.Unlock()
	a.Print(id, "[trouble] "+note+"\n")
}

// Spend prints a line and sets what the execution has spent so far, in US dollars.
func (a *Agent) Spend(id string, usd float64) {
	a.mu.Lock()
	for _, e := range a.execs {
		if e.End == 0 && e.QueueID == id {
			e.usd = usd
		}
	}
	a.mu.Unlock()
	a.Print(id, fmt.Sprintf("[spent] %g\n", usd))
}

// RunForeign starts a run that came from no queue, like a direct call of the agent, and returns its id.
func (a *Agent) RunForeign(prompt string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.start(api.AgentTask{Prompt: prompt}).TaskID
}

// start starts and logs an execution. mu is held.
func (a *Agent) start(t api.AgentTask) *execution {
	a.serial++
	a.clock++
	e := &execution{}
	e.Execution = Execution{
		TaskID: fmt.Sprintf("task-%s-%08x", a.Name, a.serial), QueueID: t.QueueID, Fence: t.Fence, Slot: t.Slot,
		Isolated: t.Isolated, Prompt: t.Prompt, Session: t.SessionID, Start: a.clock, State: "working", Begun: a.now(), Resume: t.Resume, Budget: t.Budget, Holds: t.Holds,
		Checks: t.Checks, Retries: t.CheckRetries,
	}
	if a.Plain {
		e.Slot = 0
	}
	if e.Session == "" && !a.NoSession && !e.Isolated {
		e.Session = "session-" + e.TaskID
	}
	e.Answered = e.Session
	if a.Renames && e.Session != "" {
		e.Answered = "session-" + e.TaskID
	}
	if e.Answered != "" {
		a.sessions[e.Answered] = e.Begun
	}
	a.execs = append(a.execs, e)
	a.change()
	return e
}

// end ends an execution and logs it. mu is held.
func (a *Agent) end(e *execution, how End) {
	if e.End != 0 {
		return
	}
	if how.State == "" {
		how.State = "completed"
	}
	a.clock++
	e.End, e.State, e.result, e.ended = a.clock, how.State, how, a.now()
	a.change()
}

// running lists the running executions. mu is held.
func (a *Agent) running() []*execution {
	var list []*execution
	for _, e := range a.execs {
		if e.End == 0 && !e.forgotten {
			list = append(list, e)
		}
	}
	return list
}

// find returns an execution by task_id or, in a full agent, the newest one by fence of a queue_id. mu is
// held.
func (a *Agent) find(id string) *execution {
	for i := len(a.execs) - 1; i >= 0; i-- {
		e := a.execs[i]
		if !e.forgotten && (e.TaskID == id || (!a.Plain && e.QueueID == id)) {
			return e
		}
	}
	return nil
}

// Overlaps describes every pair of executions that shared a slot.
func (a *Agent) Overlaps() []string {
	var found []string
	list := a.Executions()
	for i, x := range list {
		for _, y := range list[i+1:] {
			if x.place() == y.place() && (x.End == 0 || x.End > y.Start) {
				found = append(found, fmt.Sprintf("%s (fence %d) began on slot %d of %s while %s (fence %d) ran",
					y.QueueID, y.Fence, y.Slot, a.Name, x.QueueID, x.Fence))
			}
		}
	}
	return found
}

// SetSessions replaces its sessions, as if its disk had been cleared or someone had called it directly.
func (a *Agent) SetSessions(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.sessions)
	for _, id := range ids {
		a.sessions[id] = a.now()
	}
}

package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox/api"
)

// Status, history and task views of an agent.

// output is the answer of a run: it names the execution, so that a mix-up is detected.
func (e *execution) output() string { return fmt.Sprintf("%s under fence %d", e.Prompt, e.Fence) }

func (a *agent) output(e *execution) string {
	if e.live() {
		return "begun\n"
	}
	return "begun\nended\n"
}

func (a *agent) state(e *execution) api.AgentTaskStatus {
	begun := e.begun
	s := api.AgentTaskStatus{TaskID: e.taskID, State: e.state, SessionID: e.SessionID, StartedAt: &begun, Error: e.failure, Limit: e.limit, Account: a.account()}
	if !e.live() {
		ended := e.ended
		s.Output, s.CompletedAt, s.DurationSeconds = e.output(), &ended, ended.Sub(begun).Seconds()
	}
	if !a.plain {
		s.QueueID, s.Fence, s.OutputSeq = e.QueueID, e.Fence, int64(len(a.output(e)))
	}
	return s
}

func (a *agent) current(e *execution) api.AgentCurrentTask {
	c := api.AgentCurrentTask{ID: e.taskID, StartedAt: e.begun, PromptPreview: e.Prompt}
	if !a.plain {
		c.QueueID, c.Fence, c.Slot, c.Isolated = e.QueueID, e.Fence, e.Slot, e.Isolated
	}
	return c
}

func (a *agent) status() api.AgentStatus {
	s := api.AgentStatus{
		Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"}, Version: "0", AgentKind: "demo", State: "idle",
		Sessions: a.sessions, IsolatedSlots: a.isolated,
	}
	if !a.plain {
		s.Name, s.Slots, s.Fencing, s.LongPoll, s.Director = a.name, a.slots, true, true, a.director
		s.Account = a.account()
		for _, f := range a.fences {
			s.HighestFence = max(s.HighestFence, f)
		}
	}
	if live := a.live(); len(live) > 0 && !a.claimsIdle {
		s.State = "working"
		c := a.current(live[0])
		s.CurrentTask = &c
		for _, e := range live {
			if !a.plain {
				s.CurrentTasks = append(s.CurrentTasks, a.current(e))
			}
		}
	}
	return s
}

// pastRun is a run in the history, with its prompt.
type pastRun struct {
	api.AgentTaskStatus
	PromptPreview string `json:"prompt_preview"`
}

type pastRuns struct {
	Entries []pastRun `json:"entries"`
}

func (a *agent) history() pastRuns {
	h := pastRuns{Entries: []pastRun{}}
	for _, e := range slices.Backward(a.runs) {
		if !e.live() && !e.forgotten {
			h.Entries = append(h.Entries, pastRun{a.state(e), e.Prompt})
		}
	}
	return h
}

func (a *agent) conversations() api.AgentSessions {
	list := api.AgentSessions{Sessions: []api.AgentSession{}}
	for _, id := range slices.Sorted(maps.Keys(a.talks)) {
		list.Sessions = append(list.Sessions, api.AgentSession{SessionID: id, LastUsed: a.talks[id]})
	}
	return list
}

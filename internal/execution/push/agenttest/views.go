package agenttest

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

func accepted(e *execution) api.AgentTaskAccepted {
	return api.AgentTaskAccepted{TaskID: e.TaskID, SessionID: e.Answered, Status: "working", QueueID: e.QueueID, Fence: e.Fence}
}

func (a *Agent) state(x *Exchange) {
	e := x.lookup()
	if e == nil {
		return
	}
	x.await(func() bool { return e.End != 0 || e.forgotten })
	if e = x.lookup(); e == nil { // it was forgotten meanwhile
		return
	}
	a.mu.Lock()
	s := a.taskStatus(e)
	a.mu.Unlock()
	x.Answer(http.StatusOK, s)
}

func (a *Agent) taskStatus(e *execution) api.AgentTaskStatus {
	begun := e.Begun
	s := api.AgentTaskStatus{
		TaskID: e.TaskID, State: e.State, Output: e.log, SessionID: e.Answered, StartedAt: &begun, Error: e.result.Error, Limit: e.result.Limit, Account: a.account(), ExitCode: e.result.Exit, CostUSD: e.usd,
	}
	if e.End != 0 {
		ended := e.ended
		s.CompletedAt, s.DurationSeconds = &ended, ended.Sub(begun).Seconds()
		if e.result.Output != "" {
			s.Output = e.result.Output
		}
	}
	if !a.Plain {
		s.Changes, s.Checks = e.result.Changes, e.result.Checks
		s.QueueID, s.Fence, s.OutputSeq = e.QueueID, e.Fence, int64(len(e.log))
	}
	return s
}

// account is what the agent reports about its account. mu is held.
func (a *Agent) account() *api.AgentAccount {
	if a.Account == "" {
		return nil
	}
	return &api.AgentAccount{Name: a.Account, Login: "test login", Windows: a.Windows, AnsweredAt: a.answered}
}

// ProviderAnswers makes the agent report that its provider has just answered a request.
func (a *Agent) ProviderAnswers() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.answered = &now
}

func (a *Agent) output(x *Exchange) {
	if a.Plain || a.NoOutput {
		x.Answer(http.StatusNotFound, nil)
		return
	}
	e := x.lookup()
	if e == nil {
		return
	}
	after, _ := strconv.Atoi(x.R.URL.Query().Get("after"))
	x.await(func() bool { return e.End != 0 || len(e.log) > after || e.forgotten })
	if e = x.lookup(); e == nil {
		return
	}
	a.mu.Lock()
	after = min(after, len(e.log))
	o := api.AgentOutput{Seq: int64(after), Text: e.log[after:], Next: int64(len(e.log)), Done: e.End != 0, Note: e.note, Account: a.account(), CostUSD: e.usd}
	a.mu.Unlock()
	x.Answer(http.StatusOK, o)
}

func (a *Agent) patch(x *Exchange) {
	e := x.lookup()
	if e == nil {
		return
	}
	a.mu.Lock()
	changes, patch := e.result.Changes, e.result.Patch
	a.mu.Unlock()
	if changes == nil {
		x.Answer(http.StatusNotFound, api.AgentRefusal{Error: "not_found", Message: "it changed nothing"})
		return
	}
	_, _ = x.W.Write([]byte(cmp.Or(patch, changes.Patch))) // the client may be gone
}

func (a *Agent) current(e *execution) api.AgentCurrentTask {
	c := api.AgentCurrentTask{ID: e.TaskID, StartedAt: e.Begun, PromptPreview: a.preview(e)}
	if a.Plain && a.Preview < 0 {
		c.StartedAt = time.Time{}
	}
	if !a.Plain {
		c.QueueID, c.Fence, c.Slot, c.Isolated, c.Note = e.QueueID, e.Fence, e.Slot, e.Isolated, e.note
		if !a.NoLastOutput && !e.printed.IsZero() {
			printed := e.printed
			c.LastProgressAt = &printed
		}
	}
	return c
}

func (a *Agent) status(x *Exchange) {
	a.mu.Lock()
	s := api.AgentStatus{
		Type: "agent", Interfaces: []string{"statusable", "observable", "taskable"}, Version: "0", AgentKind: a.Kind, State: "idle",
	}
	running := a.running()
	if len(running) > 0 {
		s.State = "working"
		c := a.current(running[0])
		s.CurrentTask = &c
	}
	s.IsolatedSlots, s.Sessions, s.Account = a.Isolated, a.Sessions, a.account()
	if !a.Plain {
		s.Name, s.Slots, s.Fencing, s.LongPoll, s.Director = a.Name, a.Slots, true, true, a.director
		s.Progress, s.Full = !a.NoLastOutput, a.Full
		if a.Folder != "" {
			s.FolderID, s.WorkDir = a.Folder, "/src/shop"
		}
		for _, f := range a.fences {
			s.HighestFence = max(s.HighestFence, f)
		}
		for _, e := range running {
			s.CurrentTasks = append(s.CurrentTasks, a.current(e))
		}
	}
	a.mu.Unlock()
	x.Answer(http.StatusOK, s)
}

// preview is the part of a prompt that the agent shows, cut at a byte and not at a rune.
func (a *Agent) preview(e *execution) string {
	switch {
	case a.Plain && a.Preview < 0:
		return ""
	case a.Plain && len(e.Prompt) > a.Preview:
		return e.Prompt[:a.Preview] + "..."
	}
	return e.Prompt
}

// pastTask is a run in the history. A plain agent's list has no answers and shows only the beginning of the
// prompts.
type pastTask struct {
	api.AgentTaskStatus
	Prompt        string `json:"prompt,omitempty"`
	PromptPreview string `json:"prompt_preview,omitempty"`
}

func (a *Agent) history(x *Exchange) {
	if a.NoHistory {
		x.Answer(http.StatusNotFound, nil)
		return
	}
	a.mu.Lock()
	h := struct {
		api.AgentHistory
		Entries []pastTask `json:"entries"`
	}{Entries: []pastTask{}}
	for i := len(a.execs) - 1; i >= 0; i-- {
		if e := a.execs[i]; e.End != 0 && !e.forgotten {
			p := pastTask{AgentTaskStatus: a.taskStatus(e), PromptPreview: a.preview(e)}
			if a.Plain {
				p.Output = ""
			}
			h.Entries = append(h.Entries, p)
		}
	}
	h.Page, h.Limit, h.Total, h.TotalPages = 1, 100, len(h.Entries), 1
	a.mu.Unlock()
	x.Answer(http.StatusOK, h)
}

// past answers with one run of the history, with its answer and its whole prompt.
func (a *Agent) past(x *Exchange) {
	e := x.lookup()
	if e == nil {
		return
	}
	a.mu.Lock()
	over, whole := e.End != 0, pastTask{a.taskStatus(e), e.Prompt, a.preview(e)}
	a.mu.Unlock()
	if !over || a.NoHistory {
		x.Answer(http.StatusNotFound, nil)
		return
	}
	x.Answer(http.StatusOK, whole)
}

func (a *Agent) listSessions(x *Exchange) {
	if !a.Options.Sessions {
		x.Answer(http.StatusNotFound, api.AgentRefusal{Error: "not_found", Message: "it lists no conversations"})
		return
	}
	a.mu.Lock()
	list := api.AgentSessions{Sessions: []api.AgentSession{}}
	for id, used := range a.sessions {
		list.Sessions = append(list.Sessions, api.AgentSession{SessionID: id, LastUsed: used})
	}
	a.mu.Unlock()
	x.Answer(http.StatusOK, list)
}

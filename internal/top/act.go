package top

import (
	"cmp"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// question is asked before a change.
type question struct {
	title string
	lines []string
	word  string // the word that confirms it; "": y does
	typed string
	wrong bool // another word was typed
	do    tea.Cmd
}

// answer is the outcome of a change.
type answer struct {
	text string
	bad  bool
	open string // ID of a task to open; "": none
}

func (m *model) answered(a answer) tea.Cmd {
	if a.bad {
		m.complain("%s", a.text)
	} else {
		m.say("%s", a.text)
	}
	if m.detail != nil {
		m.detail.asked = m.detail.asked.Add(-detailEvery) // refresh it now
	}
	if a.open != "" {
		return m.openTask(a.open, tabAuto)
	}
	return nil
}

func failed(what string, err error) answer {
	return answer{text: fmt.Sprintf("%s: %v", what, err), bad: true}
}

func cancelConsequence(t api.LiveTask) string {
	switch t.State {
	case "pending":
		return "It has not started."
	case "parked":
		return "It is parked, and will not go on."
	case "cancelling":
		return "It is being cancelled already; R on its agent frees the slot."
	}
	return "It runs on " + plain(t.Agent) + "; what it has done so far stays."
}

func (m *model) cancelTask(id string) tea.Cmd {
	return func() tea.Msg {
		got, err := m.o.Director.Cancel(m.ctx, id)
		switch {
		case err != nil:
			return failed("Not cancelled", err)
		case client.Ended(got.State) && got.State != "cancelled":
			return answer{text: short(id) + " ended before it could be cancelled: " + got.State, bad: true}
		case got.State == "cancelled":
			return answer{text: "Cancelled: " + short(id)}
		}
		return answer{text: "Cancelling " + short(id) + ": its agent has not confirmed yet. If it does not, R frees the slot."}
	}
}

func (m *model) retryTask(id string) tea.Cmd {
	inDetail := m.inDetail()
	return func() tea.Msg {
		got, err := m.o.Director.Retry(m.ctx, id, api.RetryRequest{}, client.SubmitOptions{})
		if err != nil {
			return failed("Not submitted", err)
		}
		a := answer{text: fmt.Sprintf("Queued: %s (position %d)", short(got.QueueID), got.Position)}
		if inDetail {
			a.open = got.QueueID
		}
		return a
	}
}

// toTop moves the selected task to the front of its queue.
func (m *model) toTop() tea.Cmd {
	t, ok := m.pickedTask()
	switch {
	case !ok:
		m.complain("Select a task first.")
		return nil
	case t.State != "pending":
		m.complain("%s is not waiting: it is %s.", short(t.QueueID), cmp.Or(t.State, "not known yet"))
		return nil
	}
	return func() tea.Msg {
		now, err := m.o.Director.Task(m.ctx, t.QueueID)
		if err == nil {
			now, err = m.o.Director.Edit(m.ctx, t.QueueID, api.EditRequest{Revision: now.Revision, Place: "top"})
		}
		if err != nil {
			return failed("Not moved", err)
		}
		return answer{text: fmt.Sprintf("Moved: %s (position %d in %s)", short(now.QueueID), now.Position, now.Queue)}
	}
}

// togglePause asks how to pause the selected agent or queue, or resumes it if it is
// paused.
func (m *model) togglePause() tea.Cmd {
	queue, pause := "", (*api.Pause)(nil)
	if a, ok := m.pickedAgent(); ok {
		queue, pause = "agent:"+a.Name, a.Pause
	} else if q, ok := m.pickedQueue(); ok {
		queue, pause = q.Name, q.Pause
	} else {
		m.complain("Select an agent or a queue first.")
		return nil
	}
	if pause != nil && pause.Queue != queue {
		m.complain("%s is paused by a pause of %s: signalbox resume %s ends it.", queue, allQueues(pause.Queue), pause.Queue)
		return nil
	}
	if pause == nil {
		m.askPause(queue)
		return nil
	}
	return func() tea.Msg {
		if _, err := m.o.Director.Resume(m.ctx, queue); err != nil {
			return failed("Not resumed", err)
		}
		return answer{text: "Resumed: " + queue}
	}
}

func allQueues(queue string) string {
	if queue == "" {
		return "all queues"
	}
	return queue
}

// releaseConsequences lists what a release will do.
func releaseConsequences(a api.LiveAgent) []string {
	lines := []string{"It frees the slots of " + plain(a.Name) + ":"}
	for _, t := range a.Current {
		lines = append(lines, "  "+short(t.QueueID)+" "+plain(t.PromptPreview)+" ends as failed (released)")
	}
	lines = append(lines, "Later output and reports are discarded.")
	if a.Pause != nil {
		return append(lines, "No task starts next: "+plain(a.Name)+" is paused.")
	}
	if len(a.Line) > 0 {
		return append(lines, "Next to start: "+short(a.Line[0].QueueID)+" "+plain(a.Line[0].PromptPreview))
	}
	return append(lines, "Nothing waits for it.")
}

func (m *model) releaseAgent(name string) tea.Cmd {
	return func() tea.Msg {
		got, err := m.o.Director.ReleaseLane(m.ctx, name)
		if err != nil {
			return failed("Not released", err)
		}
		return answer{text: joined(" ", "Released: "+name, "("+plural(len(got.QueueIDs), "task", "tasks")+")", got.Warning)}
	}
}

// searchRows is how many tasks a search shows. To see others, narrow the query.
const searchRows = 500

// searched is the answer to a search.
type searched struct {
	query string
	got   api.Search
	err   error
}

// find searches for the tasks that match a query; "" matches all.
func (m *model) find(query string) tea.Cmd {
	m.search = search{query: query}
	m.picks[pageTasks], m.tops[pageTasks] = pick{}, 0
	return m.ask()
}

func (m *model) ask() tea.Cmd {
	query := m.search.query
	m.search.asking, m.search.asked, m.search.revision = true, m.o.Now(), m.board.Revision
	return func() tea.Msg {
		got, err := m.o.Director.Search(m.ctx, query, client.SearchOptions{Limit: searchRows})
		return searched{query, got, err}
	}
}

// refreshSearch repeats the search when the board has changed, at most once a
// second.
func (m *model) refreshSearch() tea.Cmd {
	s := &m.search
	if s.asking || m.o.Now().Sub(s.asked) < tick*2 || s.revision == m.board.Revision && s.result != nil {
		return nil
	}
	return m.ask()
}

func (m *model) found(s searched) {
	if s.query != m.search.query {
		return // the answer is for an older query
	}
	m.search.asking, m.search.err = false, ""
	if s.err != nil {
		m.search.err = plain(s.err.Error())
	} else {
		m.search.result = &s.got
	}
	m.keepPicks()
}

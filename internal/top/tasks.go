package top

import (
	"fmt"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// taskRows are the tasks that match the search, as they are now; until its
// first answer is there, those that the stream knows.
func (m *model) taskRows() []api.LiveTask {
	if m.search.result == nil {
		if m.search.query != "" {
			return nil
		}
		return append(m.board.live(), m.board.ended...)
	}
	rows := make([]api.LiveTask, len(m.search.result.Tasks))
	for i, t := range m.search.result.Tasks {
		if now, ok := m.board.task(t.QueueID); ok && newer(now, t) {
			t = now
		}
		rows[i] = t
	}
	return rows
}

// newer reports whether the stream knows a task better than an answer does:
// nothing ended begins anew.
func newer(live, found api.LiveTask) bool {
	return !client.Ended(found.State) || client.Ended(live.State)
}

// taskLines is a table of tasks.
func (m *model) taskLines() []string {
	head := "All tasks"
	if m.search.query != "" {
		head = "Search: " + plain(m.search.query)
	}
	switch r := m.search.result; {
	case m.search.err != "":
		head = m.st.bad.Render("✗ " + m.search.err)
	case r != nil && r.Approximate:
		head += fmt.Sprintf(" · more than %d", r.Total)
	case r != nil && r.Total > len(r.Tasks):
		head += fmt.Sprintf(" · the first %d of %d", len(r.Tasks), r.Total)
	case r != nil:
		head += fmt.Sprintf(" · %s", plural(r.Total, "task", "tasks"))
	case m.search.asking:
		head += " · searching …"
	}
	rows := m.taskRows()
	if len(rows) == 0 {
		if m.search.err != "" {
			return wrap(head, m.width)
		}
		if m.search.asking {
			return []string{head}
		}
		return []string{head, "", "  No tasks. Submit one: " + m.st.bold.Render(`signalbox submit --wait "say hello"`)}
	}
	lines, at := make([]string, 0, len(rows)), 0
	for i := range rows {
		if rows[i].QueueID == m.picks[pageTasks].row {
			at = i
		}
	}
	height := m.bodyHeight()
	for i := range rows {
		if i < at-2*height || i > at+2*height {
			lines = append(lines, "") // never shown
			continue
		}
		lines = append(lines, m.taskRow(&rows[i], i == at))
	}
	return append([]string{head}, m.window(append(lines, ""), at, at+1)...)
}

func (m *model) taskRow(t *api.LiveTask, chosen bool) string {
	look := m.st.state(t.State)
	where := plain(t.Agent)
	if where == "" {
		where = plain(t.Queue)
	}
	if t.Tool != "" {
		where = plain(t.Tool)
	}
	row := fit(short(t.QueueID), 6) + " " + look.style.Render(look.sign+" "+fit(t.State, 11)) + " " + fit(where, 14) + " " + fit(m.ageText(t), 8) + " "
	text := plain(t.PromptPreview)
	if t.State == "failed" || t.State == "timeout" {
		text = joined(": ", m.st.bad.Render(plain(t.Reason)), text)
	}
	if chosen {
		return m.st.bold.Render("▸ ") + row + m.st.bold.Render(text)
	}
	return "  " + row + text
}

// ageText is how long a task waits or runs, or how long ago it ended.
func (m *model) ageText(t *api.LiveTask) string {
	switch {
	case t.EndedAt != nil:
		return m.since(*t.EndedAt)
	case t.StartedAt != nil:
		return m.since(*t.StartedAt)
	}
	return m.since(t.CreatedAt)
}

package top

import (
	"fmt"
	"slices"

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

// facts are the lines that say what a task is and how it stands.
func (m *model) facts() []string {
	d, t := m.detail, m.detailTask()
	look := m.st.state(t.State)
	lines := []string{joined("  ", m.st.bold.Render(plain(t.QueueID)), look.style.Render(joined(" ", look.sign, t.State)), plain(t.PromptPreview))}
	if d.err != "" {
		lines = append(lines, m.st.bad.Render("✗ "+d.err))
	}
	if t.State == "" {
		return append(lines, m.st.dim.Render("asking the director …"))
	}
	lines = append(lines, joined(" · ", m.place(&t), whose(&t), m.times(&t)))
	if a, ok := m.board.agent(t.Agent); ok && t.State != "pending" && !client.Ended(t.State) {
		lines = append(lines, m.blockMeta(&a, &t))
	}
	if said := joined(": ", plain(t.Reason), plain(t.Message)); said != "" {
		lines = append(lines, look.style.Render(said))
	}
	if d.task != nil && d.task.LastError != "" {
		lines = append(lines, m.st.warn.Render("last error: "+plain(d.task.LastError)))
	}
	return lines
}

// place is where a task is.
func (m *model) place(t *api.LiveTask) string {
	attempts := ""
	if d := m.detail.task; d != nil && d.Attempts > 0 {
		attempts = plural(d.Attempts, "attempt", "attempts") + " failed"
	}
	if t.Agent != "" {
		return joined(" · ", "agent "+plain(t.Agent), attempts)
	}
	where := "queue " + plain(t.Queue)
	if t.Position > 0 {
		where += fmt.Sprintf(", position %d", t.Position)
	}
	return joined(" · ", where, attempts)
}

func (m *model) times(t *api.LiveTask) string {
	said := "submitted " + m.since(t.CreatedAt) + " ago"
	if t.StartedAt != nil && t.EndedAt == nil {
		said += ", started " + m.since(*t.StartedAt) + " ago"
	}
	if t.EndedAt != nil {
		said += ", ended " + m.since(*t.EndedAt) + " ago"
		if t.StartedAt != nil {
			said += " after " + ago(t.EndedAt.Sub(*t.StartedAt))
		}
	}
	return said
}

// lane is a row of the page Lanes: an agent or a queue that none owns.
type lane struct {
	key   string
	agent *api.LiveAgent // nil: a queue
	queue *api.LiveQueue
	tasks []api.LiveTask // what runs, then what waits
}

// lanes are the agents, then the queues in which anything waits or that are
// paused.
func (m *model) lanes() []lane {
	var out []lane
	for i := range m.board.Agents {
		a := &m.board.Agents[i]
		out = append(out, lane{key: "agent:" + a.Name, agent: a, tasks: slices.Concat(a.Current, a.Line)})
	}
	for i := range m.board.Queues {
		q := &m.board.Queues[i]
		if q.Waiting > 0 || q.Pause != nil {
			out = append(out, lane{key: "queue:" + q.Name, queue: q, tasks: q.Line})
		}
	}
	return out
}

// rows are the keys of a page's rows, in order.
func (m *model) rows() []string {
	var keys []string
	switch m.page {
	case pageLanes:
		for _, l := range m.lanes() {
			keys = append(keys, l.key)
		}
	case pageCapacity:
		for i := range m.board.Capacity {
			keys = append(keys, m.board.Capacity[i].Name)
		}
	case pageTasks:
		for _, t := range m.taskRows() {
			keys = append(keys, t.QueueID)
		}
	}
	return keys
}

// move selects a row so many further.
func (m *model) move(by int) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	at := max(0, slices.Index(rows, m.picks[m.page].row))
	m.picks[m.page] = pick{row: rows[min(max(0, at+by), len(rows)-1)]}
	m.keepPicks()
}

// moveAside selects another task of the lane.
func (m *model) moveAside(by int) {
	l, ok := m.pickedLane()
	if m.page != pageLanes || !ok || len(l.tasks) == 0 {
		return
	}
	at := max(0, indexOf(l.tasks, m.picks[pageLanes].id))
	m.picks[pageLanes].id = l.tasks[min(max(0, at+by), len(l.tasks)-1)].QueueID
}

func indexOf(tasks []api.LiveTask, id string) int {
	return slices.IndexFunc(tasks, func(t api.LiveTask) bool { return t.QueueID == id })
}

// keepPicks moves the selection to what is there: where the selected row is
// gone to the first one, where the selected task has left its lane to the
// first of that.
func (m *model) keepPicks() {
	p, rows := &m.picks[m.page], m.rows()
	if !slices.Contains(rows, p.row) {
		*p = pick{}
		if len(rows) > 0 {
			p.row = rows[0]
		}
	}
	if m.page != pageLanes {
		return
	}
	if l, ok := m.pickedLane(); ok && indexOf(l.tasks, p.id) < 0 {
		p.id = ""
		if len(l.tasks) > 0 {
			p.id = l.tasks[0].QueueID
		}
	}
}

func (m *model) pickedLane() (lane, bool) {
	all := m.lanes()
	at := slices.IndexFunc(all, func(l lane) bool { return l.key == m.picks[pageLanes].row })
	if at < 0 {
		return lane{}, false
	}
	return all[at], true
}

// pickedTask is the task that keys are for: that of the detail, else the
// selected one.
func (m *model) pickedTask() (api.LiveTask, bool) {
	if m.detail != nil {
		return m.detailTask(), true
	}
	switch m.page {
	case pageLanes:
		return m.board.task(m.picks[pageLanes].id)
	case pageTasks:
		rows := m.taskRows()
		if at := indexOf(rows, m.picks[pageTasks].row); at >= 0 {
			return rows[at], true
		}
	}
	return api.LiveTask{}, false
}

// pickedAgent is the agent that keys are for: that of the task in the detail
// or the list, or of the lane.
func (m *model) pickedAgent() (api.LiveAgent, bool) {
	if m.detail == nil && m.page == pageLanes {
		if l, ok := m.pickedLane(); ok && l.agent != nil {
			return *l.agent, true
		}
		return api.LiveAgent{}, false
	}
	t, ok := m.pickedTask()
	if !ok {
		return api.LiveAgent{}, false
	}
	return m.board.agent(t.Agent)
}

func (m *model) pickedQueue() (api.LiveQueue, bool) {
	if l, ok := m.pickedLane(); m.detail == nil && m.page == pageLanes && ok && l.queue != nil {
		return *l.queue, true
	}
	return api.LiveQueue{}, false
}

// window cuts the lines of a page to the height of its body, so that those of
// the selected row, from first to last, are shown.
func (m *model) window(lines []string, first, last int) []string {
	height, top := m.bodyHeight(), m.tops[m.page]
	if last >= top+height {
		top = last - height + 1
	}
	top = max(0, min(top, first, len(lines)-1))
	if len(lines) <= height {
		top = 0
	}
	m.tops[m.page] = top
	return lines[top:min(len(lines), top+height)]
}

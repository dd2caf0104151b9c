package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// taskRows returns the tasks that match the search, in their newest known state. Before
// the first answer it returns the tasks from the stream.
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

// newer reports whether the stream has a newer state of a task than an answer. An ended
// task never starts again.
func newer(live, found api.LiveTask) bool {
	return !client.Ended(found.State) || client.Ended(live.State)
}

// taskLines shows the table of tasks.
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
	const narrow = 14
	at, longest := 0, narrow
	keys := make([]string, len(rows))
	for i := range rows {
		keys[i] = rows[i].QueueID
		if keys[i] == m.picks[pageTasks].row {
			at = i
		}
		longest = max(longest, width(whereOf(&rows[i])))
	}
	column := min(longest, max(narrow, m.width/3))
	heads := []string{head, m.st.dim.Render("  " + joined(" ", fit("Task", 6), fit("State", 13), fit("Agent or queue", column), fit("Age", 8), "Prompt"))}
	height := max(1, m.bodyHeight()-len(heads))
	lines := make([]string, len(rows))
	for i := max(0, at-2*height); i < min(len(rows), at+2*height); i++ { // only rows near the selection can be visible
		lines[i] = m.taskRow(&rows[i], i == at, column)
	}
	lines = m.window(lines, keys, height)
	m.shown.keys = append(make([]string, len(heads)), m.shown.keys...)
	return append(heads, lines...)
}

// whereOf is the tool of a tool task, else the agent or the queue of the task.
func whereOf(t *api.LiveTask) string { return plain(cmp.Or(t.Tool, t.Agent, t.Queue)) }

func (m *model) taskRow(t *api.LiveTask, chosen bool, column int) string {
	look := m.st.state(t.State)
	row := fit(short(t.QueueID), 6) + " " + look.style.Render(look.sign+" "+fit(t.State, 11)) + " " + fit(whereOf(t), column) + " " + fit(m.ageText(t), 8) + " "
	text := plain(t.PromptPreview)
	if t.State == "failed" || t.State == "timeout" {
		text = joined(": ", m.st.bad.Render(plain(t.Reason)), text)
	}
	if t.State == "parked" && t.WaitingFor != nil {
		text = joined(": ", m.st.warn.Render(m.opens(t.WaitingFor.Until)), text)
	}
	if chosen {
		return m.st.bold.Render("▸ ") + row + m.st.bold.Render(text)
	}
	return "  " + row + text
}

// waiting reports whether a task is in its line or parked.
func waiting(t api.LiveTask) bool { return t.State == "pending" || t.State == "parked" }

// ageText says how long a task has waited or run, or how long ago it ended.
func (m *model) ageText(t *api.LiveTask) string {
	switch {
	case t.EndedAt != nil:
		return m.since(*t.EndedAt)
	case t.StartedAt != nil:
		return m.since(*t.StartedAt)
	}
	return m.since(t.CreatedAt)
}

// maxMessage is the maximum number of lines of a message. The gates show all of it.
const maxMessage = 4

// facts returns the lines that describe a task and its state.
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
	if a, ok := m.board.agent(t.Agent); ok && !waiting(t) && !client.Ended(t.State) {
		lines = append(lines, m.blockMeta(&a, &t))
	}
	if t.WaitingFor != nil {
		for _, line := range wrap("waits: "+plain(t.WaitingFor.Text), m.detailWidth()) {
			lines = append(lines, m.st.warn.Render(line))
		}
	}
	if said := joined(": ", plain(t.Reason), plain(t.Message)); said != "" {
		said := wrap(said, m.detailWidth())
		for _, line := range said[:min(len(said), maxMessage)] {
			lines = append(lines, look.style.Render(line))
		}
	}
	if d.task != nil && d.task.LastError != "" {
		lines = append(lines, m.st.warn.Render("last error: "+plain(d.task.LastError)))
	}
	return lines
}

// place describes where a task is.
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

// lane is a row of the page Lanes: an agent, or a queue that no agent owns.
type lane struct {
	key   string
	agent *api.LiveAgent // nil: a queue
	queue *api.LiveQueue
	tasks []api.LiveTask // running tasks, then waiting ones
}

// lanes returns the lanes that match the filter.
func (m *model) lanes() []lane {
	filter := strings.ToLower(strings.TrimSpace(m.filter))
	return slices.DeleteFunc(m.allLanes(), func(l lane) bool {
		said := "queue " + l.key
		if l.agent != nil {
			said = l.agent.Name + " " + l.agent.Face
		}
		return !strings.Contains(strings.ToLower(said), filter)
	})
}

// rank orders the lanes: first agents that run a task, then lanes with waiting tasks,
// then idle agents, then the others, with agents that are down last.
func (l *lane) rank() int {
	switch {
	case l.agent == nil:
		return 1
	case len(l.agent.Current) > 0:
		return 0
	case l.agent.Waiting > 0:
		return 1
	case l.agent.Face == "idle":
		return 2
	case l.agent.Face == "down":
		return 4
	}
	return 3
}

// allLanes returns the agents, and the queues that are paused or have waiting tasks, by
// rank and name.
func (m *model) allLanes() []lane {
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
	slices.SortStableFunc(out, func(a, b lane) int { return cmp.Compare(a.rank(), b.rank()) })
	return out
}

// rows returns the keys of a page's rows, in order.
func (m *model) rows() []string {
	var keys []string
	switch m.page {
	case pageLanes:
		for _, l := range m.lanes() {
			keys = append(keys, l.key)
		}
	case pageCapacity:
		for _, a := range m.accounts() {
			keys = append(keys, accountKey(a.Name))
		}
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

// move moves the selection by a number of rows.
func (m *model) move(by int) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	at := max(0, slices.Index(rows, m.picks[m.page].row))
	m.picks[m.page] = pick{row: rows[min(max(0, at+by), len(rows)-1)]}
	m.keepPicks()
}

// moveAside moves the selection to another task of the lane.
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

// keepPicks repairs the selection: if the selected row is gone, it selects the first
// row; if the selected task has left its lane, it selects the first task of the lane.
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

// pickedTask is the task that keys act on: that of the detail, else the selected one.
func (m *model) pickedTask() (api.LiveTask, bool) {
	if m.inDetail() {
		return m.detailTask(), true
	}
	return m.listTask()
}

// listTask is the task that is selected in the list.
func (m *model) listTask() (api.LiveTask, bool) {
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

// pickedAgent is the agent that keys act on: that of the task in the detail or the list,
// or of the lane.
func (m *model) pickedAgent() (api.LiveAgent, bool) {
	if !m.inDetail() && m.page == pageLanes {
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
	if l, ok := m.pickedLane(); !m.inDetail() && m.page == pageLanes && ok && l.queue != nil {
		return *l.queue, true
	}
	return api.LiveQueue{}, false
}

// window cuts the lines of a list to a height, so that the selected row is visible. keys
// has the row key of each line.
func (m *model) window(lines, keys []string, height int) []string {
	row, top := m.picks[m.page].row, m.tops[m.page]
	first := max(0, slices.Index(keys, row))
	last := first
	for last+1 < len(keys) && keys[last+1] == keys[first] && last-first+1 < height {
		last++
	}
	if last >= top+height {
		top = last - height + 1
	}
	top = max(0, min(top, first, len(lines)-1))
	if len(lines) <= height {
		top = 0
	}
	m.tops[m.page] = top
	end := min(len(lines), top+height)
	rows := slices.Compact(slices.Clone(keys))
	m.shown = shown{keys: slices.Clone(keys[top:end]), row: slices.Index(rows, row) + 1, rows: len(rows), above: top > 0, below: end < len(lines)}
	return lines[top:end]
}

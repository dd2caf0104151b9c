package top

import (
	"slices"

	"github.com/signalbox-ai/signalbox/api"
)

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

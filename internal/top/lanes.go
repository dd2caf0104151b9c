package top

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
)

const (
	minNameColumn = 26  // cells
	wideFrom      = 110 // minimum width to show waiting tasks beside running ones
)

// setNameColumn makes the column of names as wide as they need, if there is room.
func (m *model) setNameColumn(longest int) {
	m.nameColumn = min(max(minNameColumn, longest+4), max(minNameColumn, m.width/3))
}

// laneLines shows the lanes, one below the other.
func (m *model) laneLines() []string {
	lanes := m.lanes()
	if len(lanes) == 0 && m.filter != "" {
		m.shown = shown{filter: m.filter, all: len(m.allLanes())}
		return []string{"", "  No lane matches. Esc shows all."}
	}
	if len(lanes) == 0 {
		return []string{"", "  No agents. Start one: " + m.st.bold.Render("signalbox agent"), "", "  Tasks wait until there is one."}
	}
	longest := 0
	for i := range lanes {
		longest = max(longest, width(m.laneName(&lanes[i])))
	}
	m.setNameColumn(longest)
	var lines, keys []string
	for i := range lanes {
		lines = append(lines, m.lane(&lanes[i])...)
		for len(keys) < len(lines) {
			keys = append(keys, lanes[i].key)
		}
	}
	lines = m.window(lines, keys, m.bodyHeight())
	if m.filter != "" {
		m.shown.filter, m.shown.all = m.filter, len(m.allLanes())
	}
	return lines
}

// lane shows a name and a face on the left, the running tasks on the right, and the
// waiting tasks below or beside them.
func (m *model) lane(l *lane) []string {
	mark := "  "
	if l.key == m.picks[pageLanes].row {
		mark = m.st.bold.Render("▸ ")
	}
	left := []string{mark + m.st.bold.Render(cut(m.laneName(l), m.nameColumn-3)), m.laneFace(l)}
	room := max(10, m.width-m.nameColumn)
	chips := m.chips(l, room)
	var right []string
	if m.width >= wideFrom && l.agent != nil {
		block := room * 3 / 5
		right = m.blocks(l, block-2)
		for i := range right {
			right[i] = fit(right[i], block)
		}
		right[0] += m.chips(l, room-block)
	} else {
		right = m.blocks(l, room)
		if chips != "" {
			right = append(right, chips)
		}
	}
	for len(left) < len(right) {
		left = append(left, "")
	}
	for len(right) < len(left) {
		right = append(right, "")
	}
	lines := make([]string, len(left))
	for i := range left {
		lines[i] = fit(left[i], m.nameColumn) + right[i]
	}
	return lines
}

func (m *model) laneName(l *lane) string {
	if l.agent != nil {
		return plain(l.agent.Name)
	}
	return plain(l.queue.Name)
}

// laneFace is the state of a lane in words for people.
func (m *model) laneFace(l *lane) string {
	if l.agent == nil {
		if l.queue.Pause != nil {
			return "  " + m.st.warn.Render("‖ paused")
		}
		return m.st.dim.Render("  queue")
	}
	face := m.st.face(l.agent.Face)
	return "  " + face.style.Render(face.sign+" "+plain(l.agent.Face))
}

// blocks shows the running tasks of a lane, two lines each, or why there are none.
func (m *model) blocks(l *lane, room int) []string {
	if l.agent == nil {
		text := fmt.Sprintf("%d waiting for any agent that may take them", l.queue.Waiting)
		if l.queue.Pause != nil {
			text = joined(" ", fmt.Sprintf("%d waiting, paused", l.queue.Waiting), byWhom(*l.queue.Pause))
		}
		return []string{m.st.dim.Render(cut(text, room))}
	}
	a := l.agent
	if len(a.Current) == 0 {
		return []string{m.st.dim.Render(cut(m.restingText(a), room))}
	}
	var lines []string
	for i := range a.Current {
		t := &a.Current[i]
		title := joined(" ", m.picked(t, short(t.QueueID)), plain(t.PromptPreview))
		lines = append(lines, cut(title, room), cut(m.blockMeta(a, t), room))
	}
	if !running(a.Face) && a.FaceText != "" {
		lines = append(lines, m.st.face(a.Face).style.Render(cut(plain(a.FaceText), room)))
	}
	return lines
}

// running reports whether the tasks of a lane already show what its face says.
func running(face string) bool {
	return face == "running" || face == "waiting for capacity" || face == "cancelling"
}

// restingText describes an agent that runs nothing.
func (m *model) restingText(a *api.LiveAgent) string {
	switch {
	case a.Pause != nil:
		return joined(" ", "Takes no work: paused", byWhom(*a.Pause))
	case a.FaceText != "":
		return plain(a.FaceText)
	case a.Face == "idle" && a.IdleAt != nil:
		return "Idle " + m.since(*a.IdleAt) + " — the next task starts at once"
	case a.Face == "idle":
		return "Idle — the next task starts at once"
	}
	return plain(a.Message)
}

// blockMeta is the second line of a block: how long the task runs, whose it is, and
// what it waits for or calls.
func (m *model) blockMeta(a *api.LiveAgent, t *api.LiveTask) string {
	does := ""
	switch {
	case t.State == "cancelling" && t.CancelledAt != nil:
		does = m.st.warn.Render("cancelling " + m.since(*t.CancelledAt) + ", not confirmed → R releases")
	case t.Call != nil && t.Call.Waiting:
		does = m.st.warn.Render(fmt.Sprintf("waiting %s for %s — %d/%d in use", m.since(t.Call.Since), plain(t.Call.Capacity), t.Call.InUse, t.Call.Concurrent))
	case t.Call != nil:
		does = m.st.busy.Render(fmt.Sprintf("calling %s — %s %d/%d", plain(t.Call.Tool), plain(t.Call.Capacity), t.Call.InUse, t.Call.Concurrent))
	}
	return joined(" · ", m.st.dim.Render(m.elapsed(t)), does, m.st.dim.Render(joined(" · ", whose(t), isolatedText(a, t))))
}

func isolatedText(a *api.LiveAgent, t *api.LiveTask) string {
	if t.Mode == "bypass" {
		return "bypass"
	}
	if a.Slots > 1 {
		return fmt.Sprintf("slot %d", t.Slot)
	}
	return ""
}

// elapsed says how long a task has run, or that it has not started.
func (m *model) elapsed(t *api.LiveTask) string {
	if t.StartedAt == nil {
		return t.State
	}
	return m.since(*t.StartedAt)
}

// whose says who submitted a task, and how.
func whose(t *api.LiveTask) string {
	source := plain(t.Source)
	if t.SourceJob != "" {
		source = "schedule " + plain(t.SourceJob)
	}
	return joined(" · ", plain(t.By), source)
}

// chips shows the waiting tasks of a lane: place, ID and age.
func (m *model) chips(l *lane, room int) string {
	line, waiting := l.tasks, 0
	if l.agent != nil {
		line, waiting = l.agent.Line, l.agent.Waiting
	} else {
		waiting = l.queue.Waiting
	}
	var b strings.Builder
	for i := range line {
		t := &line[i]
		place := t.Position
		place = cmp.Or(place, i+1)
		id := m.picked(t, short(t.QueueID))
		if t.State == "parked" {
			look := m.st.state(t.State)
			id = look.style.Render(look.sign) + id
		}
		chip := fmt.Sprintf("%s %s %s", m.st.dim.Render(fmt.Sprint(place)), id, m.st.dim.Render(m.since(t.CreatedAt)))
		more := fmt.Sprintf("+%d", max(waiting, len(line))-i)
		if width(b.String())+width(chip)+2+width(more) > room && i > 0 {
			b.WriteString(m.st.dim.Render(more))
			return b.String()
		}
		b.WriteString(chip + "  ")
	}
	if more := waiting - len(line); more > 0 {
		b.WriteString(m.st.dim.Render(fmt.Sprintf("+%d", more)))
	}
	return strings.TrimRight(b.String(), " ")
}

// picked highlights the text of a task that is selected.
func (m *model) picked(t *api.LiveTask, text string) string {
	if m.page == pageLanes && t.QueueID == m.picks[pageLanes].id {
		return m.st.pick.Render(text)
	}
	return text
}

package top

import (
	"fmt"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
)

// maxBar is the length of the longest bar of slots.
const maxBar = 20

// capacityLines shows the tool queues: who has their slots and who waits. Of
// the selected one all of them.
func (m *model) capacityLines() []string {
	if len(m.board.Capacity) == 0 {
		return []string{"", "  No tool queues. Give the director tools: " + m.st.bold.Render("signalbox up --tools FILE")}
	}
	var lines []string
	first, last := 0, 0
	for i := range m.board.Capacity {
		q := &m.board.Capacity[i]
		begin := len(lines)
		lines = append(lines, m.capacityRow(q)...)
		if q.Name == m.picks[pageCapacity].row {
			first, last = begin, min(len(lines)-1, begin+m.bodyHeight()-1)
		}
	}
	return m.window(lines, first, last)
}

func (m *model) capacityRow(q *api.ToolQueue) []string {
	mark, chosen := "  ", q.Name == m.picks[pageCapacity].row
	if chosen {
		mark = m.st.bold.Render("▸ ")
	}
	style := m.st.busy
	if q.InUse >= q.Concurrent && q.Depth > 0 {
		style = m.st.warn
	}
	figures := fmt.Sprintf("%d/%d in use", q.InUse, q.Concurrent)
	if q.Depth > 0 {
		figures = m.st.warn.Render(fmt.Sprintf("▲ %s · %d wait", figures, q.Depth))
		if len(q.Waiters) > 0 {
			figures += m.st.warn.Render(", oldest " + m.since(q.Waiters[0].Since))
		}
	}
	lines := []string{mark + m.st.bold.Render(fit(plain(q.Name), nameColumn-3)) + " " + style.Render(bar(q.InUse, q.Concurrent)) + "  " + figures}
	if !chosen {
		return append(lines, m.st.dim.Render(cut(indented(heldBy(q)), m.width)))
	}
	for _, h := range q.Holders {
		lines = append(lines, indented(m.holderText(h)))
	}
	for _, w := range q.Waiters {
		lines = append(lines, indented(m.st.warn.Render(joined(" · ", fmt.Sprintf("%d. waiting %s", w.Position, m.since(w.Since)), plain(w.Agent), plain(w.Tool), at(w.Director)))))
	}
	if q.WaitersNotShown > 0 {
		lines = append(lines, indented(fmt.Sprintf("and %d more", q.WaitersNotShown)))
	}
	if len(lines) == 1 {
		lines = append(lines, m.st.dim.Render(indented(nobody(q))))
	}
	return lines
}

func indented(s string) string { return strings.Repeat(" ", nameColumn) + s }

// bar shows slots in use and free ones; where there are many, their shares.
func bar(inUse, all int) string {
	if all <= 0 {
		return ""
	}
	cells := min(all, maxBar)
	used := min(cells, (inUse*cells+all-1)/all)
	return strings.Repeat("■", used) + strings.Repeat("□", cells-used)
}

// heldBy names who has the slots of a tool queue, each once.
func heldBy(q *api.ToolQueue) string {
	count, order := map[string]int{}, []string{}
	for _, h := range q.Holders {
		who := holderName(h)
		if count[who]++; count[who] == 1 {
			order = append(order, who)
		}
	}
	if len(order) == 0 {
		return nobody(q)
	}
	for i, who := range order {
		if count[who] > 1 {
			order[i] = fmt.Sprintf("%s ×%d", who, count[who])
		}
	}
	return "held by " + strings.Join(order, ", ")
}

// nobody is for a tool queue without holders that the reader may see.
func nobody(q *api.ToolQueue) string {
	if q.InUse > 0 {
		return "who holds its slots is not for you to see"
	}
	return "nobody holds a slot"
}

func holderName(h api.ToolHolder) string {
	for _, name := range []string{h.Agent, h.Session, h.Tool} {
		if name != "" {
			return plain(name)
		}
	}
	return "a caller"
}

// at says at which of several directors a call is.
func at(director string) string {
	if director == "" {
		return ""
	}
	return "at " + plain(director)
}

func (m *model) holderText(h api.ToolHolder) string {
	since := ""
	if h.Since != nil {
		since = "for " + m.since(*h.Since)
	}
	lease := ""
	if h.Leased && h.Idle {
		lease = "kept between calls"
	}
	return joined(" · ", "held by "+holderName(h), plain(h.Tool), since, lease, at(h.Director))
}

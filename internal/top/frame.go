package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/signalbox-ai/signalbox/api"
)

// frameFrom is the height from which on there is more than the body.
const frameFrom = 8

// bodyHeight leaves room for the head and the line at the bottom.
func (m *model) bodyHeight() int {
	if m.height < frameFrom {
		return m.height
	}
	return m.height - len(m.head()) - 1
}

// head is what stands above the body: the pages, whether a person is needed,
// and the figures of all.
func (m *model) head() []string {
	lines := append([]string{m.header()}, m.healthLines()...)
	return append(lines, m.totalsLine(), m.st.dim.Render(strings.Repeat("─", m.width)))
}

// frame is the screen as text: height lines of at most width cells.
func (m *model) frame() string {
	lines := filled(m.body(), m.bodyHeight())
	if m.height >= frameFrom {
		lines = append(append(m.head(), lines...), m.bottom())
	}
	grey := m.board.Known && m.age() >= staleAfter
	for i := range lines {
		if grey && (i > 0 || m.height < frameFrom) && m.asking == nil {
			lines[i] = m.st.dim.Render(ansi.Strip(lines[i]))
		}
		lines[i] = cut(lines[i], m.width)
	}
	return strings.Join(lines, "\n")
}

// filled makes a list of lines exactly n long.
func filled(lines []string, n int) []string {
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines[:n]
}

func (m *model) body() []string {
	switch {
	case m.asking != nil:
		return m.questionLines()
	case m.help:
		return m.helpLines()
	case !m.board.Known:
		return []string{"", "  Connecting to " + plain(m.o.URL) + " …"}
	case m.detail != nil:
		return m.detailLines()
	}
	switch m.page {
	case pageCapacity:
		return m.capacityLines()
	case pageTasks:
		return m.taskLines()
	}
	return m.laneLines()
}

// header has the pages and how old the data is.
func (m *model) header() string {
	left := m.st.bold.Render("Signalbox")
	for p, name := range pageNames {
		tab := fmt.Sprintf(" %d %s ", p+1, name)
		if page(p) == m.page && m.detail == nil {
			tab = m.st.pick.Render(tab)
		}
		left += " " + tab
	}
	return ends(left, m.pill(), m.width)
}

// pill says how old the data is.
func (m *model) pill() string {
	age := m.age()
	switch {
	case !m.board.Known:
		return m.st.warn.Render("◌ connecting")
	case age >= staleAfter:
		return m.st.bad.Render("✗ reconnecting, data " + ago(age) + " old")
	case age >= lateAfter:
		return m.st.warn.Render("▲ reconnecting, data " + ago(age) + " old")
	}
	return m.st.good.Render("● live")
}

// healthLines say whether a person is needed, why, and what to do.
func (m *model) healthLines() []string {
	h := m.board.Health
	switch age := m.age(); {
	case m.board.Known && age >= lateAfter: // that all was well then says nothing
		return []string{m.st.bad.Render("▲ ") + "The director at " + plain(m.o.URL) + " does not answer: this is how it was " + ago(age) + " ago"}
	case h.Text == "":
		return []string{""}
	case len(h.Attention) == 0:
		return []string{m.st.good.Render("✓ ") + plain(h.Text)}
	}
	worst, style := h.Attention[0], m.st.warn
	if worst.Level == "error" {
		style = m.st.bad
	}
	lines := []string{style.Render("▲ ") + plain(h.Text)}
	if worst.Cure != "" {
		lines = append(lines, "  → "+plain(worst.Cure))
	}
	return lines
}

func (m *model) totalsLine() string {
	if !m.board.Known {
		return ""
	}
	t := m.board.Totals
	waiting := fmt.Sprintf("%d/%d waiting", t.Pending, t.MaxSize)
	if t.Pending > 0 {
		waiting += ", oldest " + seconds(t.OldestAgeSeconds)
	}
	tools := ""
	if t.ToolsRunning+t.ToolsWaiting > 0 {
		tools = fmt.Sprintf("tool tasks %d running, %d waiting", t.ToolsRunning, t.ToolsWaiting)
	}
	running := fmt.Sprintf("%d running", t.Running)
	if t.Isolated > 0 { // beside the slots: else there would seem to be more than there can be
		running += fmt.Sprintf(" (%d bypass)", t.Isolated)
	}
	return joined(" · ", running+", "+plural(t.Slots, "slot", "slots"), waiting,
		fmt.Sprintf("%d done, %d failed (24 h)", t.Done24h, t.Failed24h), tools, m.pausedText())
}

// pausedText names a pause of everything, which no single lane shows.
func (m *model) pausedText() string {
	for _, p := range m.board.Pauses {
		if p.Queue == "" {
			return m.st.warn.Render(joined(" ", "‖ all queues are paused", byWhom(p)))
		}
	}
	return ""
}

func byWhom(p api.Pause) string {
	by := ""
	if p.By != "" {
		by = "by " + plain(p.By)
	}
	if p.Reason != "" {
		by = joined(" ", by, "("+plain(p.Reason)+")")
	}
	return by
}

// bottom is a message, the line being typed, or the keys.
func (m *model) bottom() string {
	switch {
	case m.typing != nil:
		return tail("Search: "+*m.typing, m.width-1) + "█"
	case m.note.text != "" && m.note.bad:
		return m.st.bad.Render("✗ " + m.note.text)
	case m.note.text != "":
		return m.st.good.Render("✓ " + m.note.text)
	}
	return m.st.dim.Render(m.keysText())
}

// tail is the end of a text that is being typed.
func tail(s string, n int) string {
	if over := width(s) - n; over > 0 {
		return ansi.TruncateLeft(s, over+1, "…")
	}
	return s
}

func (m *model) keysText() string {
	switch {
	case m.asking != nil && m.asking.word != "":
		return "Enter yes · Esc no"
	case m.asking != nil:
		return "y yes · any other key no"
	case m.help:
		return "any key goes back"
	case m.detail != nil:
		return "Esc back · w why · o output · f follow · c cancel · r retry · ? help · q quit"
	case m.page == pageCapacity:
		return "1 2 3 page · j k move · / search · ? help · q quit"
	case m.page == pageTasks:
		return "Enter open · w why · o output · c cancel · r retry · / search · ? help · q quit"
	}
	return "Enter open · w why · c cancel · p pause · R release · / search · ? help · q quit"
}

func (m *model) questionLines() []string {
	q := m.asking
	lines := []string{"", "  " + m.st.bold.Render(q.title), ""}
	for _, text := range q.lines {
		for _, line := range wrap(text, m.width-4) {
			lines = append(lines, "  "+line)
		}
	}
	lines = append(lines, "")
	if q.word == "" {
		return append(lines, "  y: yes. Any other key: no.")
	}
	lines = append(lines, "  Type "+m.st.bold.Render(plain(q.word))+" and Enter to do it, Esc to leave it: "+q.typed+"█")
	if q.wrong {
		lines = append(lines, "  "+m.st.bad.Render("✗ That is not "+plain(q.word)+"."))
	}
	return lines
}

// helpKeys are the keys and what they do.
var helpKeys = [][2]string{
	{"1 2 3, Tab", "lanes, capacity, tasks"},
	{"j k, ↑ ↓, PgUp PgDn, g G", "move from row to row"},
	{"h l, ← →", "move from task to task in a lane"},
	{"Enter", "open the selected task"},
	{"w, o", "open it at why it does not run, or at its output"},
	{"f", "follow the output, or stop following it"},
	{"c, r", "cancel the task; submit an ended one anew"},
	{"p", "pause the agent or queue, or let it go on"},
	{"R", "release: take the agent's slots away from what holds them"},
	{"/", "search, such as agent:coder state:failed since:2h \"billing\""},
	{"Esc", "back; on the tasks, leave the search"},
	{"q, Ctrl-C", "quit"},
}

func (m *model) helpLines() []string {
	lines := []string{"", "  " + m.st.bold.Render("Keys"), ""}
	for _, k := range helpKeys {
		lines = append(lines, "  "+fit(k[0], 26)+" "+k[1])
	}
	return append(lines, "", "  "+m.st.dim.Render("Director: "+plain(m.o.URL)))
}

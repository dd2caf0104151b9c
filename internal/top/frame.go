package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/signalbox-ai/signalbox/api"
)

// frameFrom is the minimum height for a head and a bottom around the body.
const frameFrom = 8

// bodyHeight is the height without the head and the lines at the bottom.
func (m *model) bodyHeight() int {
	if m.height < frameFrom {
		return m.height
	}
	return max(1, m.height-len(m.head())-len(m.bottom()))
}

// head shows what is above the body: the pages, whether a person is needed, and the
// totals.
func (m *model) head() []string {
	lines := append([]string{m.header()}, m.healthLines()...)
	return append(lines, m.totalsLine(), m.placeLine())
}

// placeLine is the rule above a list, with the place of the selection, whether there
// is more above and below, and the filter.
func (m *model) placeLine() string {
	s := &m.shown
	text := ""
	switch {
	case s.filter != "":
		text = fmt.Sprintf("%q: %d of %d", plain(s.filter), s.rows, s.all)
	case s.above || s.below:
		text = fmt.Sprintf("%d of %d", s.row, s.rows)
	}
	if text = joined(" ", text, map[bool]string{true: "↑"}[s.above]+map[bool]string{true: "↓"}[s.below]); text != "" {
		text = " " + cut(text, max(1, m.width-4)) + " ──"
	}
	return m.st.dim.Render(strings.Repeat("─", max(0, m.width-width(text))) + text)
}

// frame returns the screen as text: height lines of at most width cells.
func (m *model) frame() string {
	m.shown = shown{}
	lines := filled(m.body(), m.bodyHeight())
	if m.height >= frameFrom {
		lines = append(append(m.head(), lines...), m.bottom()...)
	}
	grey := m.board.Known && m.age() >= staleAfter
	for i := range lines {
		if grey && (i > 0 || m.height < frameFrom) && m.asking == nil && m.form == nil {
			lines[i] = m.st.dim.Render(ansi.Strip(lines[i]))
		}
		lines[i] = cut(lines[i], m.width)
	}
	return strings.Join(lines, "\n")
}

// filled pads or cuts a list of lines to exactly n.
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
	case m.form != nil:
		return m.formLines()
	case m.help:
		return m.helpLines()
	case !m.board.Known:
		return []string{"", "  Connecting to " + plain(m.o.URL) + " …"}
	case m.detail == nil:
		return m.listLines()
	case !m.wide():
		return m.detailLines()
	}
	height := m.bodyHeight()
	list := filled(m.within(m.listWidth(), m.listLines), height)
	near := filled(m.within(m.detailWidth(), m.detailLines), height)
	edge := m.st.dim.Render("│ ")
	if !m.beside {
		edge = m.st.bold.Render("┃ ")
	}
	for i := range list {
		list[i] = fit(list[i], m.listWidth()) + edge + near[i]
	}
	return list
}

// besideFrom is the minimum width at which the selected task is shown beside the list.
const besideFrom = 140

func (m *model) wide() bool { return m.width >= besideFrom && !m.part && m.page != pageCapacity }

// inDetail reports whether the detail gets the keys.
func (m *model) inDetail() bool { return m.detail != nil && !m.beside }

func (m *model) listWidth() int { return min(m.width/2, 110) }

func (m *model) detailWidth() int {
	if m.wide() {
		return m.width - m.listWidth() - 2
	}
	return m.width
}

// within draws a part of the screen that is columns wide.
func (m *model) within(columns int, draw func() []string) []string {
	all := m.width
	m.width, m.part = columns, true
	defer func() { m.width, m.part = all, false }()
	return draw()
}

func (m *model) listLines() []string {
	switch m.page {
	case pageCapacity:
		return m.capacityLines()
	case pageTasks:
		return m.taskLines()
	}
	return m.laneLines()
}

// header shows the pages and the age of the data.
func (m *model) header() string {
	left := m.st.bold.Render("Signalbox")
	for p := range pageNames {
		tab := page(p).tab()
		if page(p) == m.page && (m.wide() || !m.inDetail()) {
			tab = m.st.pick.Render(tab)
		}
		left += " " + tab
	}
	return ends(left, m.pill(), m.width)
}

// tab is the name of a page in the first line.
func (p page) tab() string { return fmt.Sprintf(" %d %s ", p+1, pageNames[p]) }

// pill shows the age of the data.
func (m *model) pill() string {
	age := m.age()
	switch {
	case !m.board.Known:
		return m.st.warn.Render("◌ connecting")
	case age >= staleAfter:
		return m.st.bad.Render("✗ reconnecting, data " + ago(age) + " old")
	case m.late():
		return m.st.warn.Render("▲ reconnecting, data " + ago(age) + " old")
	}
	return m.st.good.Render("● live")
}

// healthLines say whether a person is needed, why, and what to do.
func (m *model) healthLines() []string {
	h := m.board.Health
	switch age := m.age(); {
	case m.board.Known && m.late(): // outdated: do not show that all was well
		return []string{m.st.bad.Render("▲ ") + "The director at " + plain(m.o.URL) + " does not answer: the data is " + ago(age) + " old"}
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
	if t.Isolated > 0 { // separate from the slots, else more tasks than slots would seem to run
		running += fmt.Sprintf(" (%d bypass)", t.Isolated)
	}
	return joined(" · ", running+", "+plural(t.Slots, "slot", "slots"), waiting,
		fmt.Sprintf("%d done, %d failed (24 h)", t.Done24h, t.Failed24h), tools, m.pausedText())
}

// pausedText describes a pause of all queues, which no single lane shows.
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

// bottom shows the current message or the line being typed, and the keys.
func (m *model) bottom() []string {
	keys := m.st.dim.Render(m.keysText())
	switch {
	case m.typing != nil:
		return []string{tail(m.typing.label+m.typing.text, m.width-1) + "█", keys}
	case m.note.text != "" && m.note.bad:
		return []string{m.st.bad.Render("✗ " + m.note.text), keys}
	case m.note.text != "":
		return []string{m.st.good.Render("✓ " + m.note.text), keys}
	}
	return []string{keys}
}

// tail returns the last n cells of a text that is being typed.
func tail(s string, n int) string {
	if over := width(s) - n; over > 0 {
		return ansi.TruncateLeft(s, over+1, "…")
	}
	return s
}

// keysText lists the keys of the current view, as many as there is room for.
func (m *model) keysText() string {
	keys := strings.Split(m.keyNames(), " · ")
	for last := len(keys) - 1; last > 1 && width(strings.Join(keys, " · ")) > m.width; last-- {
		keys = slices.Delete(keys, last-1, last) // ? help stays
	}
	return strings.Join(keys, " · ")
}

func (m *model) keyNames() string {
	switch {
	case m.asking != nil && m.asking.word != "":
		return "Enter yes · Esc no"
	case m.asking != nil:
		return "y yes · any other key no"
	case m.form != nil:
		return "Enter next field, submit after the last · Tab next field · Esc cancel"
	case m.typing != nil:
		return "Enter accept · Esc cancel"
	case m.help:
		return "any key goes back"
	case m.inDetail() && m.detail.find != nil:
		return "n next match · N previous · Esc end the search · q quit · ? help"
	case m.inDetail():
		return "Esc back · w why · o output · f follow · / find · c cancel · r retry · W wrap · q quit · ? help"
	case m.page == pageCapacity:
		return "1 2 3 page · j k move · n new task · / search · q quit · ? help"
	case m.page == pageTasks:
		return "Enter open · n new task · c cancel · r retry · / search · q quit · w why · o output · ? help"
	}
	return "Enter open · n new task · m chat · c cancel · p pause · / filter · q quit · R release · w why · o output · ? help"
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
	lines = append(lines, "  Type "+m.st.bold.Render(plain(q.word))+" and Enter to confirm, Esc to cancel: "+q.typed+"█")
	if q.wrong {
		lines = append(lines, "  "+m.st.bad.Render("✗ That is not "+plain(q.word)+"."))
	}
	return lines
}

// helpKeys lists the keys and what they do.
var helpKeys = [][2]string{
	{"1 2 3, Tab", "lanes, capacity, tasks"},
	{"j k, ↑ ↓, PgUp PgDn, g G", "move from row to row"},
	{"h l, ← →", "move from task to task in a lane; along cut lines"},
	{"Enter", "open the selected task"},
	{"w, o", "open it with the reasons why it does not run, or with its output"},
	{"f", "follow the output, or stop following it"},
	{"W", "wrap long lines of output, or cut them"},
	{"n, m", "submit a new task; chat with the agent"},
	{"c, r", "cancel the task; submit an ended one again"},
	{"t", "move a waiting task to the top of its queue"},
	{"p", "pause the agent or queue, or resume it"},
	{"R", "release: free the agent's slots"},
	{"/", "filter lanes, search tasks, find in the output"},
	{"n, N after a find", "next match, previous match"},
	{"Esc", "back; end the filter, the search or the find"},
	{"mouse", "click: select, click again: open; wheel: scroll"},
	{"q, Ctrl-C", "quit"},
}

func (m *model) helpLines() []string {
	lines := []string{"  " + m.st.bold.Render("Keys")}
	for _, k := range helpKeys {
		lines = append(lines, "  "+fit(k[0], 26)+" "+k[1])
	}
	return append(lines, "", "  "+m.st.dim.Render("Director: "+plain(m.o.URL)))
}

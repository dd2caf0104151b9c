package top

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

const (
	detailEvery = 2 * time.Second // interval at which a task and its gates are read
	maxLog      = 2000            // lines of output that are kept
	maxLogLine  = 4000            // bytes of a line that has no end yet
)

// tab is one of the tabs of the detail.
type tab int

// The tabs. tabAuto shows the gates of a waiting task, and the output of any other.
const (
	tabAuto tab = iota
	tabWhy
	tabLog
)

// detail shows one task.
type detail struct {
	id     string
	tab    tab
	row    api.LiveTask // the task when it was opened
	task   *api.Task    // nil: not read yet
	why    *api.Why
	err    string
	asked  time.Time
	cancel context.CancelFunc // stops following the output

	log    []string
	part   string // the last line, if it is not complete yet
	gap    bool   // the beginning of the output is no longer kept
	done   bool
	logErr string
	top    int // first visible line of the tab, unless it follows
	follow bool

	cut   bool           // long lines are cut, not wrapped
	left  int            // hidden cells at the left of cut lines
	find  *regexp.Regexp // nil: no search
	match int            // index of the match that is shown
	rows  logRows
}

type whyMsg struct {
	id  string
	why api.Why
	err error
}

type taskMsg struct {
	id   string
	task api.Task
	err  error
}

// open shows the selected task.
func (m *model) open(t tab) tea.Cmd {
	task, ok := m.pickedTask()
	if !ok {
		return nil
	}
	cmd := m.openTask(task.QueueID, t)
	m.detail.row = task
	return cmd
}

func (m *model) openTask(id string, t tab) tea.Cmd {
	m.closeDetail()
	ctx, cancel := context.WithCancel(m.ctx)
	m.detail = &detail{id: id, tab: t, cancel: cancel, follow: true, asked: m.o.Now()}
	return tea.Batch(m.fetch(id), m.followOutput(ctx, id))
}

// closeDetail closes the detail and stops its requests.
func (m *model) closeDetail() {
	if m.detail != nil {
		m.detail.cancel()
	}
	m.detail, m.beside = nil, false
}

// showBeside shows the selected task beside the list, if there is room. It is read
// at the next tick, so that scrolling through a list makes no requests.
func (m *model) showBeside() {
	if m.inDetail() {
		return
	}
	task, ok := m.listTask()
	if !m.wide() || !ok {
		m.closeDetail()
		return
	}
	if m.detail == nil || m.detail.id != task.QueueID {
		m.closeDetail()
		m.detail, m.beside = &detail{id: task.QueueID, row: task, cancel: func() {}, follow: true}, true
	}
}

func (m *model) fetch(id string) tea.Cmd {
	return tea.Batch(
		func() tea.Msg { t, err := m.o.Director.Task(m.ctx, id); return taskMsg{id, t, err} },
		func() tea.Msg { w, err := m.o.Director.Why(m.ctx, id); return whyMsg{id, w, err} },
	)
}

func (m *model) refreshDetail() tea.Cmd {
	d := m.detail
	if d.asked.IsZero() { // opened by showBeside, not read yet
		ctx, cancel := context.WithCancel(m.ctx)
		d.asked, d.cancel = m.o.Now(), cancel
		return tea.Batch(m.fetch(d.id), m.followOutput(ctx, d.id))
	}
	if m.o.Now().Sub(d.asked) < detailEvery || d.task != nil && client.Ended(d.task.State) {
		return nil
	}
	d.asked = m.o.Now()
	return m.fetch(d.id)
}

// detailed applies an answer about the open task.
func (m *model) detailed(msg tea.Msg) {
	d := m.detail
	if d == nil {
		return
	}
	switch msg := msg.(type) {
	case taskMsg:
		if msg.id == d.id {
			d.learn(msg.err)
			if msg.err == nil {
				d.task = &msg.task
			}
		}
	case whyMsg:
		if msg.id == d.id && msg.err == nil {
			d.why = &msg.why
		}
	case outputMsg:
		if msg.id == d.id {
			d.print(msg.out)
		}
	case outputEnd:
		if msg.id == d.id {
			d.done, d.rows.columns = true, 0
			if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
				d.logErr = plain(msg.err.Error())
			}
		}
	}
}

func (d *detail) learn(err error) {
	d.err = ""
	if err != nil {
		d.err = plain(err.Error())
	}
}

// keyDetail handles a key in the detail.
func (m *model) keyDetail(name string) tea.Cmd {
	d := m.detail
	switch name {
	case "esc", "backspace":
		if d.find != nil {
			d.find = nil
			return nil
		}
		if task, ok := m.listTask(); ok && m.wide() && task.QueueID == d.id {
			m.beside = true
		} else {
			m.closeDetail()
		}
		m.keepPicks()
		return m.refresh()
	case "W":
		d.cut, d.left, d.rows.columns = !d.cut, 0, 0
	case "right", "l":
		d.cut, d.left, d.rows.columns = true, d.left+aside, 0
	case "left", "h":
		d.left = max(0, d.left-aside)
	case "w":
		d.tab, d.top = tabWhy, 0
	case "o":
		d.tab, d.follow = tabLog, true
	case "f":
		d.follow = !d.follow
	case "j", "down":
		m.scroll(1)
	case "k", "up":
		m.scroll(-1)
	case "pgdown", "space", "ctrl+d":
		m.scroll(m.bodyHeight() / 2)
	case "pgup", "ctrl+u":
		m.scroll(-m.bodyHeight() / 2)
	case "g", "home":
		d.top, d.follow = 0, false
	case "G", "end":
		d.follow = true
	}
	return nil
}

// scroll moves the text of the tab. Scrolling back stops following.
func (m *model) scroll(by int) {
	d := m.detail
	if d.follow && m.shownTab() == tabLog {
		d.top = max(0, len(m.logRows())-m.tabHeight())
	}
	d.top = max(0, d.top+by)
	d.follow = by > 0 && d.top+m.tabHeight() >= len(m.logRows())
}

// detailTask returns the newest known state of the open task, as a row.
func (m *model) detailTask() api.LiveTask {
	d := m.detail
	if t, ok := m.board.task(d.id); ok && (d.task == nil || !client.Ended(d.task.State)) {
		return t
	}
	if d.task == nil {
		d.row.QueueID = d.id
		return d.row
	}
	t := d.task
	return api.LiveTask{
		QueueID: t.QueueID, State: t.State, Reason: t.Reason, Message: t.Message, Queue: t.Queue, Agent: t.Agent, Mode: t.Mode, Tool: t.Tool,
		PromptPreview: t.PromptPreview, Source: t.Source, SourceJob: t.SourceJob, Attempts: t.Attempts,
		CreatedAt: t.CreatedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt, ETA: t.ETA,
	}
}

func (m *model) shownTab() tab {
	if m.detail.tab != tabAuto {
		return m.detail.tab
	}
	if t := m.detailTask(); t.State == "pending" || t.State == "parked" || t.State == "" {
		return tabWhy
	}
	return tabLog
}

// bothFrom is the minimum height of the body at which gates and output are shown
// one above the other.
const bothFrom = 34

// detailLines shows the facts, then the tabs.
func (m *model) detailLines() []string {
	m.detail.top = max(0, m.detail.top)
	lines := m.facts()
	if m.bodyHeight() >= bothFrom {
		lines = append(append(lines, m.rule("Why")), m.whyAbove()...)
		return append(append(lines, m.rule(m.logTitle())), m.logWindow(m.tabHeight())...)
	}
	if m.shownTab() == tabWhy {
		why := m.whyLines()
		m.detail.top = min(m.detail.top, max(0, len(why)-m.tabHeight()))
		return append(append(lines, m.rule("Why")), why[m.detail.top:]...)
	}
	return append(append(lines, m.rule(m.logTitle())), m.logWindow(m.tabHeight())...)
}

// tabHeight is the number of lines for the tab, without its rule.
func (m *model) tabHeight() int {
	above := len(m.facts()) + 1
	if m.bodyHeight() >= bothFrom {
		above += len(m.whyAbove()) + 1
	}
	return max(1, m.bodyHeight()-above)
}

// whyAbove shows the gates above the output, for which it leaves some lines.
func (m *model) whyAbove() []string {
	const output = 8
	why := m.whyLines()
	return why[:min(len(why), max(1, m.bodyHeight()-len(m.facts())-2-output))]
}

func (m *model) rule(title string) string {
	return m.st.dim.Render("── ") + m.st.bold.Render(title) + m.st.dim.Render(" "+strings.Repeat("─", max(0, m.detailWidth()-4-width(title))))
}

// whyLines shows the gates between the task and its start: sign, condition, numbers,
// and what can be done.
func (m *model) whyLines() []string {
	why := m.detail.why
	if why == nil {
		return []string{m.st.dim.Render("asking the director …")}
	}
	lines := wrap(plain(why.Summary), m.detailWidth())
	for _, g := range why.Gates {
		sign := m.st.good.Render("✓")
		if !g.OK {
			sign = m.st.bad.Render("✗")
		}
		text := plain(g.Text)
		if g.Detail != "" {
			text += m.st.dim.Render(" — " + plain(g.Detail))
		}
		lines = append(lines, hang(" "+sign+" ", text, m.detailWidth())...)
		if g.Cure != "" && !g.OK {
			lines = append(lines, hang("     → ", plain(g.Cure), m.detailWidth())...)
		}
	}
	if why.ETA != nil {
		lines = append(lines, fmt.Sprintf("Starts in %s, estimated from the last %d runs.", etaText(why.ETA), why.ETA.Runs))
	}
	return lines
}

// hang wraps a text to n cells, with a sign before its first line and the others
// indented.
func hang(sign, text string, n int) []string {
	indent := width(sign)
	lines := wrap(text, max(10, n-indent))
	for i := range lines {
		if i == 0 {
			lines[i] = sign + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", indent) + lines[i]
		}
	}
	return lines
}

// etaText formats a range of waiting time, in minutes if it is long.
func etaText(e *api.ETA) string {
	low, high := int64(e.LowSeconds), int64(e.HighSeconds)
	if low == high || high == 0 {
		return "about " + seconds(high)
	}
	if high >= 120 {
		return fmt.Sprintf("about %d–%d min", low/60, (high+59)/60)
	}
	return fmt.Sprintf("about %d–%d s", low, high)
}

package top

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The output of the task that is shown: it is followed, wrapped or cut, and searched.

// logRows are the lines of the output, laid out for the screen.
type logRows struct {
	columns int // width of the layout; 0: lay out again
	rows    []string
	starts  []int // index of the first row of each line
}

type outputMsg struct {
	id  string
	out api.Output
}

type outputEnd struct {
	id  string
	err error
}

// followOutput follows the output as it is written, until it ends or the detail is
// closed.
func (m *model) followOutput(ctx context.Context, id string) tea.Cmd {
	return func() tea.Msg {
		err := m.o.Director.FollowOutput(ctx, id, 0, func(o api.Output) error {
			m.send(outputMsg{id, o})
			return ctx.Err()
		})
		return outputEnd{id, err}
	}
}

// print adds a part of the output. A part may end within an escape sequence or a
// character, so a line is made safe only once it is complete.
func (d *detail) print(o api.Output) {
	d.gap = d.gap || o.Truncated
	columns := d.rows.columns
	if d.rows.columns = 0; d.cut {
		columns = 0
	}
	text := d.part + o.Text
	end := strings.LastIndexByte(text, '\n')
	if o.Done && text != "" {
		end = len(text)
	}
	if end < 0 {
		if d.part = text; len(text) < maxLogLine {
			return
		}
		end = len(text) // the line is too long to wait for its end
	}
	d.part = strings.TrimPrefix(text[end:], "\n")
	d.log = append(d.log, plainLines(strings.TrimSuffix(text[:end], "\r"))...)
	if over := len(d.log) - maxLog; over > 0 {
		gone, _ := asRows(d.log[:over], columns)
		d.log, d.gap = append([]string(nil), d.log[over:]...), true
		d.top = max(0, d.top-len(gone))
	}
}

// aside is how many cells → moves along cut lines.
const aside = 20

// findOutput starts a search for a text in the output; "" ends it.
func (m *model) findOutput(text string) tea.Cmd {
	d := m.detail
	if d == nil {
		return nil
	}
	if d.find = nil; text == "" {
		return nil
	}
	d.tab, d.find, d.match = tabLog, regexp.MustCompile("(?i)"+regexp.QuoteMeta(text)), 0
	m.nextMatch(0)
	return nil
}

// matches returns the indexes of the lines that match.
func (m *model) matches() (lines []int) {
	for i, line := range m.logText() {
		if m.detail.find.MatchString(ansi.Strip(line)) {
			lines = append(lines, i)
		}
	}
	return lines
}

func (m *model) nextMatch(by int) {
	d, lines := m.detail, m.matches()
	if len(lines) == 0 {
		m.complain("The output has no match.")
		return
	}
	d.match = (min(d.match, len(lines)-1) + by + len(lines)) % len(lines)
	m.logRows() // sets rows.starts
	d.top, d.follow = d.rows.starts[lines[d.match]], false
}

func (m *model) logTitle() string {
	d := m.detail
	switch {
	case d.logErr != "":
		return "Output"
	case d.find != nil:
		n := len(m.matches())
		return fmt.Sprintf("Output, match %d of %d", min(d.match+1, n), n)
	case d.done || client.Ended(m.detailTask().State):
		return "Output, the end"
	case d.follow:
		return "Output, following"
	}
	return "Output, paused (f follows)"
}

// logText returns all lines of the output, safe to show.
func (m *model) logText() []string {
	d := m.detail
	var lines []string
	if d.gap {
		lines = append(lines, m.st.dim.Render("… earlier output is not shown: signalbox logs "+plain(d.id)))
	}
	lines = append(lines, d.log...)
	if d.part != "" {
		lines = append(lines, plain(d.part))
	}
	if d.logErr != "" {
		lines = append(lines, m.st.bad.Render("✗ "+d.logErr))
	}
	if len(lines) == 0 {
		return []string{m.st.dim.Render("It has printed nothing yet.")}
	}
	return lines
}

// logWindow returns the visible part of the output: the end while it follows.
func (m *model) logWindow(height int) []string {
	d, rows := m.detail, m.logRows()
	height = max(1, height)
	end := max(0, len(rows)-height)
	top := min(d.top, end)
	if d.follow {
		top = end
	}
	rows = slices.Clone(rows[top:min(len(rows), top+height)])
	for i := range rows {
		if d.left > 0 {
			rows[i] = ansi.TruncateLeft(rows[i], d.left, "")
		}
		if d.find != nil {
			rows[i] = d.find.ReplaceAllStringFunc(ansi.Strip(rows[i]), func(s string) string { return m.st.pick.Render(s) })
		}
	}
	return rows
}

// logRows returns the lines of the output, wrapped unless they are cut.
func (m *model) logRows() []string {
	d, columns := m.detail, m.detailWidth()
	if d.rows.columns != columns {
		d.rows.columns = columns
		if d.cut {
			columns = 0
		}
		d.rows.rows, d.rows.starts = asRows(m.logText(), columns)
	}
	return d.rows.rows
}

// asRows wraps lines to a number of cells; 0: no wrapping. starts has the index of the
// first row of each line.
func asRows(lines []string, columns int) (rows []string, starts []int) {
	for _, line := range lines {
		starts = append(starts, len(rows))
		if columns > 0 && width(line) > columns {
			rows = append(rows, strings.Split(ansi.Hardwrap(line, columns, true), "\n")...)
		} else {
			rows = append(rows, line)
		}
	}
	return rows, starts
}

package top

import (
	"fmt"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// bothFrom is the height of the body from which on gates and output are shown
// one above the other.
const bothFrom = 34

// detailLines are the facts, then the tabs.
func (m *model) detailLines() []string {
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

// tabHeight is how many lines the tab has, its rule apart.
func (m *model) tabHeight() int {
	above := len(m.facts()) + 1
	if m.bodyHeight() >= bothFrom {
		above += len(m.whyAbove()) + 1
	}
	return max(1, m.bodyHeight()-above)
}

// whyAbove are the gates above the output, which keeps some room.
func (m *model) whyAbove() []string {
	const output = 8
	why := m.whyLines()
	return why[:min(len(why), max(1, m.bodyHeight()-len(m.facts())-2-output))]
}

func (m *model) rule(title string) string {
	return m.st.dim.Render("── ") + m.st.bold.Render(title) + m.st.dim.Render(" "+strings.Repeat("─", max(0, m.width-4-width(title))))
}

// whyLines are the gates between the task and its start: sign, condition,
// numbers, and what can be done.
func (m *model) whyLines() []string {
	why := m.detail.why
	if why == nil {
		return []string{m.st.dim.Render("asking the director …")}
	}
	lines := wrap(plain(why.Summary), m.width)
	for _, g := range why.Gates {
		sign := m.st.good.Render("✓")
		if !g.OK {
			sign = m.st.bad.Render("✗")
		}
		text := plain(g.Text)
		if g.Detail != "" {
			text += m.st.dim.Render(" — " + plain(g.Detail))
		}
		lines = append(lines, hang(" "+sign+" ", text, m.width)...)
		if g.Cure != "" && !g.OK {
			lines = append(lines, hang("     → ", plain(g.Cure), m.width)...)
		}
	}
	if why.ETA != nil {
		lines = append(lines, fmt.Sprintf("Starts in %s, going by the last %d runs.", etaText(why.ETA), why.ETA.Runs))
	}
	return lines
}

// hang sets a text with a sign before its first line.
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

// etaText is a range of waiting, in minutes where that is near enough.
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

func (m *model) logTitle() string {
	d := m.detail
	switch {
	case d.logErr != "":
		return "Output"
	case d.done || client.Ended(m.detailTask().State):
		return "Output, the end"
	case d.follow:
		return "Output, following"
	}
	return "Output, paused (f follows)"
}

// logText are all lines of the output, safe to show.
func (m *model) logText() []string {
	d := m.detail
	var lines []string
	if d.gap {
		lines = append(lines, m.st.dim.Render("… what came before is no longer shown: signalbox logs "+plain(d.id)))
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

// logWindow is the part of the output that is shown: its end while it is
// followed.
func (m *model) logWindow(height int) []string {
	d, lines := m.detail, m.logText()
	height = max(1, height)
	end := max(0, len(lines)-height)
	top := min(d.top, end)
	if d.follow {
		top = end
	}
	return lines[top:min(len(lines), top+height)]
}

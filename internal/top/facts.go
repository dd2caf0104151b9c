package top

import (
	"fmt"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

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

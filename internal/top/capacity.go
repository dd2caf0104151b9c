package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// maxBar is the length of the longest bar of slots.
const maxBar = 20

// capacityLines shows the accounts with their limits, and the tool queues with their
// holders and waiters. The selected row shows all of its details.
func (m *model) capacityLines() []string {
	accounts := m.accounts()
	if len(m.board.Capacity)+len(accounts) == 0 {
		return []string{"", "  No tool queues. Give the director tools: " + m.st.bold.Render("signalbox up --tools FILE")}
	}
	longest := 0
	for i := range accounts {
		longest = max(longest, width(plain(accounts[i].Name)))
	}
	for i := range m.board.Capacity {
		longest = max(longest, width(plain(m.board.Capacity[i].Name)))
	}
	m.setNameColumn(longest)
	var lines, keys []string
	for i := range accounts {
		lines = append(lines, m.accountRow(&accounts[i])...)
		for len(keys) < len(lines) {
			keys = append(keys, accountKey(accounts[i].Name))
		}
	}
	for i := range m.board.Capacity {
		lines = append(lines, m.capacityRow(&m.board.Capacity[i])...)
		for len(keys) < len(lines) {
			keys = append(keys, m.board.Capacity[i].Name)
		}
	}
	return m.window(lines, keys, m.bodyHeight())
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
	if held := m.queueHeld(q); held != "" {
		figures += "  " + held
	}
	lines := []string{mark + m.st.bold.Render(fit(plain(q.Name), m.nameColumn-3)) + " " + style.Render(bar(q.InUse, q.Concurrent)) + "  " + figures}
	if !chosen {
		return append(lines, m.st.dim.Render(cut(m.indented(heldBy(q)), m.width)))
	}
	for _, h := range q.Holders {
		lines = append(lines, m.indented(m.holderText(h)))
	}
	for _, w := range q.Waiters {
		lines = append(lines, m.indented(m.st.warn.Render(joined(" · ", fmt.Sprintf("%d. waiting %s", w.Position, m.since(w.Since)), plain(w.Agent), plain(w.Tool), at(w.Director)))))
	}
	if q.WaitersNotShown > 0 {
		lines = append(lines, m.indented(fmt.Sprintf("and %d more", q.WaitersNotShown)))
	}
	if len(lines) == 1 {
		lines = append(lines, m.st.dim.Render(m.indented(nobody(q))))
	}
	return lines
}

// queueHeld shows the rate of a tool queue, and until when it is closed.
func (m *model) queueHeld(q *api.ToolQueue) string {
	rate := ""
	if r := q.Rate; r != nil {
		rate = fmt.Sprintf("%d/%s", r.N, time.Duration(r.PerSeconds*float64(time.Second)))
		if r.Next != nil && r.Next.After(m.now()) {
			rate += ", next in " + ago(r.Next.Sub(m.now()))
		}
	}
	if c := q.Closed; c != nil && c.Until.After(m.now()) {
		text := "◐ closed " + m.opens(&c.Until)
		if q.KeysClosed > 0 {
			text = fmt.Sprintf("◐ %d of %d keys closed %s", q.KeysClosed, q.Keys, m.opens(&c.Until))
		}
		return m.st.warn.Render(joined(" · ", text, plain(c.Why), rate))
	}
	return rate
}

func (m *model) indented(s string) string { return strings.Repeat(" ", m.nameColumn) + s }

// bar shows the used and free slots, scaled if there are more than maxBar.
func bar(inUse, all int) string {
	if all <= 0 {
		return ""
	}
	cells := min(all, maxBar)
	used := min(cells, (inUse*cells+all-1)/all)
	return strings.Repeat("■", used) + strings.Repeat("□", cells-used)
}

// heldBy names the holders of a tool queue's slots, each once.
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

// nobody is the text for a tool queue without holders that the reader may see.
func nobody(q *api.ToolQueue) string {
	if q.InUse > 0 {
		return "you may not see who holds its slots"
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

// at names the director of a call, if there are several.
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

// accountKey is the key of an account's row; no tool queue has such a name.
func accountKey(name string) string { return "account:" + name }

// accounts returns the accounts that are not open or have a known limit.
func (m *model) accounts() []api.Account {
	return slices.DeleteFunc(slices.Clone(m.board.Accounts), func(a api.Account) bool { return a.State == "open" && len(a.Windows) == 0 })
}

// opens says when a gate opens; nil: the time is not known.
func (m *model) opens(until *time.Time) string {
	switch {
	case until == nil:
		return "until someone opens it"
	case !until.After(m.now()):
		return "about to go on"
	}
	return "for another " + ago(until.Sub(m.now()))
}

// accountText describes the state of an account, with the words of the dashboard.
func (m *model) accountText(a *api.Account) string {
	switch a.State {
	case "closed":
		return m.st.warn.Render(joined(" ", "◐ closed", m.opens(a.Until)))
	case "trying":
		return m.st.busy.Render("◌ being tried: one task goes first")
	case "signed_out":
		return m.st.bad.Render("✗ signed out: a person must log in")
	}
	return m.st.good.Render("○ " + plain(a.State))
}

// accountRow shows an account with its fullest limit. The selected row shows all of its
// details.
func (m *model) accountRow(a *api.Account) []string {
	mark, chosen := "  ", accountKey(a.Name) == m.picks[pageCapacity].row
	if chosen {
		mark = m.st.bold.Render("▸ ")
	}
	var fullest api.AccountWindow
	limits := make([]string, len(a.Windows))
	for i, w := range a.Windows {
		if w.UsedPercent >= fullest.UsedPercent {
			fullest = w
		}
		limits[i] = fmt.Sprintf("%s %.0f%%", plain(w.Name), w.UsedPercent)
		if chosen && w.ResetsAt != nil && w.ResetsAt.After(m.now()) {
			limits[i] += ", resets in " + ago(w.ResetsAt.Sub(m.now()))
		}
	}
	shown, style := "", m.st.busy
	if len(a.Windows) > 0 {
		if fullest.UsedPercent >= 90 {
			style = m.st.warn
		}
		shown = style.Render(bar(int(min(fullest.UsedPercent, 100)), 100)) + "  "
	}
	lines := []string{mark + m.st.bold.Render(fit(plain(a.Name), m.nameColumn-3)) + " " + shown + m.accountText(a)}
	waits := ""
	if n := a.Waiting + a.Parked; n > 0 {
		waits = plural(n, "task waits", "tasks wait")
	}
	about := joined(" · ", "account", waits, plain(a.Login), plain(strings.Join(a.Agents, ", ")))
	if !chosen {
		return append(lines, m.st.dim.Render(cut(m.indented(joined(" · ", append([]string{about}, limits...)...)), m.width)))
	}
	lines = append(lines, m.st.dim.Render(m.indented(about)))
	for _, limit := range limits {
		lines = append(lines, m.indented(limit))
	}
	if a.State != "open" {
		if why := joined(": ", plain(a.Window), plain(a.Reason)); why != "" {
			lines = append(lines, m.indented(why))
		}
		lines = append(lines, m.st.dim.Render(m.indented("→ signalbox accounts open "+plain(a.Name))))
	}
	return lines
}

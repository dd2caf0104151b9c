package top

import tea "charm.land/bubbletea/v2"

// mouse handles the mouse: a click selects, a click on the selection opens it, and the
// wheel scrolls the list or text under the pointer.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	if m.asking != nil || m.form != nil || m.typing != nil || m.help {
		return nil
	}
	e := msg.Mouse()
	onDetail := m.detail != nil && (!m.wide() || e.X >= m.listWidth())
	switch msg.(type) {
	case tea.MouseWheelMsg:
		by := map[tea.MouseButton]int{tea.MouseWheelUp: -1, tea.MouseWheelDown: 1}[e.Button]
		switch {
		case by == 0: // aside
		case onDetail:
			m.scroll(3 * by)
		default:
			m.move(by)
		}
	case tea.MouseClickMsg:
		if e.Button == tea.MouseLeft {
			return m.click(e.X, e.Y, onDetail)
		}
	}
	return nil
}

func (m *model) click(x, y int, onDetail bool) tea.Cmd {
	head := 0
	if m.height >= frameFrom {
		head = len(m.head())
	}
	switch {
	case y == 0 && head > 0:
		begin := width("Signalbox") + 1
		for p := range pages {
			end := begin + width(p.tab())
			if x >= begin && x < end {
				return m.turn(p)
			}
			begin = end + 1
		}
		return nil
	case onDetail:
		m.beside = false
		return nil
	}
	line := y - head
	if line < 0 || line >= len(m.shown.keys) || m.shown.keys[line] == "" {
		return nil
	}
	if row := m.shown.keys[line]; row != m.picks[m.page].row {
		m.beside = m.detail != nil
		m.picks[m.page] = pick{row: row}
		m.keepPicks()
		return nil
	}
	return m.open(tabAuto)
}

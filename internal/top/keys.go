package top

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/client"
)

// key handles a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.asking != nil:
		return m.keyAsking(k)
	case m.form != nil:
		return m.keyForm(k)
	case m.typing != nil:
		return m.keyTyping(k)
	case m.help:
		m.help = false // any key
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "?":
		m.help = true
		return nil
	case "/":
		m.typeSearch()
		return nil
	case "n", "N":
		if m.inDetail() && m.detail.find != nil {
			m.nextMatch(map[string]int{"n": 1, "N": -1}[name])
			return nil
		}
	}
	switch name {
	case "n", "m", "c", "r", "t", "p", "R":
		return m.change(name)
	}
	if m.inDetail() {
		return m.keyDetail(name)
	}
	return m.keyList(name)
}

// keyList handles a key in a list.
func (m *model) keyList(name string) tea.Cmd {
	switch name {
	case "1", "2", "3":
		return m.turn(page(name[0] - '1'))
	case "tab":
		return m.turn((m.page + 1) % pages)
	case "shift+tab":
		return m.turn((m.page + pages - 1) % pages)
	case "j", "down":
		m.move(1)
	case "k", "up":
		m.move(-1)
	case "pgdown", "space", "ctrl+d":
		m.move(m.bodyHeight() / 2)
	case "pgup", "ctrl+u":
		m.move(-m.bodyHeight() / 2)
	case "g", "home":
		m.move(-1 << 20)
	case "G", "end":
		m.move(1 << 20)
	case "l", "right":
		m.moveAside(1)
	case "h", "left":
		m.moveAside(-1)
	case "enter":
		return m.open(tabAuto)
	case "w":
		return m.open(tabWhy)
	case "o":
		return m.open(tabLog)
	case "esc":
		switch {
		case m.page == pageTasks && m.search.query != "":
			return m.find("")
		case m.page == pageLanes:
			m.filter = ""
		}
	}
	return nil
}

func (m *model) turn(p page) tea.Cmd {
	m.closeDetail()
	m.page = p
	m.keepPicks()
	return m.refresh()
}

// maxTyped limits a typed line, in bytes.
const maxTyped = 4000

// edited returns a line of text after a key.
func edited(text string, k tea.KeyPressMsg) string {
	switch k.String() {
	case "backspace":
		runes := []rune(text)
		return string(runes[:max(0, len(runes)-1)])
	case "ctrl+u":
		return ""
	case "ctrl+w":
		text = strings.TrimRightFunc(text, unicode.IsSpace)
		return text[:strings.LastIndexFunc(text, unicode.IsSpace)+1]
	}
	if len(text)+len(k.Text) > maxTyped {
		return text
	}
	return text + plain(k.Text)
}

// paste inserts a pasted text only where text is being typed: a paste by mistake must
// not act as keys.
func (m *model) paste(text string) {
	var into *string
	switch {
	case m.asking != nil && m.asking.word != "":
		into = &m.asking.typed
	case m.form != nil:
		into = &m.form.fields[m.form.at].text
	case m.asking == nil && m.typing != nil:
		into = &m.typing.text
	}
	if text = plain(text); into != nil && len(*into)+len(text) <= maxTyped {
		*into += text
	}
}

// keyAsking handles a key while a question is asked. Only y, or the word that the
// question requires, confirms it.
func (m *model) keyAsking(k tea.KeyPressMsg) tea.Cmd {
	q := m.asking
	name := k.String()
	if name == "esc" {
		m.asking = nil
		m.say("Nothing was changed.")
		return nil
	}
	if q.word == "" {
		m.asking = nil
		if name == "y" || name == "Y" {
			return m.unlessStale(q.do)
		}
		m.say("Nothing was changed.")
		return nil
	}
	if name != "enter" {
		q.typed = edited(q.typed, k)
		return nil
	}
	if strings.TrimSpace(q.typed) != q.word {
		q.wrong = true
		return nil
	}
	m.asking = nil
	return m.unlessStale(q.do)
}

// unlessStale does a change only if the data is not stale.
func (m *model) unlessStale(do tea.Cmd) tea.Cmd {
	if m.stale() {
		m.complain("Nothing was changed: the data is %s old, and the director does not answer.", ago(m.age()))
		return nil
	}
	return do
}

// change starts a change: submit, chat, cancel, retry, pause or release.
func (m *model) change(name string) tea.Cmd {
	if m.stale() {
		return m.unlessStale(nil)
	}
	switch name {
	case "n":
		m.askSubmit()
	case "m":
		m.askChat()
	case "c":
		m.askCancel()
	case "r":
		m.askRetry()
	case "t":
		return m.toTop()
	case "p":
		return m.togglePause()
	case "R":
		m.askRelease()
	}
	return nil
}

func (m *model) askCancel() {
	t, ok := m.pickedTask()
	switch {
	case !ok:
		m.complain("Select a task first.")
	case client.Ended(t.State):
		m.complain("%s has ended: %s.", short(t.QueueID), t.State)
	default:
		m.asking = &question{
			title: "Cancel " + short(t.QueueID) + "?", lines: []string{plain(t.PromptPreview), cancelConsequence(t)},
			do: m.cancelTask(t.QueueID),
		}
	}
}

func (m *model) askRetry() {
	t, ok := m.pickedTask()
	switch {
	case !ok:
		m.complain("Select a task first.")
	case t.State == "":
		m.complain("%s is not known yet.", short(t.QueueID))
	case !client.Ended(t.State):
		m.complain("%s has not ended: only an ended task can be submitted again.", short(t.QueueID))
	default:
		m.asking = &question{
			title: "Submit " + short(t.QueueID) + " again?", lines: []string{plain(t.PromptPreview), "This makes a new task like this one."},
			do: m.retryTask(t.QueueID),
		}
	}
}

func (m *model) askRelease() {
	a, ok := m.pickedAgent()
	if !ok {
		m.complain("Select an agent first.")
		return
	}
	if len(a.Current) == 0 && a.InUse == 0 {
		m.complain("%s runs nothing: there is nothing to release.", a.Name)
		return
	}
	m.asking = &question{
		title: "Release " + plain(a.Name) + "?", lines: releaseConsequences(a),
		word: a.Name, do: m.releaseAgent(a.Name),
	}
}

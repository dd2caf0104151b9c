package top

import (
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// form is filled in before a submit or a change.
type form struct {
	title  string
	lines  []string
	fields []field
	at     int    // index of the field with the cursor
	wrong  string // why the input was rejected
	do     func(values []string) (tea.Cmd, error)
}

// field is one line of a form. The hint says what an empty field means.
type field struct{ label, text, hint string }

// line is typed at the bottom: a search, a filter or a text to find.
type line struct {
	label, text string
	change      func(text string) // after each key; nil: only Enter counts
	enter       func(text string) tea.Cmd
}

// keyForm handles a key in a form. Enter goes to the next field, and submits the
// form after the last one.
func (m *model) keyForm(k tea.KeyPressMsg) tea.Cmd {
	f := m.form
	last := len(f.fields) - 1
	switch name := k.String(); {
	case name == "esc":
		m.form = nil
		m.say("Nothing was changed.")
	case name == "tab" || name == "down" || name == "enter" && f.at < last:
		f.at = min(f.at+1, last)
	case name == "shift+tab" || name == "up":
		f.at = max(f.at-1, 0)
	case name == "enter":
		values := make([]string, len(f.fields))
		for i := range values {
			values[i] = strings.TrimSpace(f.fields[i].text)
		}
		do, err := f.do(values)
		if err != nil {
			f.wrong = err.Error()
			return nil
		}
		m.form = nil
		return m.unlessStale(do)
	default:
		f.fields[f.at].text = edited(f.fields[f.at].text, k)
	}
	return nil
}

func (m *model) formLines() []string {
	f := m.form
	lines := []string{"", "  " + m.st.bold.Render(f.title), ""}
	for _, text := range f.lines {
		lines = append(lines, hang("  ", text, m.width-2)...)
	}
	label := 0
	for i := range f.fields {
		label = max(label, width(f.fields[i].label))
	}
	for i := range f.fields {
		e := &f.fields[i]
		text := tail(e.text, m.width-label-6)
		if i == f.at {
			text += "█ "
		}
		if e.text == "" {
			text += m.st.dim.Render(e.hint)
		}
		lines = append(lines, "", "  "+m.st.bold.Render(fit(e.label, label))+"  "+text)
	}
	if f.wrong != "" {
		lines = append(lines, "")
		lines = append(lines, hang("  ", m.st.bad.Render("✗ "+plain(f.wrong)), m.width-2)...)
	}
	return lines
}

// keyTyping handles a key in the line at the bottom.
func (m *model) keyTyping(k tea.KeyPressMsg) tea.Cmd {
	l := m.typing
	switch k.String() {
	case "enter":
		m.typing = nil
		return l.enter(strings.TrimSpace(l.text))
	case "esc":
		m.typing = nil
		if l.change != nil {
			l.change("")
		}
		return nil
	}
	l.text = edited(l.text, k)
	if l.change != nil {
		l.change(l.text)
	}
	return nil
}

// typeSearch starts what / does in the current view: find, search or filter.
func (m *model) typeSearch() {
	switch {
	case m.inDetail():
		m.typing = &line{label: "Find in the output: ", enter: m.findOutput}
	case m.page == pageLanes:
		filter := func(text string) { m.filter = text; m.keepPicks() }
		m.typing = &line{label: "Filter: ", text: m.filter, change: filter, enter: func(text string) tea.Cmd { filter(text); return nil }}
	default:
		m.typing = &line{label: "Search: ", text: m.search.query, enter: func(query string) tea.Cmd {
			m.closeDetail()
			m.page = pageTasks
			return m.find(query)
		}}
	}
}

// askSubmit opens the form for a new task, with the selected agent filled in.
func (m *model) askSubmit() {
	a, _ := m.pickedAgent()
	m.form = &form{
		title:  "New task",
		fields: []field{{label: "Prompt"}, {label: "Agent", text: plain(a.Name), hint: "any agent"}},
		do: func(values []string) (tea.Cmd, error) {
			if values[0] == "" {
				return nil, errors.New("the prompt is empty")
			}
			return m.submitTask(api.SubmitRequest{Prompt: values[0], Agent: values[1], Source: "cli"}), nil
		},
	}
}

func (m *model) submitTask(req api.SubmitRequest) tea.Cmd {
	return func() tea.Msg {
		got, err := m.o.Director.Submit(m.ctx, req, client.SubmitOptions{})
		if err != nil {
			return failed("Not submitted", err)
		}
		return answer{text: fmt.Sprintf("Queued: %s (position %d)", short(got.QueueID), got.Position), open: got.QueueID}
	}
}

// askChat opens the form for a message to the selected agent, in its current
// conversation.
func (m *model) askChat() {
	a, ok := m.pickedAgent()
	if !ok {
		m.complain("Select an agent first.")
		return
	}
	m.form = &form{
		title: "Chat with " + plain(a.Name), lines: []string{"The message continues the agent's current conversation."},
		fields: []field{{label: "Message"}},
		do: func(values []string) (tea.Cmd, error) {
			if values[0] == "" {
				return nil, errors.New("the message is empty")
			}
			return m.chat(a.Name, values[0]), nil
		},
	}
}

func (m *model) chat(agent, message string) tea.Cmd {
	return func() tea.Msg {
		got, err := m.o.Director.Chat(m.ctx, agent, api.ChatRequest{Message: message}, client.ChatOptions{Async: true})
		switch {
		case err != nil:
			return failed("Not sent", err)
		case got.Accepted == nil:
			return answer{text: "Answered by " + agent}
		}
		return answer{text: "Sent to " + agent + ": " + short(got.Accepted.Execution.ID), open: got.Accepted.Execution.ID}
	}
}

// askPause opens the form for the reason and the duration of a pause.
func (m *model) askPause(queue string) {
	m.form = &form{
		title: "Pause " + plain(queue), lines: []string{"Running tasks go on. None starts until the pause ends."},
		fields: []field{{label: "Reason", hint: "none; others see it"}, {label: "Duration", hint: "until someone resumes it; such as 30m or 2h"}},
		do: func(values []string) (tea.Cmd, error) {
			req := api.PauseRequest{Queue: queue, Reason: values[0]}
			if values[1] != "" {
				d, err := time.ParseDuration(values[1])
				if err != nil || d < time.Second {
					return nil, fmt.Errorf("%q is not a duration such as 30m or 2h", values[1])
				}
				req.Seconds = int(d.Seconds())
			}
			return m.pause(req), nil
		},
	}
}

func (m *model) pause(req api.PauseRequest) tea.Cmd {
	return func() tea.Msg {
		if _, err := m.o.Director.Pause(m.ctx, req); err != nil {
			return failed("Not paused", err)
		}
		return answer{text: "Paused: " + req.Queue + ". Running tasks go on; p resumes it."}
	}
}

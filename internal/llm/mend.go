package llm

import (
	"strings"

	"github.com/signalbox-ai/signalbox/steplimit"
)

// mender copies the beginning of a JSON text and completes it where it ends.
// It checks only what it needs for that: the caller validates the result.
type mender struct {
	in    string
	at    int
	out   []byte
	wrong bool // the text is not the beginning of JSON
}

// maxNesting is far beyond usual arguments; it bounds the recursion.
const maxNesting = 1000

// over reports whether only space follows.
func (m *mender) over() bool {
	for m.at < len(m.in) && strings.IndexByte(" \t\r\n", m.in[m.at]) >= 0 {
		m.copy()
	}
	return m.at >= len(m.in)
}

func (m *mender) copy() {
	m.out = append(m.out, m.in[m.at])
	m.at++
}

// value copies a value, and reports whether enough of it was there to keep
// it.
func (m *mender) value(depth int) bool {
	if m.over() {
		return false
	}
	switch c := m.in[m.at]; {
	case depth > maxNesting:
		m.wrong = true
		return false
	case c == '{':
		m.group(depth, '}', m.member)
		return true
	case c == '[':
		m.group(depth, ']', m.value)
		return true
	case c == '"':
		return m.text(true)
	default:
		return m.word()
	}
}

// group copies an object or an array. A part that cannot be kept is removed
// again, with the comma before it.
func (m *mender) group(depth int, end byte, part func(int) bool) {
	m.copy()
	for first := true; ; first = false {
		mark := len(m.out)
		if m.over() {
			m.out = append(m.out, end)
			return
		}
		switch c := m.in[m.at]; {
		case c == end:
			m.copy()
			return
		case first:
		case c == ',':
			m.copy()
		default:
			m.wrong = true
			return
		}
		if !part(depth + 1) {
			m.out = append(m.out[:mark], end)
			m.at = len(m.in)
			return
		}
		if m.wrong {
			return
		}
	}
}

// member copies a name and its value.
func (m *mender) member(depth int) bool {
	if m.over() {
		return false
	}
	if m.in[m.at] != '"' {
		m.wrong = true
		return false
	}
	if !m.text(false) || m.over() {
		return false
	}
	if m.in[m.at] != ':' {
		m.wrong = true
		return false
	}
	m.copy()
	return m.value(depth)
}

// text copies a string. A cut string is closed if mayClose is set, without
// the incomplete escape at its end.
func (m *mender) text(mayClose bool) bool {
	m.copy()
	for m.at < len(m.in) {
		switch m.in[m.at] {
		case '"':
			m.copy()
			return true
		case '\\':
			n := 2
			if m.at+1 < len(m.in) && m.in[m.at+1] == 'u' {
				n = 6
			}
			if m.at+n > len(m.in) {
				m.at = len(m.in)
				break
			}
			for range n {
				m.copy()
			}
		default:
			m.copy()
		}
	}
	if mayClose {
		m.out = append(m.out, '"')
	}
	return mayClose
}

// word copies a number or a literal. A cut literal is completed; of a cut
// number the invalid end is removed.
func (m *mender) word() bool {
	rest := m.in[m.at:]
	n := strings.IndexAny(rest, ",]} \t\r\n")
	if n >= 0 {
		m.out = append(m.out, rest[:n]...)
		m.at += n
		return n > 0
	}
	m.at = len(m.in)
	for _, literal := range []string{"true", "false", "null"} {
		if strings.HasPrefix(literal, rest) {
			m.out = append(m.out, literal...)
			return true
		}
	}
	number := strings.TrimRight(rest, "+-.eE")
	m.out = append(m.out, number...)
	return number != ""
}

// Repair returns the conversation in a form that both vendors accept: each
// call of the assistant has one answer, directly after it and in the order of
// the calls. A call without an answer was in flight when everything stopped:
// its arguments are completed if they were cut, and it gets an answer that
// says so. Answers without a call and empty messages are removed. A valid
// conversation is returned unchanged, with the model's raw arguments.
func Repair(messages []Message) []Message {
	out := make([]Message, 0, len(messages))
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		switch m.Role {
		case RoleUser:
			if m.Text != "" {
				out = append(out, m)
			}
		case RoleAssistant:
			answers := map[string]Message{}
			for i+1 < len(messages) && messages[i+1].Role == RoleTool {
				i++
				if _, twice := answers[messages[i].ToolID]; !twice {
					answers[messages[i].ToolID] = messages[i]
				}
			}
			out = append(out, repairTurn(m, answers)...)
		}
	}
	return out
}

// repairTurn repairs one turn of the assistant with the answers to its calls.
func repairTurn(m Message, answers map[string]Message) []Message {
	seen := map[string]bool{}
	var calls []ToolCall
	var told []Message
	for _, c := range m.ToolCalls {
		if c.ID == "" || c.Name == "" || seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		a, ok := answers[c.ID]
		if !ok {
			c.Arguments = RepairArguments(c.Arguments)
			a = Message{Role: RoleTool, ToolID: c.ID, ToolName: c.Name, Text: steplimit.AbortedText, IsError: true}
		}
		calls = append(calls, c)
		told = append(told, a)
	}
	m.ToolCalls = calls
	if m.Text == "" && len(calls) == 0 {
		return nil
	}
	return append([]Message{m}, told...)
}

// RepairArguments completes arguments that were cut off in the middle to a JSON
// object: it closes what is open, drops incomplete parts, and keeps everything
// else byte for byte. If that is impossible, it returns {}.
func RepairArguments(raw string) string {
	if checkObject(raw) == nil {
		return raw
	}
	trimmed := strings.TrimSpace(raw)
	if !strings.HasPrefix(trimmed, "{") {
		return "{}"
	}
	m := mender{in: trimmed}
	m.value(0)
	if out := string(m.out); !m.wrong && checkObject(out) == nil {
		return out
	}
	return "{}"
}

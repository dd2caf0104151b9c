package llm

import (
	"strings"

	"github.com/signalbox-ai/signalbox/steplimit"
)

// Repair returns the conversation as both vendors take it: each call of the
// assistant has one answer, right after it and in the order of the calls. A
// call that has none was under way when everything stopped: its arguments are
// completed where they were cut, and it is answered so. Answers to nothing and
// messages that say nothing are left out. A conversation that needs no repair
// comes back as it is, with the raw arguments of the model.
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

// repairTurn is one turn of the assistant with the answers to its calls.
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

// RepairArguments completes the arguments of a call that were cut off in the
// middle, so that they are a JSON object: what is open is closed, what is half
// said is left out, all else stays byte for byte. What cannot be completed is {}.
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

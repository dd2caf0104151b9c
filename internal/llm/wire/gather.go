package wire

import (
	"errors"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// maxCalls bounds the tool calls of one turn.
const maxCalls = 1024

var errCalls = errors.New("the model asks for more than 1024 tools in one turn")

// Gather puts a turn together from its parts.
type Gather struct {
	names *Names
	emit  func(string)
	text  strings.Builder
	calls []*Call
	at    map[int64]*Call
}

// Call is a tool call whose arguments are still coming.
type Call struct {
	ID, Name  string
	Arguments strings.Builder
}

// NewGather makes one that hands on the text as it comes.
func NewGather(names *Names, emit func(string)) *Gather {
	return &Gather{names: names, emit: emit, at: map[int64]*Call{}}
}

// Text takes a part of the text.
func (g *Gather) Text(delta string) {
	if delta == "" {
		return
	}
	g.text.WriteString(delta)
	if g.emit != nil {
		g.emit(delta)
	}
}

// At is the call with that index, nil if there is none yet.
func (g *Gather) At(index int64) *Call { return g.at[index] }

// Begin begins a call, with that index from now on.
func (g *Gather) Begin(index int64) (*Call, error) {
	if len(g.calls) >= maxCalls {
		return nil, errCalls
	}
	c := &Call{}
	g.calls = append(g.calls, c)
	g.at[index] = c
	return c, nil
}

// Message is what has come so far, with the tools' own names.
func (g *Gather) Message() llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Text: g.text.String()}
	for _, c := range g.calls {
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: c.ID, Name: g.names.Tool(c.Name), Arguments: c.Arguments.String()})
	}
	return m
}

package wire

import (
	"errors"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// Bounds of one turn.
const (
	maxCalls   = 1024
	maxContent = 8 << 20 // bytes of text and arguments; a million tokens are about half of that
)

var (
	errCalls   = errors.New("the model asks for more than 1024 tools in one turn")
	errContent = errors.New("the model says more than 8 MiB in one turn")
)

// Gather puts a turn together from its parts.
type Gather struct {
	names *Names
	emit  func(string)
	text  strings.Builder
	calls []*Call
	at    map[int64]*Call
	size  int
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
func (g *Gather) Text(delta string) error {
	if delta == "" {
		return nil
	}
	if err := g.grow(delta); err != nil {
		return err
	}
	g.text.WriteString(delta)
	if g.emit != nil {
		g.emit(delta)
	}
	return nil
}

// Named notes what a call is called, unless it is known.
func (g *Gather) Named(c *Call, id, name string) error {
	if c.ID == "" {
		c.ID = id
	}
	if c.Name == "" {
		c.Name = name
	}
	return g.grow(id + name)
}

// Arguments takes a part of a call's arguments.
func (g *Gather) Arguments(c *Call, delta string) error {
	if err := g.grow(delta); err != nil {
		return err
	}
	c.Arguments.WriteString(delta)
	return nil
}

func (g *Gather) grow(delta string) error {
	if g.size += len(delta); g.size > maxContent {
		return errContent
	}
	return nil
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

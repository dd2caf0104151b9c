package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

const (
	maxAnswer  = 64 << 20 // per turn: some endpoints send half a kilobyte per token
	maxRefusal = 1 << 20
)

// ErrTooMuch says that an endpoint sent more than any turn can be.
var ErrTooMuch = errors.New("the endpoint answers more than 64 MiB in one turn")

// bound limits how much of a body can be read.
func bound(res *http.Response) {
	if res.StatusCode >= http.StatusBadRequest {
		res.Body = cut{io.LimitReader(res.Body, maxRefusal), res.Body}
	} else {
		res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer}
	}
}

// unended explains why an answer has no end. Most answers that are not event
// streams come from something other than the intended endpoint.
func unended(res *http.Response) error {
	if res.StatusCode >= 300 {
		to := "elsewhere"
		if u, err := res.Location(); err == nil {
			to = "to " + u.Scheme + "://" + u.Host + u.Path
		}
		return fmt.Errorf("it answered %d, which sends requests on %s; they are sent to no other place than the base URL", res.StatusCode, to)
	}
	kind := res.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(kind); kind == "" || err == nil && media == "text/event-stream" {
		return errUnended
	}
	return fmt.Errorf("it answered with %q, not with a stream of events", kind)
}

var errUnended = errors.New("it broke off before its end")

type cut struct {
	io.Reader
	io.Closer
}

type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooMuch
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// Limits of one turn.
const (
	maxCalls   = 1024
	maxContent = 8 << 20 // bytes of text and arguments; a million tokens are about half of that
)

var (
	errCalls   = errors.New("the model asks for more than 1024 tools in one turn")
	errContent = errors.New("the model says more than 8 MiB in one turn")
)

// Gather assembles a turn from its parts.
type Gather struct {
	names *Names
	emit  func(string)
	text  strings.Builder
	calls []*Call
	at    map[int64]*Call
	size  int
}

// Call is a tool call whose arguments are still arriving.
type Call struct {
	ID, Name  string
	Arguments strings.Builder
}

// NewGather makes a Gather that passes the text on as it arrives.
func NewGather(names *Names, emit func(string)) *Gather {
	return &Gather{names: names, emit: emit, at: map[int64]*Call{}}
}

// Text adds a part of the text.
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

// Named sets the ID and name of a call, unless they are known.
func (g *Gather) Named(c *Call, id, name string) error {
	c.ID = cmp.Or(c.ID, id)
	c.Name = cmp.Or(c.Name, name)
	return g.grow(id + name)
}

// Arguments adds a part of a call's arguments.
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

// At is the call with this index, nil if there is none yet.
func (g *Gather) At(index int64) *Call { return g.at[index] }

// Begin begins a call, which has this index from now on.
func (g *Gather) Begin(index int64) (*Call, error) {
	if len(g.calls) >= maxCalls {
		return nil, errCalls
	}
	c := &Call{}
	g.calls = append(g.calls, c)
	g.at[index] = c
	return c, nil
}

// Message is what has arrived so far, with the tools' own names.
func (g *Gather) Message() llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Text: g.text.String()}
	for _, c := range g.calls {
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: c.ID, Name: g.names.Tool(c.Name), Arguments: c.Arguments.String()})
	}
	return m
}

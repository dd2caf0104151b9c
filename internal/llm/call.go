package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/steplimit"
)

const (
	lastTurnText = "The tool was not executed: this was the last turn, in which no tools may be called."
	brokenText   = "The tool was not executed: the model's answer broke off before its end."
	unnamed      = "unnamed" // a call that names no tool; both vendors demand a name
	namesTold    = 50        // of the tools that there are, to a model that called another
)

// call executes one call, once the step limit lets it.
func (r *run) call(ctx context.Context, c steplimit.Call) (steplimit.Answer, error) {
	if e := r.l.Events.ToolBegan; e != nil {
		r.say(func() { e(r.turn, ToolCall(c)) })
	}
	if !r.known[c.Name] {
		return steplimit.Answer{Text: r.noSuchTool(c.Name), IsError: true, NotRun: true}, nil
	}
	args := c.Arguments
	if strings.TrimSpace(args) == "" {
		args = "{}" // how some models call a tool that takes nothing
	}
	if err := checkObject(args); err != nil {
		return steplimit.Answer{Text: r.badArguments(c.Name, err), IsError: true, NotRun: true}, nil
	}
	text, isError, err := r.l.Tools.Call(ctx, ToolCall{ID: c.ID, Name: c.Name, Arguments: args})
	return steplimit.Answer{Text: r.fit(text), IsError: isError}, err
}

func (r *run) noSuchTool(name string) string {
	if len(r.tools) == 0 {
		return fmt.Sprintf("There is no tool %q: there are no tools.", name)
	}
	names := make([]string, 0, len(r.tools))
	for _, t := range r.tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	more := ""
	if len(names) > namesTold {
		more = fmt.Sprintf(" and %d more", len(names)-namesTold)
		names = names[:namesTold]
	}
	return fmt.Sprintf("There is no tool %q. The tools are: %s%s.", name, strings.Join(names, ", "), more)
}

func (r *run) badArguments(name string, err error) string {
	text := fmt.Sprintf("The tool %s was not executed: its arguments are not a JSON object: %v.", name, err)
	if r.cut {
		return text + " Your turn was cut off at its limit of tokens; call the tool again with shorter arguments."
	}
	return text + " Call it again with arguments that fit its schema."
}

// checkObject says what keeps raw from being one JSON object.
func checkObject(raw string) error {
	d := json.NewDecoder(strings.NewReader(raw))
	var v json.RawMessage
	err := d.Decode(&v)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("they end too early")
	case err != nil:
		return err
	case !bytes.HasPrefix(bytes.TrimSpace(v), []byte("{")):
		return errors.New("they are another kind of value")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows after the object")
	}
	return nil
}

// fit makes what a tool said fit into the conversation.
func (r *run) fit(text string) string {
	most, n := orDefault(r.l.MaxToolText, DefaultMaxToolText), len(text)
	if n <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.ToValidUTF8(text[:most], "\uFFFD") +
		fmt.Sprintf("\n[Cut off here: the tool answered %d bytes, of which these are the first %d. Ask it for less at a time.]", n, most)
}

// ModelError is what a model's endpoint says against a request, or what kept
// the request from it. It never has the key in it.
type ModelError struct {
	Status  int    // of HTTP; 0: there was no answer, or it broke off
	Code    string // the vendor's word for it, may be empty
	Message string
	TooLong bool  // the conversation is longer than the model takes
	Err     error // cause; nil where the endpoint answered
}

// Error says what was wrong and what to do.
func (e *ModelError) Error() string {
	var b strings.Builder
	switch {
	case e.TooLong:
		b.WriteString("the conversation is too long for the model")
	case e.Status == 0:
		b.WriteString("the model's answer could not be had")
	default:
		fmt.Fprintf(&b, "the model's endpoint answered %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + strings.TrimRight(e.Message, ".\n "))
	}
	if hint := e.hint(); hint != "" {
		b.WriteString("; " + hint)
	}
	return b.String()
}

func (e *ModelError) Unwrap() error { return e.Err }

func (e *ModelError) hint() string {
	switch {
	case e.TooLong:
		return "begin a new session"
	case e.Status == 401 || e.Status == 403:
		return "check the API key and what it may do"
	case e.Status == 404:
		return "check the model's name and the base URL"
	case e.Status == 429:
		return "the vendor takes no more requests for now; try again later"
	case e.Status >= 500:
		return "try again later"
	case e.Status == 0 && e.Err != nil:
		return "check the base URL and that the endpoint is there"
	}
	return ""
}

// ObjectArguments are the arguments of an earlier call as an endpoint takes
// them back: a JSON object. Those that are one stay byte for byte. The model
// sees its own words again where they are none, and has been told so.
func ObjectArguments(raw string) string {
	if strings.TrimSpace(raw) == "" {
		return "{}"
	}
	if checkObject(raw) == nil {
		return raw
	}
	b, err := json.Marshal(map[string]string{"invalid_arguments": raw})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// Role is who said a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role      Role       `json:"role"`
	Text      string     `json:"text,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"` // of the assistant
	ToolID    string     `json:"tool_id,omitempty"`    // of RoleTool: the call that it answers
	ToolName  string     `json:"tool_name,omitempty"`
	IsError   bool       `json:"is_error,omitempty"`
}

// ToolCall is what the model asks for. Arguments is its raw string, which
// need not be JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is what the model is told of a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments
}

// Request is one turn.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Tools     []Tool
	NoTools   bool // the model may call none in this turn
	MaxTokens int
}

// Turn is what the model answered.
type Turn struct {
	Message      Message
	StopReason   StopReason
	InputTokens  int64 // with those read from and written to the vendor's cache
	OutputTokens int64

	CacheReadTokens, CacheWriteTokens int64 // of the input, as far as the vendor tells
}

// StopReason is why a turn ended. Models translate their vendor's word into
// one of these where there is one, and hand on any other.
type StopReason string

// The reasons that mean something to the loop.
const (
	StopEnd     StopReason = "end"        // the model has said what it had to say
	StopTools   StopReason = "tools"      // it asks for tools
	StopLength  StopReason = "max_tokens" // it was cut off
	StopRefusal StopReason = "refusal"    // it, or the vendor's filter, will not answer
)

// Model speaks one vendor's protocol.
type Model interface {
	// Stream runs one turn and hands on the text as it comes. When ctx ends in
	// the middle, or the answer breaks off, it returns the part that came,
	// together with the error; the arguments of its last call may then be cut.
	// What the endpoint says against it is a *ModelError.
	Stream(ctx context.Context, r Request, text func(delta string)) (Turn, error)
}

// Toolset runs tools. Both methods are safe for use from several goroutines.
type Toolset interface {
	// Tools is asked before each turn, for the list may change; an order that
	// stays the same spares the vendor's cache. Of two with one name the first
	// counts.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs one tool. What the tool answered, also its own failure, is
	// text; an error says that it could not be run at all, and the model is
	// told its text. Arguments is a JSON object, in the model's own bytes. It
	// must come back soon after ctx ends.
	Call(ctx context.Context, c ToolCall) (text string, isError bool, err error)
}

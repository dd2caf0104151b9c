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
	unnamed      = "unnamed" // a call that names no tool; both vendors require a name
	namesTold    = 50        // number of tool names listed to a model that called an unknown one
)

// call executes one call once the step limit admits it.
func (r *run) call(ctx context.Context, c steplimit.Call) (steplimit.Answer, error) {
	if e := r.l.Events.ToolBegan; e != nil {
		r.say(func() { e(r.turn, ToolCall(c)) })
	}
	if !r.known[c.Name] {
		return steplimit.Answer{Text: r.noSuchTool(c.Name), IsError: true, NotRun: true}, nil
	}
	args := c.Arguments
	if strings.TrimSpace(args) == "" {
		args = "{}" // some models call a tool without arguments like this
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

// checkObject returns the reason why raw is not a single JSON object.
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

// fit shortens a tool's answer to fit into the conversation.
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

// ModelError is an error of a model's endpoint, or the reason why no request
// reached it. It never contains the key.
type ModelError struct {
	Status  int    // HTTP status; 0: there was no answer, or it broke off
	Code    string // the vendor's error code, may be empty
	Message string
	TooLong bool  // the conversation is longer than the model accepts
	Err     error // cause; nil if the endpoint answered
}

// Error says what is wrong and what to do.
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

// ObjectArguments returns the arguments of an earlier call in a form that an
// endpoint accepts: a JSON object. Valid objects stay unchanged byte for
// byte. Otherwise the model sees its own text, and was told that it was
// invalid.
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

// Role is the author of a message.
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
	ToolCalls []ToolCall `json:"tool_calls,omitempty"` // for RoleAssistant
	ToolID    string     `json:"tool_id,omitempty"`    // for RoleTool: the answered call
	ToolName  string     `json:"tool_name,omitempty"`
	IsError   bool       `json:"is_error,omitempty"`
}

// ToolCall is a call requested by the model. Arguments is its raw string,
// which may not be valid JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is the description of a tool for the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments
}

// Request is the request for one turn.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Tools     []Tool
	NoTools   bool // the model may not call tools in this turn
	MaxTokens int
}

// Turn is the model's answer.
type Turn struct {
	Message      Message
	StopReason   StopReason
	InputTokens  int64 // including those read from and written to the vendor's cache
	OutputTokens int64

	CacheReadTokens, CacheWriteTokens int64 // of the input, as far as the vendor reports them
}

// StopReason is why a turn ended. Models translate their vendor's value to
// one of these if possible, and pass on any other.
type StopReason string

// The reasons that the loop distinguishes.
const (
	StopEnd     StopReason = "end"        // the model has finished
	StopTools   StopReason = "tools"      // it calls tools
	StopLength  StopReason = "max_tokens" // the answer was cut off
	StopRefusal StopReason = "refusal"    // the model, or the vendor's filter, refuses to answer
)

// Model implements a vendor's protocol.
type Model interface {
	// Stream runs one turn and passes the text on as it arrives. If ctx ends in
	// the middle, or the answer breaks off, it returns the partial turn together
	// with the error; the arguments of its last call may then be cut. An error
	// response of the endpoint is a *ModelError.
	Stream(ctx context.Context, r Request, text func(delta string)) (Turn, error)
}

// Toolset runs tools. Both methods are safe for concurrent use.
type Toolset interface {
	// Tools is called before each turn, because the list may change; a stable
	// order helps the vendor's cache. If two tools have the same name, the first
	// one counts.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs a tool. The tool's answer, including its own failure, is text. An
	// error says that the tool could not be run at all; its text goes to the
	// model. Arguments is a JSON object, in the model's own bytes. Call must
	// return soon after ctx ends.
	Call(ctx context.Context, c ToolCall) (text string, isError bool, err error)
}

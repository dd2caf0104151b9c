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

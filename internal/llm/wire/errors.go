package wire

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/llm"
)

// maxErrorText bounds what an endpoint says in an error: some answer a page.
const maxErrorText = 2 << 10

// Scrub makes what came from an endpoint fit for an error: without the
// secrets, and not longer than a person reads.
func Scrub(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
	}
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + " …"
	}
	return text
}

// refusal is what an endpoint says against a request: the body of an answer with
// that status, or 0 and an event in the middle of a turn.
func refusal(status int, body []byte, secrets ...string) *llm.ModelError {
	var known struct {
		Error struct{ Code, Type Text } `json:"error"`
	}
	_ = json.Unmarshal(body, &known) // what has no such form has no code
	code, message := string(cmp.Or(known.Error.Code, known.Error.Type)), said(body)
	e := &llm.ModelError{Status: status, Code: Scrub(code, secrets...), Message: Scrub(message, secrets...)}
	e.TooLong = tooLong(code, message)
	return e
}

// said finds the sentence for people in the body of an error. Compatible
// endpoints put it in different places.
func said(body []byte) string {
	var known struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &known) != nil {
		return string(body)
	}
	var text string
	for _, part := range []json.RawMessage{known.Error, known.Detail} {
		var deeper struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(part, &text) == nil && text != "" {
			return text
		}
		if json.Unmarshal(part, &deeper) == nil && deeper.Message != "" {
			return deeper.Message
		}
	}
	if known.Message != "" {
		return known.Message
	}
	return string(body)
}

// tooLong knows the words of several endpoints for a conversation that does
// not fit: only OpenAI itself has a code for it.
func tooLong(code, message string) bool {
	words := []string{"prompt is too long", "maximum context length", "context length exceeded", "exceeds the context", "context window", "context size"}
	has := func(words string) bool { return strings.Contains(strings.ToLower(message), words) }
	return code == "context_length_exceeded" || code == "model_context_window_exceeded" || slices.ContainsFunc(words, has)
}

// errLine says in our words what the reader of events says in its own.
var errLine = errors.New("one line of its answer is longer than any event can be")

// broken is an answer that did not come, or not to its end. The end of ctx
// stays what it is.
func broken(ctx context.Context, err error, secrets ...string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errCalls) || errors.Is(err, errContent) || errors.Is(err, ErrTooMuch) {
		return &llm.ModelError{Message: err.Error()} // it is there, and says too much
	}
	if errors.Is(err, bufio.ErrTooLong) {
		err = errLine
	}
	text := err.Error()
	var u *url.Error
	if errors.As(err, &u) { // its URL may have a key in its query
		text = u.Err.Error()
		if at, parsed := url.Parse(u.URL); parsed == nil {
			text = at.Scheme + "://" + at.Host + at.Path + ": " + text
		}
	}
	return &llm.ModelError{Message: Scrub(text, secrets...), Err: plain{Scrub(text, secrets...), err}}
}

// plain hides the text of a cause, which may have secrets, and keeps its kind.
type plain struct {
	text string
	err  error
}

func (p plain) Error() string { return p.text }

func (p plain) Is(target error) bool { return errors.Is(p.err, target) }

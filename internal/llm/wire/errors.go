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

// maxErrorText bounds an endpoint's error text, in bytes: some send a web
// page.
const maxErrorText = 2 << 10

// Scrub prepares text of an endpoint for an error: it removes secrets and
// shortens the text.
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

// refusal is an error of an endpoint: the body of a response with this status,
// or 0 and an event in the middle of a turn.
func refusal(status int, body []byte, secrets ...string) *llm.ModelError {
	var known struct {
		Error struct{ Code, Type Text } `json:"error"`
	}
	_ = json.Unmarshal(body, &known) // other forms have no code
	code, message := string(cmp.Or(known.Error.Code, known.Error.Type)), said(body)
	e := &llm.ModelError{Status: status, Code: Scrub(code, secrets...), Message: Scrub(message, secrets...)}
	e.TooLong = tooLong(code, message)
	return e
}

// said finds the message for people in the body of an error. Compatible
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

// tooLong recognizes several endpoints' messages about a conversation that is
// too long: only OpenAI itself has a code for it.
func tooLong(code, message string) bool {
	words := []string{"prompt is too long", "maximum context length", "context length exceeded", "exceeds the context", "context window", "context size"}
	has := func(words string) bool { return strings.Contains(strings.ToLower(message), words) }
	return code == "context_length_exceeded" || code == "model_context_window_exceeded" || slices.ContainsFunc(words, has)
}

// errLine replaces the event reader's own error about a long line.
var errLine = errors.New("one line of its answer is longer than any event can be")

// broken is the error of an answer that did not arrive or broke off. The
// error of ctx is returned unchanged.
func broken(ctx context.Context, err error, secrets ...string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errCalls) || errors.Is(err, errContent) || errors.Is(err, ErrTooMuch) {
		return &llm.ModelError{Message: err.Error()} // the endpoint is up, but sends too much
	}
	if errors.Is(err, bufio.ErrTooLong) {
		err = errLine
	}
	text := err.Error()
	var u *url.Error
	if errors.As(err, &u) { // the URL's query may contain a key
		text = u.Err.Error()
		if at, parsed := url.Parse(u.URL); parsed == nil {
			text = at.Scheme + "://" + at.Host + at.Path + ": " + text
		}
	}
	return &llm.ModelError{Message: Scrub(text, secrets...), Err: plain{Scrub(text, secrets...), err}}
}

// plain hides the text of a cause, which may contain secrets, and keeps its
// kind.
type plain struct {
	text string
	err  error
}

func (p plain) Error() string { return p.text }

func (p plain) Is(target error) bool { return errors.Is(p.err, target) }

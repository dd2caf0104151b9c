package httpio

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// Outcome is what an error code means to a caller.
type Outcome struct {
	Status    int
	retryable bool   // the same request may succeed later
	hint      string // what to do, if the error itself has no hint
	Hidden    bool   // the error's text is for the log only
}

// Statuses maps error codes to HTTP statuses.
var Statuses = map[signalbox.Code]Outcome{
	signalbox.CodeValidation:          {Status: http.StatusBadRequest},
	signalbox.CodeNotFound:            {Status: http.StatusNotFound},
	signalbox.CodeQueueFull:           {Status: http.StatusServiceUnavailable, retryable: true, hint: "try again later, or cancel what is no longer needed; signalbox submit --wait-for-room waits for room"},
	signalbox.CodeIdempotency:         {Status: http.StatusUnprocessableEntity, hint: "use another Idempotency-Key for another task"},
	signalbox.CodeStaleFence:          {Status: http.StatusConflict},
	signalbox.CodeConflict:            {Status: http.StatusConflict},
	signalbox.CodeAlreadyEnded:        {Status: http.StatusConflict},
	signalbox.CodeAgentBusy:           {Status: http.StatusConflict, retryable: true},
	signalbox.CodeAgentDown:           {Status: http.StatusServiceUnavailable, retryable: true, hint: "signalbox agents shows which agents are connected; overflow persist lets a chat wait for its agent"},
	signalbox.CodeCallCycle:           {Status: http.StatusConflict, hint: "send Prefer: respond-async and end without waiting for the answer, or use the bypass of the other agent"},
	signalbox.CodeCallDepth:           {Status: http.StatusConflict},
	signalbox.CodeUnsupported:         {Status: http.StatusNotImplemented},
	signalbox.CodeUnauthorized:        {Status: http.StatusUnauthorized, hint: "send Authorization: Bearer TOKEN; the command line of the user who started the director finds it by itself; otherwise use --token-file or SIGNALBOX_TOKEN"},
	signalbox.CodeForbidden:           {Status: http.StatusForbidden},
	signalbox.CodeRateLimited:         {Status: http.StatusTooManyRequests, retryable: true},
	signalbox.CodeBudget:              {Status: http.StatusPaymentRequired, hint: "signalbox budgets lists the budgets and when they open"},
	signalbox.CodeTooLarge:            {Status: http.StatusRequestEntityTooLarge},
	signalbox.CodeUnsupportedMedia:    {Status: http.StatusUnsupportedMediaType, hint: "send Content-Type: application/json"},
	signalbox.CodeMethodNotAllowed:    {Status: http.StatusMethodNotAllowed},
	signalbox.CodeUnresolvedReference: {Status: http.StatusConflict, hint: "give more of the id"},
	signalbox.CodeToolDown:            {Status: http.StatusServiceUnavailable, retryable: true, hint: "signalbox tools servers shows the states of the servers"},
	signalbox.CodeToolLost:            {Status: http.StatusBadGateway}, // the call may have had an effect, as with a timeout
	signalbox.CodeToolTimeout:         {Status: http.StatusGatewayTimeout},
	signalbox.CodeToolFailed:          {Status: http.StatusBadGateway},
	signalbox.CodeToolQueue:           {Status: http.StatusServiceUnavailable, retryable: true, hint: "signalbox tools queues shows who holds the queue and who waits"},
	signalbox.CodeToolQueueOut:        {Status: http.StatusGatewayTimeout, retryable: true, hint: "signalbox tools queues shows who holds the queue and who waits"},
	signalbox.CodeStoreFailed:         {Status: http.StatusInternalServerError, retryable: true, Hidden: true},
	signalbox.CodeStoreFull:           {Status: http.StatusInsufficientStorage, retryable: true, Hidden: true},
	signalbox.CodeStoreCorrupt:        {Status: http.StatusInternalServerError, Hidden: true},
	signalbox.CodeUnavailable:         {Status: http.StatusServiceUnavailable, retryable: true},
	signalbox.CodeInternal:            {Status: http.StatusInternalServerError, Hidden: true},
}

// hiddenText is the text for callers of errors whose own text is for the log only.
var hiddenText = map[signalbox.Code]string{
	signalbox.CodeStoreFailed:  "The store could not do it; nothing was changed.",
	signalbox.CodeStoreFull:    "Nothing was stored: the store has no room left.",
	signalbox.CodeStoreCorrupt: "A row in the store cannot be read; it was left as it is.",
	signalbox.CodeInternal:     "Something went wrong inside the director.",
}

// Refusal is an error with additional fields for an HTTP answer.
type Refusal struct {
	Err        *signalbox.Error
	Hint       string
	RetryAfter int  // seconds
	Plain      bool // the text is for the caller, whatever the code, and a retry does not help
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Refuse makes an error with a hint.
func Refuse(code signalbox.Code, hint, format string, args ...any) error {
	return &Refusal{Err: signalbox.Errorf(code, format, args...), Hint: hint}
}

// ErrorBody returns the body of the answer for an error, and the meaning of its code. An
// error without a known code is an internal error.
func ErrorBody(err error) (api.Error, Outcome) {
	var plain *signalbox.Error
	if !errors.As(err, &plain) {
		plain = &signalbox.Error{Code: signalbox.CodeInternal, Err: err}
	}
	what, ok := Statuses[plain.Code]
	if !ok {
		what = Statuses[signalbox.CodeInternal]
		plain = &signalbox.Error{Code: signalbox.CodeInternal, Err: err}
	}
	body := api.Error{
		Error: string(plain.Code), Message: plain.Message, Field: plain.Field, Hint: what.hint, Retryable: what.retryable,
	}
	if what.Hidden {
		body.Message, body.Field = hiddenText[plain.Code], ""
		body.Hint = "the director's log has the cause under the request id"
		if plain.Code == signalbox.CodeStoreFull {
			body.Hint = "the operator of the director must make room on the disk of its store (or raise maxmemory of Redis, or keep ended tasks for a shorter time); then send it again"
		}
	}
	if plain.RetryAfter > 0 {
		body.RetryAfter = int((plain.RetryAfter + time.Second - 1) / time.Second)
	}
	if extra, ok := errors.AsType[*Refusal](err); ok {
		if extra.Hint != "" {
			body.Hint = extra.Hint
		}
		body.RetryAfter = cmp.Or(extra.RetryAfter, body.RetryAfter)
		if extra.Plain {
			body.Message, body.Retryable = plain.Message, false
		}
	}
	return body, what
}

// NoContent answers 204. It returns nil, for the handler to return.
func NoContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Answer writes v as JSON. It returns nil, for the handler to return.
func Answer(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil { // the types of the api package always marshal
		return fmt.Errorf("encode an answer as JSON: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	ExtendWriteDeadline(w)
	w.WriteHeader(status)
	w.Write(append(data, '\n')) // an error means that the caller is gone
	return nil
}

// AnswerOr answers 200 with v, or returns err.
func AnswerOr(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return Answer(w, http.StatusOK, v)
}

// Clip makes a caller's text fit to be shown: one line of limited length.
func Clip(s string) string {
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// kindOf names the kind of a decoded JSON value, for messages.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	case *strictjson.Object:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

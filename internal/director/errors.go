package director

import (
	"cmp"
	"context"
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

// outcome is what an error code means to a caller.
type outcome struct {
	status    int
	retryable bool   // the same request may succeed later
	hint      string // what to do, where the error itself says nothing
	hidden    bool   // its text is for the log only
}

// statuses is the one map from error codes to HTTP statuses.
var statuses = map[signalbox.Code]outcome{
	signalbox.CodeValidation:          {status: http.StatusBadRequest},
	signalbox.CodeNotFound:            {status: http.StatusNotFound},
	signalbox.CodeQueueFull:           {status: http.StatusServiceUnavailable, retryable: true, hint: "try again later, or cancel what is no longer needed; signalbox submit --wait-for-room waits for a place"},
	signalbox.CodeIdempotency:         {status: http.StatusUnprocessableEntity, hint: "use another Idempotency-Key for another task"},
	signalbox.CodeStaleFence:          {status: http.StatusConflict},
	signalbox.CodeConflict:            {status: http.StatusConflict},
	signalbox.CodeAlreadyEnded:        {status: http.StatusConflict},
	signalbox.CodeAgentBusy:           {status: http.StatusConflict, retryable: true},
	signalbox.CodeAgentDown:           {status: http.StatusServiceUnavailable, retryable: true, hint: "signalbox agents shows which agents are there; overflow persist lets a chat wait for its agent"},
	signalbox.CodeCallCycle:           {status: http.StatusConflict, hint: "send Prefer: respond-async and end without waiting for the answer, or use the bypass of the other agent"},
	signalbox.CodeCallDepth:           {status: http.StatusConflict},
	signalbox.CodeUnsupported:         {status: http.StatusNotImplemented},
	signalbox.CodeUnauthorized:        {status: http.StatusUnauthorized, hint: "send Authorization: Bearer TOKEN; the command line of who started the director finds it by itself, and takes --token-file or SIGNALBOX_TOKEN"},
	signalbox.CodeForbidden:           {status: http.StatusForbidden},
	signalbox.CodeRateLimited:         {status: http.StatusTooManyRequests, retryable: true},
	signalbox.CodeTooLarge:            {status: http.StatusRequestEntityTooLarge},
	signalbox.CodeUnsupportedMedia:    {status: http.StatusUnsupportedMediaType, hint: "send Content-Type: application/json"},
	signalbox.CodeMethodNotAllowed:    {status: http.StatusMethodNotAllowed},
	signalbox.CodeUnresolvedReference: {status: http.StatusConflict, hint: "give more of the id"},
	signalbox.CodeToolDown:            {status: http.StatusServiceUnavailable, retryable: true, hint: "signalbox tools servers shows how the servers are"},
	signalbox.CodeToolLost:            {status: http.StatusBadGateway}, // it may have had an effect, as with a timeout
	signalbox.CodeToolTimeout:         {status: http.StatusGatewayTimeout},
	signalbox.CodeToolFailed:          {status: http.StatusBadGateway},
	signalbox.CodeToolQueue:           {status: http.StatusServiceUnavailable, retryable: true, hint: "signalbox tools queues shows who holds the queue and who waits"},
	signalbox.CodeToolQueueOut:        {status: http.StatusGatewayTimeout, retryable: true, hint: "signalbox tools queues shows who holds the queue and who waits"},
	signalbox.CodeStoreFailed:         {status: http.StatusInternalServerError, retryable: true, hidden: true},
	signalbox.CodeStoreFull:           {status: http.StatusInsufficientStorage, retryable: true, hidden: true},
	signalbox.CodeStoreCorrupt:        {status: http.StatusInternalServerError, hidden: true},
	signalbox.CodeUnavailable:         {status: http.StatusServiceUnavailable, retryable: true},
	signalbox.CodeInternal:            {status: http.StatusInternalServerError, hidden: true},
}

// hiddenText is what a caller is told of an error whose text is for the log.
var hiddenText = map[signalbox.Code]string{
	signalbox.CodeStoreFailed:  "The store could not do it; nothing was changed.",
	signalbox.CodeStoreFull:    "Nothing was stored: the store has no room left.",
	signalbox.CodeStoreCorrupt: "A row in the store cannot be read; it was left as it is.",
	signalbox.CodeInternal:     "Something went wrong inside the director.",
}

// refusal is an error with what HTTP adds to it.
type refusal struct {
	err        *signalbox.Error
	hint       string
	retryAfter int  // seconds
	plain      bool // its text is for the caller, whatever its code; to try again is no cure
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse makes an error with a hint.
func refuse(code signalbox.Code, hint, format string, args ...any) error {
	return &refusal{err: signalbox.Errorf(code, format, args...), hint: hint}
}

// answerError writes err as the answer. Internal text goes to the log.
func (d *Director) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the caller went away
	}
	body, what := errorBody(err)
	body.RequestID = w.Header().Get(requestIDHeader)
	if what.hidden {
		d.log.Error("request failed", "request_id", body.RequestID, "method", r.Method, "path", clip(r.URL.Path), "code", body.Error, "error", err.Error())
	}
	if rw, ok := w.(*recorder); ok && rw.status != 0 {
		return // the answer had begun; all that can be done is to end it
	}
	h := w.Header()
	if body.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(body.RetryAfter))
	}
	if what.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="signalbox"`)
	}
	_ = d.answer(w, what.status, body)
}

func errorBody(err error) (api.Error, outcome) {
	var plain *signalbox.Error
	if !errors.As(err, &plain) {
		plain = &signalbox.Error{Code: signalbox.CodeInternal, Err: err}
	}
	what, ok := statuses[plain.Code]
	if !ok {
		what = statuses[signalbox.CodeInternal]
		plain = &signalbox.Error{Code: signalbox.CodeInternal, Err: err}
	}
	body := api.Error{
		Error: string(plain.Code), Message: plain.Message, Field: plain.Field, Hint: what.hint, Retryable: what.retryable,
	}
	if what.hidden {
		body.Message, body.Field = hiddenText[plain.Code], ""
		body.Hint = "the director's log has the cause under the request id"
		if plain.Code == signalbox.CodeStoreFull {
			body.Hint = "whoever runs the director must make room on the disk of its store (or raise maxmemory of Redis, or keep ended tasks for a shorter time); then send it again"
		}
	}
	if plain.RetryAfter > 0 {
		body.RetryAfter = int((plain.RetryAfter + time.Second - 1) / time.Second)
	}
	if extra, ok := errors.AsType[*refusal](err); ok {
		if extra.hint != "" {
			body.Hint = extra.hint
		}
		body.RetryAfter = cmp.Or(extra.retryAfter, body.RetryAfter)
		if extra.plain {
			body.Message, body.Retryable = plain.Message, false
		}
	}
	return body, what
}

// noContent is the answer to what leaves nothing to say. It returns nil, for the
// handler to return.
func noContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answer writes v as JSON. It returns nil, for the handler to return.
func (d *Director) answer(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil { // the types of the api package always marshal
		d.log.Error("answer not written", "error", err)
		http.Error(w, "", http.StatusInternalServerError)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	extendWrite(w)
	w.WriteHeader(status)
	w.Write(append(data, '\n')) // an error here is the caller's: it went away
	return nil
}

// answerOr answers with v, unless there was an error.
func (d *Director) answerOr(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return d.answer(w, http.StatusOK, v)
}

// clip makes text of a caller fit to be shown: bounded, one line.
func clip(s string) string {
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

package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// maxAnswer bounds an answer in bytes. The largest valid one is a task with its
// prompt, answer and log, with all characters escaped.
const maxAnswer = 64 << 20

var (
	errNoReply     = errors.New("it did not answer in time")
	errCutOff      = errors.New("the answer was cut off")
	errStreamEnded = errors.New("the stream ended")
)

// call is one request.
type call struct {
	method string
	path   string // escaped
	query  url.Values
	body   []byte // JSON; nil: none
	key    string // Idempotency-Key
	accept string
	seen   string        // Last-Event-ID
	wait   time.Duration // the answer may take that much longer
	long   bool          // the answer may take as long as the context
	prefer string        // Prefer
	caller string        // X-Signalbox-Execution
	// session is X-Signalbox-Session.
	session string
	err     error // its body cannot be encoded
}

func get(path string, query url.Values) call {
	return call{method: http.MethodGet, path: path, query: query}
}

// post makes a request with a body, unless that is nil.
func post(path string, body any) call {
	c := call{method: http.MethodPost, path: path}
	if body == nil {
		return c
	}
	var err error
	if c.body, err = json.Marshal(body); err != nil {
		c.err = fmt.Errorf("encode the request: %w", err)
	}
	return c
}

func put(path string, body any) call {
	c := post(path, body)
	c.method = http.MethodPut
	return c
}

func remove(path string) call { return call{method: http.MethodDelete, path: path} }

// taskPath is the path of a task, or of what is below it.
func taskPath(id, below string) string { return "/api/queue/" + url.PathEscape(id) + below }

func agentPath(name, below string) string { return "/api/agents/" + url.PathEscape(name) + below }

// ask sends a request and returns the answer.
func ask[T any](ctx context.Context, c *Client, req call) (T, error) {
	var out T
	err := c.do(ctx, req, &out)
	return out, err
}

// do sends a request and decodes the answer into out, unless out is nil.
func (c *Client) do(ctx context.Context, req call, out any) error {
	data, err := c.raw(ctx, req)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return c.unexpected(http.StatusOK, fmt.Sprintf("%s %s did not answer with the expected JSON: %v", req.method, req.path, err))
	}
	return nil
}

// raw sends a request and returns the body of a successful answer.
func (c *Client) raw(ctx context.Context, req call) ([]byte, error) {
	data, _, err := c.answer(ctx, req)
	return data, err
}

// answer is raw with the status of the answer.
func (c *Client) answer(ctx context.Context, req call) ([]byte, int, error) {
	short, cancel := c.bound(ctx, req)
	defer cancel()
	resp, err := c.send(short, req)
	if err != nil {
		return nil, 0, c.noAnswer(ctx, short, req, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, c.noAnswer(ctx, short, req, fmt.Errorf("%w: %w", errCutOff, err))
	}
	if len(data) > maxAnswer {
		return nil, 0, c.unexpected(resp.StatusCode, fmt.Sprintf("the answer to %s %s is larger than 64 MiB", req.method, req.path))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, 0, c.refusal(resp, data)
	}
	return data, resp.StatusCode, nil
}

// bound is the context of one request.
func (c *Client) bound(ctx context.Context, req call) (context.Context, context.CancelFunc) {
	if req.long {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.opts.Timeout+req.wait, errNoReply)
}

func (c *Client) send(ctx context.Context, req call) (*http.Response, error) {
	if req.err != nil {
		return nil, req.err
	}
	target := c.base.String() + req.path
	if len(req.query) > 0 {
		target += "?" + req.query.Encode()
	}
	var body io.Reader
	if req.body != nil {
		body = bytes.NewReader(req.body)
	}
	r, err := http.NewRequestWithContext(ctx, req.method, target, body)
	if err != nil {
		return nil, err
	}
	// Without a GetBody the transport does not repeat requests by itself. If it
	// did and nothing listened any more, it would report a refused connection, as
	// if nothing had been sent the first time. Only chatTo and keyed repeat.
	r.GetBody = nil
	c.setHeaders(r, req)
	return c.opts.HTTPClient.Do(r)
}

func (c *Client) setHeaders(r *http.Request, req call) {
	accept := cmp.Or(req.accept, "application/json")
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", c.opts.UserAgent)
	if c.opts.Traceparent != "" {
		r.Header.Set("Traceparent", c.opts.Traceparent)
	}
	if req.method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json") // required on every write, with or without a body
	}
	if req.key != "" {
		r.Header.Set("Idempotency-Key", req.key)
	}
	if req.seen != "" {
		r.Header.Set("Last-Event-ID", req.seen)
	}
	if req.prefer != "" {
		r.Header.Set("Prefer", req.prefer)
	}
	if req.caller != "" {
		r.Header.Set(executionHeader, req.caller)
	}
	if req.session != "" {
		r.Header.Set(sessionHeader, req.session)
	}
	if c.opts.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
}

// noAnswer returns the error of a request that failed under ctx, or under the
// shorter context made from it.
func (c *Client) noAnswer(ctx, short context.Context, req call, err error) error {
	if req.err != nil {
		return req.err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if no := c.unproved(err); no != nil {
		return no
	}
	if cause := context.Cause(short); cause != nil {
		err = cause
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the method and the full address add nothing to the director's
	}
	gone := &UnreachableError{URL: c.URL(), Sent: !neverSent(err), Err: err}
	if gone.Sent {
		gone.Key = req.key
	}
	return gone
}

// refusal returns the error for an answer that is not a success.
func (c *Client) refusal(resp *http.Response, data []byte) error {
	var chat api.ChatError
	if json.Unmarshal(data, &chat) == nil && chat.Code != "" {
		return &ChatError{Status: resp.StatusCode, Body: chat}
	}
	e := &Error{Status: resp.StatusCode}
	if json.Unmarshal(data, &e.Body) == nil && e.Body.Error != "" {
		return e
	}
	text := fmt.Sprintf("%s answered %s, which is not an answer of a director", c.URL(), resp.Status)
	if to := resp.Header.Get("Location"); to != "" {
		text += " (it points to " + excerpt([]byte(to)) + ")"
	} else if said := excerpt(data); said != "" {
		text += ": " + said
	}
	return c.unexpected(resp.StatusCode, text)
}

func (c *Client) unexpected(status int, text string) error {
	return &Error{Status: status, Body: api.Error{
		Error: CodeUnexpectedAnswer, Message: text,
		Hint: "check the director's address: " + c.URL(),
	}}
}

// excerpt returns the beginning of an unexpected answer, on one line.
func excerpt(data []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data[:min(len(data), 200)]), "")), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// CodeUnexpectedAnswer is the code of an answer that is not a director's: the
// address belongs to another server, or to a proxy.
const CodeUnexpectedAnswer = "unexpected_answer"

// Error is an answer of the director that is not a success.
type Error struct {
	Status int       // HTTP status
	Body   api.Error // code, message, hint
}

func (e *Error) Error() string {
	if e.Body.Message != "" {
		return e.Body.Message
	}
	return fmt.Sprintf("the director answered %d %s (%s)", e.Status, http.StatusText(e.Status), e.Body.Error)
}

// Code returns the director's code for what went wrong, such as queue_full.
func (e *Error) Code() string { return e.Body.Error }

// ChatError says why a chat or a bypass task was refused or did not complete.
// It unwraps to an *Error.
type ChatError struct {
	Status int // HTTP status; 0 if it came as an event of a stream
	Body   api.ChatError
}

func (e *ChatError) Error() string {
	if e.Body.Message != "" {
		return e.Body.Message
	}
	return fmt.Sprintf("the chat with %s did not complete: %s", e.Body.Agent, e.Body.Code)
}

// Code returns the error code, such as agent_busy or wait_timeout.
func (e *ChatError) Code() string { return e.Body.Code }

// ID returns the queue_id of the task; "" if none was stored.
func (e *ChatError) ID() string {
	if e.Body.Execution == nil {
		return ""
	}
	return e.Body.Execution.ID
}

// Unwrap returns it as an *Error, for callers that need only its code.
func (e *ChatError) Unwrap() error {
	b := e.Body
	return &Error{Status: e.Status, Body: api.Error{
		Error: b.Code, Message: b.Message, Hint: b.Hint, Retryable: b.Retryable, RetryAfter: b.RetryAfter, RequestID: b.RequestID,
	}}
}

func isChatError(err error) bool {
	var e *ChatError
	return errors.As(err, &e)
}

// UnreachableError says that no answer came from the director.
type UnreachableError struct {
	URL string // of the director
	// Sent says that the request may have arrived and been executed. It is false
	// only if no connection was made.
	Sent bool
	// Key is the Idempotency-Key of a submit that may have been stored. Another
	// submit with it and the same body finds that task or creates it.
	Key string
	Err error
}

func (e *UnreachableError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no answer from the director at %s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("cannot reach the director at %s: %v", e.URL, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Code returns the director's code in err, such as not_found, and "" for an
// error that is not an answer of the director.
func Code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Body.Error
	}
	return ""
}

// IsUnreachable reports whether err says that no answer came.
func IsUnreachable(err error) bool {
	var e *UnreachableError
	return errors.As(err, &e)
}

// neverSent reports whether err proves that no request was sent.
func neverSent(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert)
}

// lostReply reports whether the outcome of the request is unknown: there was no
// answer, or a gateway reports that it got none.
func lostReply(err error) bool {
	if gone, ok := errors.AsType[*UnreachableError](err); ok {
		return gone.Sent
	}
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusBadGateway || e.Status == http.StatusGatewayTimeout)
}

// passing reports whether err is transient: the director is gone, is starting or
// draining, or asks to retry later.
func passing(err error) bool {
	if IsUnreachable(err) || errors.Is(err, errStreamEnded) {
		return true
	}
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500 && e.Body.Retryable
}

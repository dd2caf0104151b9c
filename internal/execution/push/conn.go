package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// DefaultMaxAnswer holds up to 1 MiB of output and 256 KiB of a patch, which JSON can expand
// sixfold, and the names of 1,000 files.
const DefaultMaxAnswer = 12 << 20

// conn is a client of one agent's HTTP API.
type conn struct {
	base  string
	token string
	// proved: each connection is authenticated before anything is sent over it.
	proved bool
	ask    time.Duration // timeout of a request, in addition to its long-poll wait
	most   int           // bytes of an answer
	http   *http.Client
}

// NewTransport returns the transport shared by all agents of a dispatcher. It uses no
// proxy: the director sends its token only to the address that it was given.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, Control: agentaddr.Control(true)}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

func newConn(base, token string, ask time.Duration, transport http.RoundTripper) *conn {
	base, _ = signalbox.AgentURL(base) // "" for an invalid URL, which releases before 2026-11 may have stored
	return &conn{
		base: base, token: token, ask: ask, most: DefaultMaxAnswer,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// statusOf returns the HTTP status of an agent's refusal, 0 for other errors.
func statusOf(err error) int {
	if r, ok := errors.AsType[*execution.Refusal](err); ok {
		return r.Status
	}
	return 0
}

// unsentError is a failure before anything reached the agent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// unsent reports whether err proves that the agent did not get the request.
func unsent(err error) bool {
	var u unsentError
	return errors.As(err, &u)
}

// refused reports whether the connection was refused.
func refused(err error) bool {
	const onWindows = syscall.Errno(10061) // WSAECONNREFUSED; syscall.ECONNREFUSED on Windows is an invented number
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, onWindows)
}

// call makes a request that may wait on the agent for wait. A non-nil answer is filled from
// the JSON of a 2xx response.
func (c *conn) call(ctx context.Context, wait time.Duration, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, wait+c.ask)
	defer cancel()
	return c.callOnce(ctx, method, path, nil, body, answer)
}

// callOnce is call with headers and the timeout of ctx. With an Idempotency-Key the
// transport may send the request again on a new connection when an idle one turns out to be
// dead.
func (c *conn) callOnce(ctx context.Context, method, path string, headers map[string]string, body, answer any) error {
	resp, err := c.send(ctx, method, path, headers, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return c.read(resp, answer)
}

// send makes a request and returns the response, whatever its status.
func (c *conn) send(ctx context.Context, method, path string, headers map[string]string, body any) (*http.Response, error) {
	if c.base == "" {
		return nil, unsentError{errors.New("its address is not http://HOST:PORT: register the agent again")}
	}
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, unsentError{err}
		}
		sent = bytes.NewReader(data)
	}
	// Without a connection nothing was sent; with one, the request may have reached the
	// agent although the reply was lost.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return nil, unsentError{err}
	}
	if body != nil || method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if !connected.Load() {
			return nil, unsentError{plainError(err)}
		}
		return nil, plainError(err)
	}
	return resp, nil
}

// plainError removes the URL that net/http prepends: callers name the agent.
func plainError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{err}
	}
	return err
}

// timeoutError is an exceeded deadline, with a readable message.
type timeoutError struct{ error }

func (timeoutError) Error() string   { return "timeout: no answer in time" }
func (e timeoutError) Unwrap() error { return e.error }

func (c *conn) read(resp *http.Response, answer any) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.most)+1))
	if err != nil {
		return fmt.Errorf("answer cut off: %w", plainError(err))
	}
	if len(data) > c.most {
		return fmt.Errorf("answer is longer than %d bytes", c.most)
	}
	if resp.StatusCode/100 != 2 {
		r := &execution.Refusal{Status: resp.StatusCode, From: c.base}
		_ = json.Unmarshal(data, &r.AgentRefusal) // the body is optional
		return r
	}
	if answer == nil {
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("answer %d is empty", resp.StatusCode)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("answer %d is not what an agent says: %w", resp.StatusCode, err)
	}
	return nil
}

// start offers a task. once: the agent understands fences, so the same offer twice is one
// execution, and it may get a run token. trace is the traceparent.
func (c *conn) start(ctx context.Context, t api.AgentTask, once bool, trace string) (a api.AgentTaskAccepted, err error) {
	headers := map[string]string{}
	if once {
		headers["Idempotency-Key"] = t.QueueID + "/" + strconv.FormatInt(t.Fence, 10)
		headers[api.RunTokenHeader], headers[api.EnvByHeader] = t.RunToken, t.EnvBy
	}
	if trace != "" {
		headers["Traceparent"] = trace
	}
	err = c.callOnce(ctx, http.MethodPost, "/task", headers, t, &a)
	if err == nil && (a.TaskID == "" || len(a.TaskID) > execution.MaxAgentID) {
		err = errors.New("answer 201 without a usable task_id is not what an agent says")
	}
	if !signalbox.ValidSessionID(a.SessionID) {
		a.SessionID = ""
	}
	return a, err
}

func (c *conn) task(ctx context.Context, id string, wait time.Duration) (s api.AgentTaskStatus, err error) {
	q := ""
	if wait > 0 {
		q = "?wait=" + seconds(wait)
	}
	err = c.call(ctx, wait, http.MethodGet, "/task/"+url.PathEscape(id)+q, nil, &s)
	if err == nil && s.State == "" {
		err = errors.New("answer about the task names no state")
	}
	return s, err
}

func (c *conn) output(ctx context.Context, id string, after int64, wait time.Duration) (o api.AgentOutput, err error) {
	q := "?after=" + strconv.FormatInt(after, 10) + "&wait=" + seconds(wait)
	return o, c.call(ctx, wait, http.MethodGet, "/task/"+url.PathEscape(id)+"/output"+q, nil, &o)
}

func (c *conn) cancel(ctx context.Context, id string) (a api.AgentCancelled, err error) {
	return a, c.call(ctx, cancelTimeout, http.MethodPost, "/task/"+url.PathEscape(id)+"/cancel", nil, &a)
}

// void has an agent promise never to accept an offer that it has not seen.
func (c *conn) void(ctx context.Context, queueID string, v api.AgentVoid) error {
	var a api.AgentVoided
	err := c.call(ctx, 0, http.MethodPost, "/task/"+url.PathEscape(queueID)+"/void", v, &a)
	if err == nil && a != (api.AgentVoided{QueueID: queueID, Fence: v.Fence, Status: api.StatusVoid}) {
		err = errors.New("answer does not say that the claim is void")
	}
	return err
}

// errNotAnAgent: the server is not an agent. Its response is not quoted, since it may be
// confidential.
var errNotAnAgent = errors.New("it answers /status, but not as an agent")

func (c *conn) status(ctx context.Context) (s api.AgentStatus, err error) {
	err = c.call(ctx, 0, http.MethodGet, "/status", nil, &s)
	var no *execution.Refusal
	switch {
	case errors.As(err, &no): // it may not be an agent: do not show its response to whoever registered it
		return s, &execution.Refusal{Status: no.Status, From: no.From}
	case err == nil && s.State != "idle" && s.State != "working":
		return s, errNotAnAgent
	}
	return s, err
}

func (c *conn) history(ctx context.Context, limit int) ([]plainTask, error) {
	var h struct {
		Entries []plainTask `json:"entries"`
	}
	err := c.call(ctx, 0, http.MethodGet, "/history?page=1&limit="+strconv.Itoa(limit), nil, &h)
	return h.Entries, err
}

// maxSessions is how many sessions an agent lists: the newest.
const maxSessions = 10_000

func (c *conn) sessions(ctx context.Context) ([]api.AgentSession, error) {
	var s api.AgentSessions
	if err := c.call(ctx, 0, http.MethodGet, "/sessions", nil, &s); err != nil {
		return nil, err
	}
	if s.Sessions == nil {
		return nil, errors.New("answer to /sessions lists none, not even an empty list")
	}
	return s.Sessions, nil
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

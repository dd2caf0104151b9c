package mcptools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// Limits on answers of an endpoint.
const (
	maxAnswer  = 32 << 20 // bytes of one answer; a gateway allows 16 MiB
	maxRefusal = 64 << 10 // bytes of an error response that are read
)

// carrier makes the HTTP requests. It adds the caller's headers, and converts
// error responses to errors with the server's message.
type carrier struct {
	base      http.RoundTripper
	endpoint  *url.URL
	token     string
	execution string
	trace     string
	version   atomic.Pointer[string]
}

func newCarrier(endpoint *url.URL, o *Options) *carrier {
	base := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     time.Minute,
		// A kept connection may be dead, and then the outcome of a call is unknown;
		// without TLS a new connection is cheap.
		DisableKeepAlives: endpoint.Scheme == "http",
	}
	return &carrier{
		endpoint: endpoint, token: o.Token, execution: o.Execution, trace: o.Trace,
		base: handshake.ToDirector(base, endpoint.String(), o.Token), // a token implies a director
	}
}

// client follows no redirects, because the token is only for this endpoint.
func (c *carrier) client() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// CloseIdleConnections is called by http.Client.
func (c *carrier) CloseIdleConnections() { (&http.Client{Transport: c.base}).CloseIdleConnections() }

// speak sets the protocol version for requests that name none.
func (c *carrier) speak(version string) { c.version.Store(&version) }

func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.execution != "" {
		req.Header.Set("X-Signalbox-Execution", c.execution)
	}
	if c.trace != "" {
		req.Header.Set("Traceparent", c.trace)
	}
	const header = "Mcp-Protocol-Version"
	if v := c.version.Load(); v != nil && req.Header.Get(header) == "" {
		req.Header.Set(header, *v)
	}
	res, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 && req.Method == http.MethodPost {
		return c.refused(req, res)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		res.Body = struct {
			io.Reader
			io.Closer
		}{&bounded{res.Body, maxAnswer}, res.Body}
	}
	return res, nil
}

// refused reads an error response. What the SDK handles is passed on:
// JSON-RPC errors, and a session that the server no longer has.
func (c *carrier) refused(req *http.Request, res *http.Response) (*http.Response, error) {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // whatever was read is shown
	res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	var said struct {
		Version string `json:"jsonrpc"`
		Code    any    `json:"error"`
		Message string `json:"message"`
	}
	ours := json.Unmarshal(body, &said) == nil
	if ours && said.Version != "" || res.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		return res, nil
	}
	r := &Refused{Status: res.StatusCode}
	r.Code, _ = said.Code.(string)
	if ours && said.Message != "" {
		r.Message = said.Message
	} else {
		r.Message = plain(string(body))
	}
	return nil, r
}

// Refused says that the server answered but refused to serve.
type Refused struct {
	Status  int    // HTTP status
	Code    string // Signalbox's error code, if it is one
	Message string // the server's message, for people
}

func (r *Refused) Error() string {
	s := fmt.Sprintf("it answered %d %s", r.Status, http.StatusText(r.Status))
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// plain is the beginning of a text on one line, without unprintable
// characters.
func plain(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}

var errTooLarge = errors.New("the answer is larger than 32 MiB")

// bounded fails after left bytes were read.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// wire is a transport that keeps answers to tools/list and tools/call as they
// arrived. The SDK would decode them to types of its own, which refuse
// unknown kinds of content, round large numbers and sort the keys of schemas.
type wire struct {
	inner   mcp.Transport
	carrier *carrier
	heard   func(token string, p progress)

	mu   sync.Mutex
	open map[jsonrpc.ID]request     // requests without an answer yet
	kept map[string]json.RawMessage // answers, by the token of the request
}

// request is a request whose answer must be kept.
type request struct{ method, token string }

// hollow is what the SDK gets in place of the answer.
var hollow = map[string]json.RawMessage{
	"tools/list": json.RawMessage(`{"tools":[]}`),
	"tools/call": json.RawMessage(`{"content":[]}`),
}

// progress is a progress report for a request.
type progress struct {
	Token    any     `json:"progressToken"`
	Message  string  `json:"message"`
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
}

func newWire(inner mcp.Transport, c *carrier, heard func(string, progress)) *wire {
	return &wire{inner: inner, carrier: c, heard: heard, open: map[jsonrpc.ID]request{}, kept: map[string]json.RawMessage{}}
}

func (w *wire) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &wireConn{c, w}, nil
}

// take returns the answer to the request with the token, once.
func (w *wire) take(token string) json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw := w.kept[token]
	delete(w.kept, token)
	return raw
}

// forget drops what is stored for a failed request.
func (w *wire) forget(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kept, token)
	for id, r := range w.open {
		if r.token == token {
			delete(w.open, id)
		}
	}
}

type wireConn struct {
	mcp.Connection
	w *wire
}

func (c *wireConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && hollow[r.Method] != nil {
		var params struct {
			Meta struct {
				Token string `json:"progressToken"`
			} `json:"_meta"`
		}
		if json.Unmarshal(r.Params, &params) == nil && params.Meta.Token != "" {
			c.w.mu.Lock()
			c.w.open[r.ID] = request{r.Method, params.Meta.Token}
			c.w.mu.Unlock()
		}
	}
	return c.Connection.Write(ctx, m)
}

func (c *wireConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		return m, err
	}
	switch r := m.(type) {
	case *jsonrpc.Request:
		// Handled here, because the SDK reports progress concurrently with the
		// answer, possibly after it.
		var p progress
		if r.Method == "notifications/progress" && json.Unmarshal(r.Params, &p) == nil {
			token, _ := p.Token.(string)
			c.w.heard(token, p)
		}
	case *jsonrpc.Response:
		if r.Error == nil {
			return c.keep(r), nil
		}
	}
	return m, nil
}

// keep stores an answer whose request has a token.
func (c *wireConn) keep(r *jsonrpc.Response) *jsonrpc.Response {
	var hello struct {
		Version string `json:"protocolVersion"`
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	q, ok := c.w.open[r.ID]
	if !ok {
		// The SDK passes the version only to its own type of connection.
		if json.Unmarshal(r.Result, &hello) == nil && hello.Version != "" {
			c.w.carrier.speak(hello.Version)
		}
		return r
	}
	delete(c.w.open, r.ID)
	c.w.kept[q.token] = r.Result
	told := *r
	told.Result = hollow[q.method]
	return &told
}

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

// Limits on what an endpoint may send.
const (
	maxAnswer  = 32 << 20 // bytes of one answer; a gateway lets 16 MiB pass
	maxRefusal = 64 << 10 // bytes of a refusal that are read
)

// carrier makes the HTTP requests: it adds who calls, and turns refusals into
// errors that say what the server said.
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
		// A connection that was kept may be dead, and then it is not known what
		// became of a call; a new one costs next to nothing without TLS.
		DisableKeepAlives: endpoint.Scheme == "http",
	}
	return &carrier{
		endpoint: endpoint, token: o.Token, execution: o.Execution, trace: o.Trace,
		base: handshake.ToDirector(base, endpoint.String(), o.Token), // who has a token has it of a director
	}
}

// client follows no redirects: the token is for this endpoint alone.
func (c *carrier) client() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// CloseIdleConnections is for http.Client.
func (c *carrier) CloseIdleConnections() { (&http.Client{Transport: c.base}).CloseIdleConnections() }

// speak sets the version of the protocol for requests that name none.
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

// refused reads a refusal. What the SDK knows to handle passes on: errors of
// JSON-RPC, and a session that the server no longer has.
func (c *carrier) refused(req *http.Request, res *http.Response) (*http.Response, error) {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what was read of it is what there is to show
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

// Refused says that the server answered and would not serve.
type Refused struct {
	Status  int    // of HTTP
	Code    string // of Signalbox, where it is one
	Message string // what the server said, for people
}

func (r *Refused) Error() string {
	s := fmt.Sprintf("it answered %d %s", r.Status, http.StatusText(r.Status))
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// plain is the beginning of a text on one line, without what does not print.
func plain(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}

var errTooLarge = errors.New("the answer is larger than 32 MiB")

// bounded fails once more than left bytes were read.
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

// wire is a transport whose answers to tools/list and tools/call are kept as
// they came. The SDK would read them into types of its own, which refuse
// unknown kinds of content, round large numbers and sort the keys of schemas.
type wire struct {
	inner   mcp.Transport
	carrier *carrier
	heard   func(token string, p progress)

	mu   sync.Mutex
	open map[jsonrpc.ID]request     // asked and not answered
	kept map[string]json.RawMessage // answers by the token of the request
}

// request is one whose answer is to be kept.
type request struct{ method, token string }

// hollow is what the SDK is given in place of the answer.
var hollow = map[string]json.RawMessage{
	"tools/list": json.RawMessage(`{"tools":[]}`),
	"tools/call": json.RawMessage(`{"content":[]}`),
}

// progress is a word on how far a request is.
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

// forget drops what is left of a request that failed.
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
		// Here, because the SDK tells of progress beside the answer, and so
		// perhaps after it.
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

// keep puts an answer aside that was asked for by token.
func (c *wireConn) keep(r *jsonrpc.Response) *jsonrpc.Response {
	var hello struct {
		Version string `json:"protocolVersion"`
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	q, ok := c.w.open[r.ID]
	if !ok {
		// The SDK tells the version only to a connection of its own kind.
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

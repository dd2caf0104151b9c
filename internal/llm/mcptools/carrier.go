package mcptools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

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

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/retryafter"
)

const (
	maxErrorBody = 64 << 10 // how much of an HTTP error body is read
	dialTimeout  = 10 * time.Second
	streamWait   = 5 * time.Second // for the headers of a server's own stream
)

// web is the HTTP client of an instance: it passes answers through the interceptor and adds the
// configured headers. It connects only to the configured origin.
type web struct {
	base        http.RoundTripper
	interceptor *interceptor
	origin      *url.URL
	headers     map[string]string
	ctx         context.Context // ends all requests
	posts       bool            // answers come on another stream: HTTP with SSE
}

func newWeb(ctx context.Context, addr string, headers map[string]string, prove string, t *interceptor) (*web, error) {
	origin, err := url.Parse(addr)
	if err != nil {
		return nil, errors.New("its url cannot be read")
	}
	return &web{
		ctx: ctx, interceptor: t, origin: origin, headers: headers,
		base: handshake.ToDirector(&http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dialer(origin).DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    dialTimeout,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 1 << 20,
		}, addr, prove),
	}, nil
}

// dialer connects to the configured server. If it is configured by name, addresses that are
// forbidden are refused after name resolution.
func dialer(origin *url.URL) *net.Dialer {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if _, err := netip.ParseAddr(origin.Hostname()); err != nil {
		d.Control = agentaddr.Refuse
	}
	return d
}

func (w *web) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		return w.checkRedirect(next.Response)
	}}
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if !w.sameOrigin(req.URL) { // HTTP with SSE may name any URL for its POSTs
		return nil, originError("it sends messages", req.URL)
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.ctx, cancel)
	done := func() { stop(); cancel() }
	req = req.Clone(ctx)
	for k, v := range w.headers {
		req.Header.Set(k, v)
	}
	msg, r, err := w.request(req)
	if err != nil {
		done()
		return nil, err
	}
	if msg != nil {
		defer w.interceptor.sent(ctx, msg)
	}
	call, _ := msg.(*jsonrpc.Request)
	slow := w.headerTimeout(req, call, cancel)
	resp, err := w.base.RoundTrip(req)
	late := slow != nil && !slow.Stop()
	if err != nil {
		done()
		if late && req.Method == http.MethodGet {
			return empty(req, http.StatusMethodNotAllowed), nil // the server offers no stream of its own
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // the body is the connection
		return resp, nil
	}
	resp.Body = &cancelBody{ReadCloser: resp.Body, done: done}
	if isRedirect(resp.StatusCode) {
		err := w.checkRedirect(resp)
		switch {
		case err == nil || call == nil:
			return resp, nil // the client follows the redirect or reports why not
		case r != nil:
			return w.readWhole(resp, call, r, maxErrorBody, w.redirectError(err)), nil
		}
	}
	if call != nil && call.Method == "notifications/cancelled" && !success(resp.StatusCode) {
		resp.Body.Close()
		return empty(req, http.StatusAccepted), nil // the SDK would end the session on an error status
	}
	if r == nil {
		return w.limitBody(resp), nil
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		r.got404.Store(true) // set even if the 404 has another cause: the SDK must not end the session because of it
	}
	return w.answer(resp, call, r), nil
}

// headerTimeout bounds requests that a server of the other protocol era, or one that sends its
// headers late, may leave unanswered. nil: no bound.
func (w *web) headerTimeout(req *http.Request, call *jsonrpc.Request, cancel func()) *time.Timer {
	switch {
	case call != nil && call.Method == "server/discover":
		return time.AfterFunc(discoverTimeout, cancel)
	case req.Method == http.MethodGet && !w.posts && req.Header.Get("Upgrade") == "":
		return time.AfterFunc(streamWait, cancel)
	}
	return nil
}

// empty makes a response without a body.
func empty(req *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: statusText(status), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody,
	}
}

// request finds the message of an HTTP request and the reply that waits for it.
func (w *web) request(req *http.Request) (jsonrpc.Message, *reply, error) {
	if msg, ok := req.Context().Value(sentKey{}).(jsonrpc.Message); ok {
		return msg, w.interceptor.outgoing(req.Context(), msg), nil
	}
	if req.Method != http.MethodPost || req.Body == nil || req.GetBody == nil {
		return nil, nil, nil
	}
	copied, err := req.GetBody()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(copied)
	if err != nil {
		return nil, nil, err
	}
	// Decode only the needed fields: the SDK's decoder allocates 64 KiB per
	// message.
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil, nil, nil //nolint:nilerr // no JSON: the request carries no message, which is fine
	}
	if m.Method == "" {
		return &jsonrpc.Response{ID: idOf(m.ID)}, nil, nil
	}
	call := &jsonrpc.Request{ID: idOf(m.ID), Method: m.Method}
	return call, w.interceptor.outgoing(req.Context(), call), nil
}

// answer replaces the response to a call by one that the SDK accepts. The reply gets
// the content.
func (w *web) answer(resp *http.Response, call *jsonrpc.Request, r *reply) *http.Response {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if success(resp.StatusCode) {
		switch {
		case w.posts:
			return w.limitBody(resp)
		case kind == "text/event-stream":
			resp.Body = newEvents(resp.Body, w.interceptor, w.posts)
			return resp
		case kind == "application/json":
			return w.readWhole(resp, call, r, maxMessage, w.readError())
		}
	}
	if wait, refused := retryafter.Refusal(resp.StatusCode, resp.Header, time.Now()); refused {
		r.refused.Store(&gateway.Refused{By: "the server " + strconv.Quote(w.interceptor.name), Status: resp.StatusCode, After: wait})
	}
	return w.readWhole(resp, call, r, maxErrorBody, w.statusError(resp.StatusCode))
}

// readWhole reads a response of one JSON message. Anything but a JSON-RPC response settles the
// reply with an error.
func (w *web) readWhole(resp *http.Response, call *jsonrpc.Request, r *reply, limit int64, fault *signalbox.Error) *http.Response {
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	resp.Body.Close()
	var msg jsonrpc.Message
	switch {
	case int64(len(data)) > limit && limit == maxMessage:
		fault = errTooLarge(w.interceptor.name)
	case int64(len(data)) > limit:
	case err != nil:
		fault = signalbox.Errorf(signalbox.CodeToolLost, "The connection to the server %q was lost while it answered.", w.interceptor.name)
	default:
		msg = w.parse(data, call.ID)
	}
	if msg == nil {
		r.settle(nil, nil, fault)
		msg = stub(call.ID)
	}
	out, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		out, _ = jsonrpc.EncodeMessage(stub(call.ID))
	}
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header.Set("Content-Type", "application/json")
	resp.Header.Del("Content-Length")
	resp.ContentLength = int64(len(out))
	resp.Body = io.NopCloser(bytes.NewReader(out))
	return resp
}

// parse parses a body as the response to a call.
func (w *web) parse(data []byte, id jsonrpc.ID) jsonrpc.Message {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	msg, ok := w.interceptor.incoming(data).(*jsonrpc.Response)
	if !ok || msg.ID != id {
		return nil
	}
	return msg
}

// limitBody bounds a response without a reply.
func (w *web) limitBody(resp *http.Response) *http.Response {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case success(resp.StatusCode) && kind == "text/event-stream":
		resp.Body = newEvents(resp.Body, w.interceptor, w.posts)
	case success(resp.StatusCode):
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxMessage}
	default:
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: maxErrorBody}
	}
	return resp
}

const maxRedirects = 5

var errNoAddress = errors.New("a redirect without an address")

// originError says why nothing is sent to a URL: arguments and headers are meant only for
// the configured server.
func originError(what string, u *url.URL) error {
	return fmt.Errorf("%s to %s://%s, another host than the configured one, which is not contacted: if that is right, put the new address into the configuration", what, u.Scheme, u.Host)
}

// sameOrigin reports whether a URL has the configured origin, or the same host with https
// instead of http.
func (w *web) sameOrigin(u *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), w.origin.Hostname()) {
		return false
	}
	scheme, configured := httpScheme(u.Scheme), httpScheme(w.origin.Scheme)
	if scheme == configured {
		return port(u) == port(w.origin)
	}
	return configured == "http" && scheme == "https" && port(w.origin) == "80" && port(u) == "443"
}

// httpScheme maps the WebSocket schemes to HTTP.
func httpScheme(s string) string {
	switch s {
	case "ws":
		return "http"
	case "wss":
		return "https"
	}
	return s
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[httpScheme(u.Scheme)]
}

// checkRedirect returns why a redirect is not followed, or nil.
func (w *web) checkRedirect(resp *http.Response) error {
	to, err := resp.Location()
	if err != nil {
		return errNoAddress
	}
	if !w.sameOrigin(to) {
		return originError("a redirect", to)
	}
	if m := resp.Request.Method; m != http.MethodGet && !keepsMethod(resp.StatusCode) {
		return fmt.Errorf("a redirect (HTTP %s) that would turn %s into GET, which is not followed: put the new address into the configuration", statusText(resp.StatusCode), m)
	}
	hops := 1
	for before := resp.Request.Response; before != nil; before = before.Request.Response {
		hops++
	}
	if hops > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// redirectError is the error of a call answered with a redirect that is not followed.
func (w *web) redirectError(why error) *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with %s.", w.interceptor.name, printable(w.interceptor.mask.hide(why.Error())))
}

func keepsMethod(status int) bool {
	return status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return true
	}
	return keepsMethod(status)
}

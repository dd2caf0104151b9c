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
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

const (
	maxErrorBody = 64 << 10 // what is read of an HTTP error
	dialTimeout  = 10 * time.Second
	streamWait   = 5 * time.Second // for the headers of a server's own stream
)

// web is the HTTP side of an instance: it leads what the server answers
// through the tap, and adds the configured headers. It asks the configured
// origin and no other, whatever the server says.
type web struct {
	base    http.RoundTripper
	tap     *tap
	origin  *url.URL
	headers map[string]string
	ctx     context.Context // all requests end with it
	posts   bool            // answers come by another way: HTTP with SSE
}

func newWeb(ctx context.Context, addr string, headers map[string]string, prove string, t *tap) (*web, error) {
	origin, err := url.Parse(addr)
	if err != nil {
		return nil, errors.New("its url cannot be read")
	}
	return &web{
		ctx: ctx, tap: t, origin: origin, headers: headers,
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

// dialer connects to the configured server. Where the configuration gives its
// name, that does not lead to addresses at which nobody may be asked, whatever it
// resolves to in the moment of connecting.
func dialer(origin *url.URL) *net.Dialer {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if _, err := netip.ParseAddr(origin.Hostname()); err != nil {
		d.Control = agentaddr.Refuse
	}
	return d
}

func (w *web) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		return w.astray(next.Response)
	}}
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if !w.own(req.URL) { // as HTTP with SSE may name any address for its POSTs
		return nil, elsewhere("it sends messages", req.URL)
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
		defer w.tap.sent(ctx, msg)
	}
	call, _ := msg.(*jsonrpc.Request)
	slow := w.hurry(req, call, cancel)
	resp, err := w.base.RoundTrip(req)
	late := slow != nil && !slow.Stop()
	if err != nil {
		done()
		if late && req.Method == http.MethodGet {
			return empty(req, http.StatusMethodNotAllowed), nil // it offers no stream of its own
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // its body is the connection
		return resp, nil
	}
	resp.Body = &body{ReadCloser: resp.Body, done: done}
	if isRedirect(resp.StatusCode) {
		err := w.astray(resp)
		switch {
		case err == nil || call == nil:
			return resp, nil // the client follows it, or says why not
		case r != nil:
			return w.whole(resp, call, r, maxErrorBody, w.sentAway(err)), nil
		}
	}
	if call != nil && call.Method == "notifications/cancelled" && !success(resp.StatusCode) {
		resp.Body.Close()
		return empty(req, http.StatusAccepted), nil // to the SDK it would be the end of the session
	}
	if r == nil {
		return w.bound(resp), nil
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		r.forgotten.Store(true) // or not: the SDK is not to end the session for it
	}
	return w.answer(resp, call, r), nil
}

// hurry ends requests that a server of the other era, or one that sends no
// headers before there is something to say, may leave without an answer; nil: of
// any other.
func (w *web) hurry(req *http.Request, call *jsonrpc.Request, cancel func()) *time.Timer {
	switch {
	case call != nil && call.Method == "server/discover":
		return time.AfterFunc(discoverWait, cancel)
	case req.Method == http.MethodGet && !w.posts && req.Header.Get("Upgrade") == "":
		return time.AfterFunc(streamWait, cancel)
	}
	return nil
}

// empty is an answer in the place of the server's.
func empty(req *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: statusText(status), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody,
	}
}

// request finds which message an HTTP request carries, and whose reply waits for
// it.
func (w *web) request(req *http.Request) (jsonrpc.Message, *reply, error) {
	if msg, ok := req.Context().Value(sentKey{}).(jsonrpc.Message); ok {
		return msg, w.tap.outgoing(req.Context(), msg), nil
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
	// Only what is asked of it is read: the SDK's decoder costs 64 KiB a message.
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil, nil, nil //nolint:nilerr // it carries none, which is no failure
	}
	if m.Method == "" {
		return &jsonrpc.Response{ID: idOf(m.ID)}, nil, nil
	}
	call := &jsonrpc.Request{ID: idOf(m.ID), Method: m.Method}
	return call, w.tap.outgoing(req.Context(), call), nil
}

// answer turns the response to a call whose reply waits into one that the SDK
// cannot trip over: the reply has what it is about.
func (w *web) answer(resp *http.Response, call *jsonrpc.Request, r *reply) *http.Response {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if success(resp.StatusCode) {
		switch {
		case w.posts:
			return w.bound(resp)
		case kind == "text/event-stream":
			resp.Body = newEvents(resp.Body, w.tap, w.posts)
			return resp
		case kind == "application/json":
			return w.whole(resp, call, r, maxMessage, w.misread())
		}
	}
	return w.whole(resp, call, r, maxErrorBody, w.refused(resp.StatusCode))
}

// whole reads a response in one piece. What is no JSON-RPC response settles
// the reply with the fault.
func (w *web) whole(resp *http.Response, call *jsonrpc.Request, r *reply, limit int64, fault *signalbox.Error) *http.Response {
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	resp.Body.Close()
	var msg jsonrpc.Message
	switch {
	case int64(len(data)) > limit && limit == maxMessage:
		fault = errTooLarge(w.tap.name)
	case int64(len(data)) > limit:
	case err != nil:
		fault = signalbox.Errorf(signalbox.CodeToolLost, "The connection to the server %q was lost while it answered.", w.tap.name)
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

// parse takes a body for the response to a call.
func (w *web) parse(data []byte, id jsonrpc.ID) jsonrpc.Message {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	msg, ok := w.tap.incoming(data).(*jsonrpc.Response)
	if !ok || msg.ID != id {
		return nil
	}
	return msg
}

// bound keeps a response that is nobody's reply within the limit.
func (w *web) bound(resp *http.Response) *http.Response {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case success(resp.StatusCode) && kind == "text/event-stream":
		resp.Body = newEvents(resp.Body, w.tap, w.posts)
	case success(resp.StatusCode):
		resp.Body = &limited{ReadCloser: resp.Body, left: maxMessage}
	default:
		resp.Body = &limited{ReadCloser: resp.Body, left: maxErrorBody}
	}
	return resp
}

const maxRedirects = 5

var errNoAddress = errors.New("a redirect without an address")

// elsewhere is why nothing is sent to an address: the arguments of a call and
// our headers are meant for the server that the configuration names.
func elsewhere(what string, u *url.URL) error {
	return fmt.Errorf("%s to %s://%s, another host than the configured one, which is not asked: if that is right, put the new address into the configuration", what, u.Scheme, u.Host)
}

// own reports whether an address is of the configured origin, or of the same
// host by https instead of http.
func (w *web) own(u *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), w.origin.Hostname()) {
		return false
	}
	scheme, configured := plainScheme(u.Scheme), plainScheme(w.origin.Scheme)
	if scheme == configured {
		return port(u) == port(w.origin)
	}
	return configured == "http" && scheme == "https" && port(w.origin) == "80" && port(u) == "443"
}

// plainScheme takes the handshake of a WebSocket for the HTTP request it is.
func plainScheme(s string) string {
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
	return map[string]string{"http": "80", "https": "443"}[plainScheme(u.Scheme)]
}

// astray says why a redirect is not followed, if it is not.
func (w *web) astray(resp *http.Response) error {
	to, err := resp.Location()
	if err != nil {
		return errNoAddress
	}
	if !w.own(to) {
		return elsewhere("a redirect", to)
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

// sentAway is the fault of a call that was answered with a redirect which is
// not followed.
func (w *web) sentAway(why error) *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with %s.", w.tap.name, printable(w.tap.mask.hide(why.Error())))
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

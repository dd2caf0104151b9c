package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/agentaddr"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/retryafter"
)

// Action is a tool whose calls are HTTP requests.
type Action struct {
	Tool   gateway.Tool
	Schema *Schema
	Build  func(args map[string]any, raw []byte) (*Request, error) // raw: the arguments as sent
	// Secrets are configured values to redact in answers: an upstream may echo its request.
	Secrets []string
}

// Request is a request to an upstream.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte // nil: none
}

// Client makes the requests of one provider. Make one with NewClient.
type Client struct {
	http  *http.Client
	reach EgressPolicy
	ctx   context.Context // ends with Close
	end   context.CancelCauseFunc
	mu    sync.Mutex // orders Add before Wait
	calls sync.WaitGroup
}

// NewClient makes a Client restricted by an EgressPolicy.
func NewClient(reach EgressPolicy) *Client {
	d := &dialer{reach: reach}
	life, end := context.WithCancelCause(context.Background())
	return &Client{
		reach: reach, ctx: life, end: end,
		http: &http.Client{
			CheckRedirect: sameOrigin,
			Transport: &http.Transport{
				Proxy: d.proxy, DialContext: d.DialContext, ForceAttemptHTTP2: true,
				MaxIdleConnsPerHost: 16, MaxIdleConns: 64, IdleConnTimeout: time.Minute,
				TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10,
			},
		},
	}
}

// Check validates the arguments of a call, without making a request.
func (c *Client) Check(a *Action, call gateway.Call) error {
	_, err := a.request(call)
	return err
}

// Call makes the request of one call.
func (c *Client) Call(ctx context.Context, a *Action, call gateway.Call) (gateway.Result, error) {
	r, err := a.request(call)
	if err != nil {
		return gateway.Result{}, err
	}
	answer, err := c.Do(ctx, r, gateway.MaxAnswer)
	if err != nil {
		return gateway.Result{}, err
	}
	if answer.refused {
		return gateway.Result{}, &gateway.Refused{By: answer.url.Host, Status: answer.Status, After: answer.wait}
	}
	answer.Body = redact(answer.Body, a.Secrets)
	return answer.result(), nil
}

// redact replaces secrets by ***, also in their JSON form. Longer secrets are replaced first,
// so that a secret with a shorter one as its prefix disappears whole.
func redact(body []byte, secrets []string) []byte {
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) < gateway.MinSecret {
			continue
		}
		body = bytes.ReplaceAll(body, []byte(s), []byte("***"))
		if quoted := string(EncodeJSON(s)); quoted != `"`+s+`"` {
			body = bytes.ReplaceAll(body, []byte(quoted[1:len(quoted)-1]), []byte("***"))
		}
	}
	return body
}

func (a *Action) request(call gateway.Call) (*Request, error) {
	args, err := a.Schema.Arguments(call.Arguments)
	if err != nil {
		return nil, err
	}
	raw := []byte(call.Arguments)
	if len(args) == 0 {
		raw = []byte("{}")
	}
	return a.Build(args, raw)
}

// Answer is the response of an upstream.
type Answer struct {
	Status int
	Type   string // media type
	Body   []byte
	url    *url.URL
	method string
	// refused: the request was not processed. wait is how long the upstream wants to be left
	// alone; 0: it gave no time.
	refused bool
	wait    time.Duration
}

// Do makes a request and reads an answer of at most max bytes. Its error is a *signalbox.Error
// or the context's error, and contains only the host of the request.
func (c *Client) Do(ctx context.Context, r *Request, max int64) (*Answer, error) {
	if !c.register() {
		return nil, signalbox.Errorf(signalbox.CodeToolDown, "the tool is being shut down")
	}
	defer c.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()

	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := c.reach.Check(req.URL.Hostname()); err != nil {
		return nil, failure(ctx, req.URL, err, false)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if resp != nil {
			resp.Body.Close()
		}
		return nil, failure(ctx, req.URL, err, connected.Load())
	}
	defer resp.Body.Close()
	if resp.ContentLength > max && r.Method != http.MethodHead { // for HEAD it is the length of the GET response
		return nil, tooLarge(req.URL, max)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	if err != nil {
		return nil, failure(ctx, req.URL, err, true)
	}
	if int64(len(body)) > max {
		return nil, tooLarge(req.URL, max)
	}
	answer := &Answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body, url: req.URL, method: r.Method}
	answer.wait, answer.refused = retryafter.Refusal(resp.StatusCode, resp.Header, time.Now())
	return answer, nil
}

func newRequest(ctx context.Context, r *Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, signalbox.Invalid("arguments", "the arguments make no valid request")
	}
	maps.Copy(req.Header, r.Header)
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	gateway.SetTrace(ctx, req.Header)
	setDefault(req.Header, "User-Agent", "signalbox")
	setDefault(req.Header, "Accept", "application/json, text/*;q=0.9, */*;q=0.8")
	return req, nil
}

func setDefault(h http.Header, name, value string) {
	if len(h.Values(name)) == 0 {
		h.Set(name, value)
	}
}

// failure is the error of a request without a usable answer.
func failure(ctx context.Context, u *url.URL, err error, connected bool) error {
	if cause := context.Cause(ctx); cause != nil {
		if e, ok := errors.AsType[*signalbox.Error](cause); ok {
			return e
		}
		return ctx.Err()
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // drops the URL, whose query may contain a secret
	}
	var refused *egressError
	switch {
	case errors.As(err, &refused):
		return signalbox.Errorf(signalbox.CodeToolFailed, "%s is not contacted: %s", u.Host, refused.why)
	case errors.Is(err, errRedirect):
		return signalbox.Errorf(signalbox.CodeToolFailed, "%s answered with a %v", u.Host, err)
	case connected:
		return signalbox.Errorf(signalbox.CodeToolFailed, "%s did not answer as expected: %s", u.Host, Truncate(err.Error(), 300))
	}
	return signalbox.Errorf(signalbox.CodeToolDown, "%s cannot be reached: %s; see that it is there, or try again later", u.Host, Truncate(err.Error(), 300))
}

func tooLarge(u *url.URL, max int64) error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "the answer of %s is larger than %d MiB, which is the limit; ask for less at a time", u.Host, max>>20)
}

func (c *Client) register() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.calls.Add(1)
	return true
}

// Close ends all calls and connections.
func (c *Client) Close() {
	c.mu.Lock()
	c.end(signalbox.Errorf(signalbox.CodeToolLost, "the tool was shut down in the middle of the call"))
	c.mu.Unlock()
	c.calls.Wait()
	c.http.CloseIdleConnections()
}

// EgressPolicy says which hosts a Client may connect to.
type EgressPolicy struct {
	// Named are the configured hosts, without port. An IP address here is always
	// allowed.
	Named []string
	// Private allows hosts in private networks that the configuration does not name.
	Private bool
}

// metadataNames are the cloud metadata hosts, which hand out credentials.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

// egressError refuses a request because of its destination.
type egressError struct{ why string }

func (e *egressError) Error() string { return e.why }

// Check returns why a host is forbidden, as far as its name shows.
func (r EgressPolicy) Check(host string) error {
	host = normalizeHost(host)
	if r.names(host) {
		return nil
	}
	if slices.Contains(metadataNames, host) {
		return &egressError{fmt.Sprintf("%s is a cloud's metadata host, which must never be contacted", host)}
	}
	if host == "localhost" && !r.Private {
		return &egressError{"localhost is not in the public network"}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return r.checkIP(ip, false)
	}
	return nil // a name: the dialer checks the resolved address
}

func (r EgressPolicy) checkIP(ip netip.Addr, named bool) error {
	if err := agentaddr.CheckIP(ip); err != nil {
		return &egressError{err.Error()}
	}
	if !named && !r.Private && !agentaddr.Public(ip) {
		return &egressError{fmt.Sprintf("%s is not in the public network, and the configuration does not name the host", ip)}
	}
	return nil
}

func (r EgressPolicy) names(host string) bool {
	return slices.ContainsFunc(r.Named, func(n string) bool { return normalizeHost(n) == host })
}

func normalizeHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// dialer enforces the policy on the resolved address when connecting.
type dialer struct {
	reach   EgressPolicy
	mu      sync.Mutex
	proxies []string // host:port, from the environment
}

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = normalizeHost(host)
	named := d.reach.names(host)
	_, notIP := netip.ParseAddr(host)
	if named && notIP == nil || d.isProxy(address) {
		return plain.DialContext(ctx, network, address)
	}
	plain.Control = func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return d.reach.checkIP(to.Addr(), named)
	}
	return plain.DialContext(ctx, network, address)
}

// proxy is the proxy from the environment, as other programs use it. Its address is trusted,
// because the administrator set it.
func (d *dialer) proxy(r *http.Request) (*url.URL, error) {
	p, err := http.ProxyFromEnvironment(r)
	if p == nil || err != nil {
		return nil, err
	}
	port := p.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.Scheme]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := net.JoinHostPort(p.Hostname(), port); !slices.Contains(d.proxies, a) {
		d.proxies = append(d.proxies, a)
	}
	return p, nil
}

func (d *dialer) isProxy(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.proxies, address)
}

// errRedirect is the error of a redirect that is not followed.
var errRedirect = errors.New("redirect")

const maxRedirects = 5

// sameOrigin follows up to five redirects within the host: configured headers are meant only
// for this host.
func sameOrigin(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	upgrade := first.Scheme == "http" && next.URL.Scheme == "https" && first.Port() == "" && next.URL.Port() == "" && first.Hostname() == next.URL.Hostname()
	if !upgrade && (first.Scheme != next.URL.Scheme || first.Host != next.URL.Host) {
		return fmt.Errorf("%w to %s://%s, another host: if that is right, name it in the configuration", errRedirect, next.URL.Scheme, next.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w after redirect, more than %d", errRedirect, maxRedirects)
	}
	return nil
}

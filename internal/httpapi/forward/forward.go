package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Peers are the directors that share the store; *peers.Peers implements it.
type Peers interface {
	// Self returns this director. Its Expires is from the last heartbeat that the
	// store has accepted.
	Self() store.Director
	// Others lists the other living directors, by ID.
	Others() []store.Director
	// HolderOf returns the living director that dispatches to an agent. It is called
	// often, so it reads little or nothing.
	HolderOf(ctx context.Context, agent string) (store.Director, bool)
}

// Forwarder sends requests to the other directors of the store on behalf of callers,
// and proxies requests to them.
type Forwarder struct {
	Peers  Peers // nil: there is no other director
	client *http.Client
	log    *slog.Logger
	life   context.Context
}

// Others returns the directors to which a caller's request may be forwarded: none for a
// request that was forwarded already.
func (f *Forwarder) Others(ctx context.Context) []store.Director {
	if f.Peers == nil || access.CallerIn(ctx).Forwarded {
		return nil
	}
	return f.Peers.Others()
}

// RemoteHolder returns the director that dispatches to an agent, or that has the executor
// with that name. ok is false if that is this director, or one that cannot be reached.
func (f *Forwarder) RemoteHolder(ctx context.Context, agent string) (store.Director, bool) {
	if f.Peers == nil || agent == "" || access.CallerIn(ctx).Forwarded {
		return store.Director{}, false
	}
	if signalbox.IsExecutor(agent) {
		return f.peer(instanceOf(agent))
	}
	holder, ok := f.Peers.HolderOf(ctx, agent)
	return holder, ok && holder.ID != f.Peers.Self().ID && holder.URL != ""
}

// peer returns another living director by its instance name.
func (f *Forwarder) peer(instance string) (store.Director, bool) {
	for _, other := range f.Peers.Others() {
		if other.ID == instance {
			return other, other.URL != ""
		}
	}
	return store.Director{}, false
}

// instanceOf is the instance of the director that has an executor.
func instanceOf(executor string) string {
	_, instance, _ := strings.Cut(executor, "@")
	return instance
}

// aliveElsewhere reports whether an executor belongs to another living director.
func (f *Forwarder) aliveElsewhere(executor string) bool {
	if f.Peers == nil {
		return false
	}
	_, alive := f.peer(instanceOf(executor))
	return alive
}

// OwnHost is the host at which the other directors reach this one.
func OwnHost(p Peers) []string {
	if p == nil {
		return nil
	}
	u, err := url.Parse(p.Self().URL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{u.Hostname()}
}

// forwardedHeaders are the headers with a caller's credentials and its execution. The other
// director authorizes the caller only by them.
var forwardedHeaders = []string{"Authorization", access.LoginHeader, httpio.SourceAgentHeader, httpio.ExecutionHeader, "User-Agent"}

// credentialsOf returns the headers of a request that are forwarded, with only the login
// of its cookies.
func credentialsOf(r *http.Request) http.Header {
	proof := http.Header{}
	for _, name := range forwardedHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			proof[name] = values
		}
	}
	if login := access.Cookie(r, access.LoginCookie); login != "" {
		proof.Set("Cookie", access.LoginCookie+"="+login) // as received, so no quoting is needed
	}
	return proof
}

// unreachable is the error if only another director could answer, and does not.
func unreachable(holder store.Director, what string) *httpio.Refusal {
	return &httpio.Refusal{
		Err:        signalbox.Errorf(signalbox.CodeUnavailable, "%s is at director %s (%s), which does not answer", what, httpio.Clip(holder.ID), httpio.Clip(holder.URL)),
		Hint:       "try again: if that director has died, another one takes over within 11 seconds; signalbox directors shows which ones live",
		RetryAfter: 5,
	}
}

const (
	// askTimeout limits a request to another director, in addition to the wait that it
	// requests.
	askTimeout = 3 * time.Second
	// maxAnswer limits the answer in bytes: a log and its JSON.
	maxAnswer = 4 << 20
)

// New returns the forwarder of a director. The other side of each connection must
// prove that it knows the token that the directors of a store share. The forwarder
// follows no redirects and uses no proxies from the environment, so that a caller's
// credentials go only to that director.
func New(peers Peers, e *engine.Engine, log *slog.Logger, life context.Context) *Forwarder {
	if peers == nil {
		return &Forwarder{log: log, life: life}
	}
	base := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    2 * time.Second,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
	}
	client := &http.Client{
		Transport:     &provingTransport{https: base, http: handshake.ToDirector(base, "http://", e.Options().Sealer.DirectorsToken())},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	context.AfterFunc(life, client.CloseIdleConnections)
	return &Forwarder{Peers: peers, client: client, log: log, life: life}
}

// provingTransport verifies http connections by a proof; https uses the certificate.
type provingTransport struct{ http, https http.RoundTripper }

func (t *provingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return t.https.RoundTrip(r)
	}
	return t.http.RoundTrip(r)
}

func (t *provingTransport) CloseIdleConnections() {
	for _, under := range []http.RoundTripper{t.http, t.https} {
		if c, ok := under.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// remoteError is an error answer of another director.
type remoteError struct{ body api.Error }

func (e *remoteError) Error() string {
	return fmt.Sprintf("it answers %s: %s", httpio.Clip(e.body.Error), httpio.Clip(e.body.Message))
}

// Ask sends a request to another director as the caller in ctx, and decodes the answer
// into into, a pointer. wait is added to the timeout.
func (f *Forwarder) Ask(ctx context.Context, other store.Director, q httpio.Outgoing, wait time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout+wait)
	defer cancel()
	r, err := f.request(ctx, other, q)
	if err != nil {
		return err
	}
	resp, err := f.client.Do(r) //nolint:gosec // the address comes from a director of this store
	if err != nil {
		return &unreachableError{err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &unreachableError{err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var said api.Error
		if json.Unmarshal(data, &said) == nil && said.Error != "" {
			return &remoteError{said}
		}
		return fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer is not that of a director: %w", err)
	}
	return nil
}

func (f *Forwarder) request(ctx context.Context, other store.Director, q httpio.Outgoing) (*http.Request, error) {
	at := strings.TrimRight(other.URL, "/") + q.Path
	if len(q.Query) > 0 {
		at += "?" + q.Query.Encode()
	}
	r, err := q.Request(ctx, at)
	if err != nil {
		return nil, err
	}
	f.sign(r.Header, access.CallerIn(ctx))
	return r, nil
}

// sign adds the caller's credentials and this director's name to a request.
func (f *Forwarder) sign(h http.Header, c access.Caller) {
	if c.From != nil {
		maps.Copy(h, credentialsOf(c.From))
	}
	h.Set(httpio.ForwardedHeader, f.Peers.Self().ID)
	h.Set("X-Forwarded-For", c.Addr) // so that the caller is not treated as local there
}

// unreachableError says that a director cannot be reached. The transport's error is for
// the log only.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return "it does not answer" }

func (e *unreachableError) Unwrap() error { return e.err }

// maxProxiedBody limits the body of a proxied request in bytes.
const maxProxiedBody = httpio.MaxCallBytes

// Proxy forwards a request to another director and returns its answer, including streams
// and WebSockets. If that director does not answer, the error says that it has what.
func (f *Forwarder) Proxy(w http.ResponseWriter, r *http.Request, to store.Director, what string) error {
	target, err := url.Parse(to.URL)
	if err != nil {
		return unreachable(to, what)
	}
	if httpio.HasBody(r) { // the read deadline must not end the stream that follows
		body, err := httpio.ReadBody(w, r, maxProxiedBody)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	ctx, cancel := httpio.Until(r.Context(), f.life)
	defer cancel()
	c, id := access.CallerOf(r), w.Header().Get(httpio.RequestIDHeader)
	var failed error
	proxy := httputil.ReverseProxy{
		Transport:     f.client.Transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			// The origin was checked here, where it matches the browser's headers.
			for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Cookie"} {
				p.Out.Header.Del(name)
			}
			f.sign(p.Out.Header, c)
			p.Out.Header.Set(httpio.RequestIDHeader, id)
		},
		ModifyResponse: func(resp *http.Response) error {
			for name := range resp.Header { // the other director has set the common headers already
				w.Header().Del(name)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(proxyWriter{w}, r.WithContext(ctx))
	if failed == nil || r.Context().Err() != nil {
		return nil
	}
	f.log.Warn("another director did not answer", "director", to.ID, "url", to.URL, "path", httpio.Clip(r.URL.Path), "error", failed)
	return unreachable(to, what)
}

// WithoutBody returns a request with an empty body.
func WithoutBody(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = http.NoBody, 0
	return r
}

// proxyWriter writes a proxied answer, with a deadline for each write.
type proxyWriter struct{ http.ResponseWriter }

func (w proxyWriter) Write(b []byte) (int, error) {
	httpio.ExtendWriteDeadline(w.ResponseWriter)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w proxyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// OwnExecutor reports whether an executor belongs to this director.
func (f *Forwarder) OwnExecutor(name string) bool {
	return f.Peers == nil || instanceOf(name) == f.Peers.Self().ID
}

// SetExecutorState sets the state of an executor of another director. Only its lease is
// known here.
func (f *Forwarder) SetExecutorState(v *api.Agent) {
	if !signalbox.IsExecutor(v.Name) || f.OwnExecutor(v.Name) {
		return
	}
	if !f.aliveElsewhere(v.Name) {
		v.State, v.Message = "down", "its director has died or left"
		return
	}
	v.Message, v.State = "", "idle"
	if len(v.Running) > 0 {
		v.State = "working"
	}
}

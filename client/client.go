package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// Options configure how a Client talks to the director. The zero value is ready
// for use.
type Options struct {
	// Token is sent as a bearer token; "" sends none.
	Token string
	// HTTPClient makes the requests. It must not have a Timeout, which would cut
	// streams and long polls. The default does not follow redirects: a director
	// sends none, and following one would turn a submit into a read. If its
	// Transport is neither nil nor an *http.Transport, its connections are not
	// proved (see Proof).
	HTTPClient *http.Client
	// Proof says whether the director has to prove that it knows the token before
	// the token is sent; default ProofRequired.
	Proof Proof
	// UserAgent is sent with each request; default "signalbox-go".
	UserAgent string
	// Traceparent, if set, is sent with each request (W3C Trace Context). The spans
	// of the director become a part of that trace.
	Traceparent string

	// Timeout bounds a request, except long polls and streams; default 30 s.
	Timeout time.Duration
	// StreamIdle is how long a stream may be silent, without even a comment,
	// before it counts as dead and is reopened; default 60 s.
	StreamIdle time.Duration
	// PollWait is how long one long poll asks the director to wait; default
	// 30 s, at most 5 min.
	PollWait time.Duration
	// Tries bounds how often a submit with a lost reply is sent, including the
	// first time; default 5.
	Tries int
	// Patience bounds how long Wait, FollowOutput and Events keep trying without an
	// answer from the director; default 5 min.
	Patience time.Duration
	// Backoff returns how long to wait before try n, from 1. The default is 100 ms,
	// doubled each time up to 5 s, minus a random part of up to half of it.
	Backoff func(n int) time.Duration
	// OnRetry, if set, is called for each failure that will be retried, with the
	// delay before the retry.
	OnRetry func(err error, delay time.Duration)
}

// Client talks to one director. It is safe for concurrent use.
type Client struct {
	base *url.URL
	opts Options
}

// New returns a client for the director at address, a URL such as
// http://127.0.0.1:8080 or https://host/prefix; the default scheme is http.
// It makes no request.
func New(address string, opts Options) (*Client, error) {
	base, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(opts.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token holds a space, a line end or a character outside ASCII: it cannot be sent")
	}
	setDefaults(&opts)
	if opts.Proof == ProofRequired {
		opts.HTTPClient = proving(opts.HTTPClient, base.String(), opts.Token)
	}
	return &Client{base: base, opts: opts}, nil
}

func parseAddress(address string) (*url.URL, error) {
	full := address
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	shown := address
	if at := strings.LastIndex(address, "@"); at >= 0 {
		shown = "…" + address[at:] // the part before it may be a password
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("director address %q: want a URL such as http://127.0.0.1:8080", shown)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("director address %q: the scheme is %q, want http or https", shown, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("director address %q: it names no host, want a URL such as http://127.0.0.1:8080", shown)
	case u.User != nil:
		return nil, fmt.Errorf("director address %q: a user name does not belong there, give the token apart", shown)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("director address %q: want no query and no fragment", shown)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

func setDefaults(o *Options) {
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	o.UserAgent = cmp.Or(o.UserAgent, "signalbox-go")
	orDefault(&o.Timeout, 30*time.Second)
	orDefault(&o.StreamIdle, time.Minute)
	orDefault(&o.PollWait, 30*time.Second)
	orDefault(&o.Patience, 5*time.Minute)
	if o.Tries <= 0 {
		o.Tries = 5
	}
	if o.Backoff == nil {
		o.Backoff = backoff
	}
}

func orDefault(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

// URL returns the address of the director.
func (c *Client) URL() string { return c.base.String() }

// backoff spreads the retries of many clients, which all lost the director at the
// same moment.
func backoff(n int) time.Duration {
	const first, most = 100 * time.Millisecond, 5 * time.Second
	d := most
	if n < 7 {
		d = min(first<<(n-1), most)
	}
	return d - rand.N(d/2)
}

// pause calls OnRetry and waits before try n. It returns the context's error if
// the context ends first.
func (c *Client) pause(ctx context.Context, n int, cause error) error {
	delay := c.opts.Backoff(n)
	if c.opts.OnRetry != nil {
		c.opts.OnRetry(cause, delay)
	}
	return sleep(ctx, delay)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Proof says whether a director has to prove itself.
type Proof int

const (
	// ProofRequired requires the director to prove on each new connection that it
	// knows the token, before any request is sent. It applies to http URLs with a
	// token; proxies from the environment are not used then. With https the
	// certificate proves the identity of the server. The environment variable
	// SIGNALBOX_PROOF=off turns it off for the process.
	ProofRequired Proof = iota
	// ProofOff is for a director behind your own tunnel or proxy, and for versions
	// without the proof. Any server that listens at the address gets the token.
	ProofOff
)

// CodeUnproved is the code of an error that says that the server at the address
// has not proved that it knows the token. Nothing was sent to it.
const CodeUnproved = "unproved"

// unproved returns the error with CodeUnproved for a failed proof; nil for any other
// error.
func (c *Client) unproved(err error) error {
	var no *handshake.UnprovedError
	if !errors.As(err, &no) {
		return nil
	}
	return &Error{Body: api.Error{
		Error:   CodeUnproved,
		Message: "what listens at " + c.URL() + " is not the director, or does not know this token (" + no.Why + "): nothing was sent to it, neither the token nor the request",
		Hint: "check the token and the address, and which program listens there (ss -ltnp); a director older than this program is to be upgraded first, " +
			"and one behind a tunnel or proxy is asked by https",
	}}
}

// proving returns a copy of c whose connections are proved.
func proving(c *http.Client, url, token string) *http.Client {
	proved := *c
	if c.Transport == nil {
		proved.Transport = pools.of(url, token)
	} else {
		proved.Transport = handshake.ToDirector(c.Transport, url, token)
	}
	return &proved
}

// maxPools bounds the transports that are kept for later clients.
const maxPools = 64

// pools keeps a transport per token, so that clients with the same token share
// connections.
var pools transports

type transports struct {
	mu     sync.Mutex
	under  http.RoundTripper // the transport that they wrap
	proved map[[sha256.Size]byte]http.RoundTripper
}

func (t *transports) of(url, token string) http.RoundTripper {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.proved == nil || t.under != http.DefaultTransport || len(t.proved) >= maxPools {
		t.under, t.proved = http.DefaultTransport, map[[sha256.Size]byte]http.RoundTripper{}
	}
	proved := handshake.ToDirector(t.under, url, token)
	if proved == t.under {
		return nil // there is nothing to prove
	}
	key := sha256.Sum256([]byte(token))
	if known := t.proved[key]; known != nil {
		return known
	}
	t.proved[key] = proved
	return proved
}

// HTTPClient returns the client that makes the requests, for other uses such as the
// WebSocket of a terminal.
func (c *Client) HTTPClient() *http.Client { return c.opts.HTTPClient }

// CloseIdleConnections closes connections that no request uses now.
func (c *Client) CloseIdleConnections() { c.opts.HTTPClient.CloseIdleConnections() }

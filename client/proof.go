package client

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

// Proof says whether a director has to prove itself.
type Proof int

const (
	// ProofRequired has the director prove on each new connection that it knows
	// the token, before any request goes over it: where the URL is http and there
	// is a token. Proxies of the environment are not used then. With https the
	// certificate proves who is there. The environment variable
	// SIGNALBOX_PROOF=off turns it off for the process.
	ProofRequired Proof = iota
	// ProofOff is for a director behind a tunnel or proxy of one's own, and for
	// one that is older than the proof: whoever listens at the address gets the
	// token.
	ProofOff
)

// CodeUnproved is the code of an error that says that what listens at the
// address has not proved that it knows the token. Nothing was sent to it.
const CodeUnproved = "unproved"

// unproved makes the error of that, and nil of any other.
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

// proving returns a client as c whose connections are proved.
func proving(c *http.Client, url, token string) *http.Client {
	proved := *c
	if c.Transport == nil {
		proved.Transport = pools.of(url, token)
	} else {
		proved.Transport = handshake.ToDirector(c.Transport, url, token)
	}
	return &proved
}

// maxPools bounds the transports that are kept for clients to come.
const maxPools = 64

// pools keeps a transport for each token, so that the clients of one token
// share their connections.
var pools transports

type transports struct {
	mu     sync.Mutex
	under  http.RoundTripper // what they were made of
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

// HTTPClient returns the client by which the requests are made, for what is no
// plain request, such as the WebSocket of a terminal.
func (c *Client) HTTPClient() *http.Client { return c.opts.HTTPClient }

// CloseIdleConnections closes connections that no request uses now.
func (c *Client) CloseIdleConnections() { c.opts.HTTPClient.CloseIdleConnections() }

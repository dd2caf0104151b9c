package handshake

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

const (
	nonceBytes = 32
	// patience bounds the exchange of a proof.
	patience = 5 * time.Second
	// maxReply bounds the answer, including its header, in bytes.
	maxReply = 16 << 10
)

// UnprovedError says that the listener at an address has not proved that it knows the
// token. Only the request for the proof was sent to it.
type UnprovedError struct {
	Address string
	// Why says what it did instead.
	Why string
}

func (e *UnprovedError) Error() string {
	return fmt.Sprintf("what listens at %s has not proved that it knows the token (%s): nothing was sent to it", e.Address, e.Why)
}

// Dial makes a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Prover makes connections whose other end has proved that it knows a token.
type Prover struct {
	dial  Dial
	token string
	key   Key
}

// NewProver returns a Prover that uses dial and the token.
func NewProver(dial Dial, token string) *Prover {
	return &Prover{dial: dial, token: token, key: KeyOf(token)}
}

// DialContext makes a connection. If the other end does not prove itself, the error
// is an *UnprovedError and the connection is closed.
func (p *Prover) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := p.prove(ctx, conn, address); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// prove requests the proof. An error of the connection itself is returned as a
// *net.OpError of a dial: no request was sent.
func (p *Prover) prove(ctx context.Context, conn net.Conn, host string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err := p.exchange(conn, host)
	if !stop() && err == nil {
		err = context.Cause(ctx) // the deadline may have been set just after the answer
	}
	var no *UnprovedError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // what was read by then is unreliable
		err = fmt.Errorf("no proof that it knows the token in time, nothing was sent: %w", context.Cause(ctx))
	case errors.As(err, &no):
		return err
	default:
		err = fmt.Errorf("no proof that it knows the token, nothing was sent: %w", err)
	}
	return &net.OpError{Op: "dial", Net: "tcp", Addr: conn.RemoteAddr(), Err: err}
}

func (p *Prover) exchange(conn net.Conn, host string) error {
	var random [nonceBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	q := Question(p.token, hex.EncodeToString(random[:]), conn.RemoteAddr().String())
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+host+Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "signalbox")
	if err := req.Write(conn); err != nil {
		return err
	}
	return p.check(conn, req, q)
}

func (p *Prover) check(conn net.Conn, req *http.Request, q api.ProveRequest) error {
	limited := &io.LimitedReader{R: conn, N: maxReply}
	reader := bufio.NewReader(limited)
	resp, err := http.ReadResponse(reader, req)
	if err == nil {
		defer resp.Body.Close()
		body, readErr := io.ReadAll(resp.Body)
		if err = readErr; err == nil {
			return p.judge(resp, body, reader.Buffered(), q)
		}
	}
	var broken net.Error
	if errors.As(err, &broken) || (limited.N > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))) {
		return err // the connection broke: the other end may be stopping or starting
	}
	return &UnprovedError{q.Address, "its answer is not HTTP"}
}

func (p *Prover) judge(resp *http.Response, body []byte, left int, q api.ProveRequest) error {
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return fmt.Errorf("it answers %s", http.StatusText(resp.StatusCode))
	case http.StatusConflict:
		return &UnprovedError{q.Address, "the question arrived by way of something in between"}
	case http.StatusForbidden:
		return &UnprovedError{q.Address, "it does not answer under that name"}
	case http.StatusUnauthorized:
		return &UnprovedError{q.Address, "it does not know the token"}
	default:
		return &UnprovedError{q.Address, fmt.Sprintf("it answers %d to the question", resp.StatusCode)}
	}
	var proof api.Proof
	switch {
	case json.Unmarshal(body, &proof) != nil || !hmac.Equal([]byte(p.key.code(acceptor, q.Nonce, q.Address)), []byte(proof.MAC)):
		return &UnprovedError{q.Address, "its proof is wrong"}
	case left > 0:
		return &UnprovedError{q.Address, "it sends more than the proof"}
	case resp.Close:
		return errors.New("it closes the connection")
	}
	return nil
}

// Prove returns a transport like base whose connections prove the token. It
// works for http requests only: with https the certificate proves the
// identity. It uses no proxy, which would be the other end of all
// connections. It returns nil if it does not know how base makes its
// connections.
func Prove(base http.RoundTripper, token string) http.RoundTripper {
	switch t := base.(type) {
	case *http.Transport:
		t = t.Clone()
		t.DialContext = NewProver(dialOf(t), token).DialContext
		t.Proxy = nil
		return t
	case interface {
		Over(change func(http.RoundTripper) http.RoundTripper) http.RoundTripper
	}:
		return t.Over(func(under http.RoundTripper) http.RoundTripper { return Prove(under, token) })
	}
	return nil
}

// dialOf returns how a transport makes its connections.
func dialOf(t *http.Transport) Dial {
	switch {
	case t.DialContext != nil:
		return t.DialContext
	case t.Dial != nil: //nolint:staticcheck // a caller's transport may still use it
		return func(_ context.Context, network, address string) (net.Conn, error) { return t.Dial(network, address) } //nolint:staticcheck // the same
	}
	return (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}).DialContext
}

// EnvProof is an environment variable. With the value "off", directors are not
// asked for a proof; this is for tunnels and proxies that terminate the
// connection.
const EnvProof = "SIGNALBOX_PROOF"

// ToDirector is Prove for requests to a director at url with a token. It
// returns base itself if nothing can or needs to be proved: with https,
// without a token, with SIGNALBOX_PROOF=off, and if it does not know how base
// makes its connections.
func ToDirector(base http.RoundTripper, url, token string) http.RoundTripper {
	if token == "" || !strings.HasPrefix(strings.ToLower(url), "http://") || os.Getenv(EnvProof) == "off" {
		return base
	}
	if proved := Prove(base, token); proved != nil {
		return proved
	}
	return base
}

// ToAgent is Prove for requests to an agent that is known to prove itself, and
// base for any other agent.
func ToAgent(base http.RoundTripper, url, token string, proves bool) http.RoundTripper {
	if !proves || token == "" || !strings.HasPrefix(strings.ToLower(url), "http://") {
		return base
	}
	if proved := Prove(base, token); proved != nil {
		return proved
	}
	return refusing{}
}

// refusing is a transport that sends nothing.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("its connections cannot be proved")
}

// maxAsked bounds the body of a proof request, in bytes.
const maxAsked = 4 << 10

// Read reads a proof request.
func Read(w http.ResponseWriter, r *http.Request) (q api.ProveRequest, err error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsked))
	if err == nil {
		err = json.Unmarshal(data, &q)
	}
	return q, err
}

// Status is the HTTP status of an outcome.
func (o Outcome) Status() int {
	switch o {
	case Proved:
		return http.StatusOK
	case Relayed:
		return http.StatusConflict
	}
	return http.StatusUnauthorized
}

// Serve answers proof requests for one token, and passes everything else to
// next.
func Serve(token string, next http.Handler) http.Handler {
	key := KeyOf(token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			next.ServeHTTP(w, r)
			return
		}
		q, err := Read(w, r)
		if err != nil {
			http.Error(w, "want a question for a proof", http.StatusBadRequest)
			return
		}
		proof, outcome := Answer(r, q, key)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(outcome.Status())
		_ = json.NewEncoder(w).Encode(proof)
	})
}

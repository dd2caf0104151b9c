package handshake_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
)

const token = "sbxa_0123456789abcdef_abcdefghijklmnopqrstuvwxyz_0123456789-ABCDEF"

// served is a server that knows the token.
func served(t *testing.T, known string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handshake.Serve(known, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "served "+r.Header.Get("Authorization"))
	})))
	t.Cleanup(s.Close)
	return s
}

// proving is a client that requires a proof of the token.
func proving(t *testing.T, token string) *http.Client {
	t.Helper()
	c := &http.Client{Transport: handshake.Prove(&http.Transport{}, token)}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// send makes a request with the token.
func send(t *testing.T, c *http.Client, at string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("the prompt"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// listener records everything that is sent to it, and answers each
// connection.
type listener struct {
	net.Listener
	mu    sync.Mutex
	heard bytes.Buffer
}

func listen(t *testing.T, answer func(c net.Conn, r *bufio.Reader)) *listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &listener{Listener: l}
	var group sync.WaitGroup
	t.Cleanup(func() { l.Close(); group.Wait() })
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				answer(c, bufio.NewReader(io.TeeReader(c, s)))
			})
		}
	})
	return s
}

func (s *listener) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.Write(b)
}

func (s *listener) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.String()
}

func (s *listener) url() string { return "http://" + s.Addr().String() }

// heardNothing fails the test if it got the token, its secret part or the
// prompt.
func (s *listener) heardNothing(t *testing.T) {
	t.Helper()
	for _, secret := range []string{token, "abcdefghijklmnopqrstuvwxyz", "the prompt", "Authorization"} {
		if strings.Contains(s.text(), secret) {
			t.Errorf("it received %q:\n%s", secret, s.text())
		}
	}
}

func TestRequestsGoToServersThatKnowTheToken(t *testing.T) {
	t.Parallel()
	s := served(t, token)
	c := proving(t, token)
	for range 3 {
		if got, err := send(t, c, s.URL); err != nil || got != "served Bearer "+token {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

func TestWhoDoesNotKnowTheTokenHearsNothing(t *testing.T) {
	t.Parallel()
	ok := func(w io.Writer, body string) {
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
	}
	for name, answer := range map[string]func(c net.Conn, r *bufio.Reader){
		"an HTTP server that says yes": func(c net.Conn, r *bufio.Reader) {
			ask(r)
			ok(c, `{}`)
			_, _ = io.Copy(io.Discard, r)
		},
		"the caller's own code": func(c net.Conn, r *bufio.Reader) {
			q := ask(r)
			ok(c, `{"mac":"`+q.MAC+`"}`)
			_, _ = io.Copy(io.Discard, r)
		},
		"a code of another token": func(c net.Conn, r *bufio.Reader) { ask(r); ok(c, `{"mac":"`+strings.Repeat("0a", 32)+`"}`) },
		"no JSON":                 func(c net.Conn, r *bufio.Reader) { ask(r); ok(c, "yes, it is me") },
		"an empty answer":         func(c net.Conn, r *bufio.Reader) { ask(r); ok(c, "") },
		"garbage":                 func(c net.Conn, r *bufio.Reader) { ask(r); _, _ = c.Write([]byte("SSH-2.0-OpenSSH\r\n\r\n")) },
		"a huge answer":           func(c net.Conn, r *bufio.Reader) { ask(r); ok(c, strings.Repeat("x", 1<<20)) },
		"an endless header": func(c net.Conn, r *bufio.Reader) {
			ask(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 1<<20))
		},
		"no such path": func(c net.Conn, r *bufio.Reader) {
			ask(r)
			_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		},
		"a redirect": func(c net.Conn, r *bufio.Reader) {
			ask(r)
			_, _ = io.WriteString(c, "HTTP/1.1 307 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")
		},
		"a first answer, then others": func(c net.Conn, r *bufio.Reader) {
			ask(r)
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			ok(c, `{}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, answer)
			_, err := send(t, proving(t, token), s.url())
			var no *handshake.UnprovedError
			if !errors.As(err, &no) {
				t.Errorf("the error is %v", err)
			}
			s.heardNothing(t)
		})
	}
}

func itoa(n int) string { return string(must(json.Marshal(n))) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ask reads the proof request.
func ask(r *bufio.Reader) (q api.ProveRequest) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return q
	}
	_ = json.NewDecoder(req.Body).Decode(&q)
	return q
}

func TestAWrongTokenIsRecognized(t *testing.T) {
	t.Parallel()
	s := served(t, "sbxa_0123456789abcdef_another-secret-another-secret-another")
	_, err := send(t, proving(t, token), s.URL)
	var no *handshake.UnprovedError
	if !errors.As(err, &no) || !strings.Contains(no.Why, "does not know the token") {
		t.Errorf("the error is %v", err)
	}
}

// A recorded proof is useless on another connection, because the nonce
// differs.
func TestAttackAReplayedProof(t *testing.T) {
	t.Parallel()
	real := served(t, token)
	var proof []byte
	recorder := listen(t, func(c net.Conn, r *bufio.Reader) {
		q := ask(r)
		q.Address = strings.TrimPrefix(real.URL, "http://") // as if it had been dialled
		if proof == nil {
			k := handshake.KeyOf(token)
			r := httptest.NewRequestWithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, real.Listener.Addr()), http.MethodPost, "/", nil)
			r.RemoteAddr = "127.0.0.1:5"
			made, _ := handshake.Answer(r, q, k)
			proof = must(json.Marshal(made))
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: "+itoa(len(proof))+"\r\n\r\n"+string(proof))
	})
	for range 2 {
		if got, err := send(t, proving(t, token), recorder.url()); err == nil {
			t.Fatalf("a replayed proof was accepted: %s", got)
		}
	}
	recorder.heardNothing(t)
}

// A listener at another port of the host forwards the proof request to the
// real server.
func TestAttackARelayOnThisHost(t *testing.T) {
	t.Parallel()
	real := served(t, token)
	relay := listen(t, func(c net.Conn, r *bufio.Reader) {
		to, err := net.Dial("tcp", real.Listener.Addr().String())
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(c, to) }()
		_, _ = io.Copy(to, r)
	})
	_, err := send(t, proving(t, token), relay.url())
	var no *handshake.UnprovedError
	if !errors.As(err, &no) {
		t.Errorf("the error is %v", err)
	}
	relay.heardNothing(t)
}

func TestSlowServersGetNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(c net.Conn, r *bufio.Reader){
		"never": func(_ net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) },
		"in drops": func(c net.Conn, r *bufio.Reader) {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n" + strings.Repeat(" ", 90)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, answer)
			p := handshake.NewProver((&net.Dialer{}).DialContext, token)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := p.DialContext(ctx, "tcp", s.Addr().String())
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" {
				t.Errorf("the error is %v, not one of dialling", err)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
			s.heardNothing(t)
		})
	}
}

// A broken connection is not a failed proof: the server may be about to stop.
func TestABrokenConnectionIsADialError(t *testing.T) {
	t.Parallel()
	s := listen(t, func(_ net.Conn, r *bufio.Reader) { ask(r) })
	_, err := send(t, proving(t, token), s.url())
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("the error is %v, not one of dialling", err)
	}
}

// A client that does not know the token cannot obtain codes, and learns
// nothing about existing tokens.
func TestAttackTheProverAsAnOracle(t *testing.T) {
	t.Parallel()
	s := served(t, token)
	answers := map[string]bool{}
	for _, q := range []api.ProveRequest{
		{},
		{Selector: handshake.Selector(token), Nonce: strings.Repeat("00", 32), Address: strings.TrimPrefix(s.URL, "http://")},
		{Selector: handshake.Selector(token), Nonce: strings.Repeat("00", 32), Address: strings.TrimPrefix(s.URL, "http://"), MAC: strings.Repeat("00", 32)},
		{Selector: "sbxa_nobody0000000000", Nonce: strings.Repeat("00", 32), MAC: strings.Repeat("00", 32)},
	} {
		resp, err := http.Post(s.URL+handshake.Path, "application/json", bytes.NewReader(must(json.Marshal(q)))) //nolint:noctx // bounded by the test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%+v: %s %s", q, resp.Status, body)
		}
		answers[string(body)] = true
	}
	if len(answers) != 1 {
		t.Errorf("the answers differ: %v", answers)
	}
}

func TestSelectorHoldsNoSecret(t *testing.T) {
	t.Parallel()
	if got := handshake.Selector(token); got != "sbxa_0123456789abcdef" {
		t.Errorf("a token of a director is named %q", got)
	}
	for _, other := range []string{"static-token-of-the-configuration", "sbxa_short", "sbx__", "sbxa_0123456789abcdef_", "sbxa_x_yz_" + token, ""} {
		if got := handshake.Selector(other); len(got) != 16 || strings.Contains(other, got) {
			t.Errorf("%q is named %q", other, got)
		}
	}
}

// A proxy would be the other end of every connection.
func TestNoProxyIsUsed(t *testing.T) {
	t.Parallel()
	s := served(t, token)
	base := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("a proxy was asked for") }}
	c := &http.Client{Transport: handshake.Prove(base, token)}
	t.Cleanup(c.CloseIdleConnections)
	if _, err := send(t, c, s.URL); err != nil {
		t.Error(err)
	}
}

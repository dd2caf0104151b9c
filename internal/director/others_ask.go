package director

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// askTimeout bounds a question to another director, its wait apart.
	askTimeout = 3 * time.Second
	// maxFarAnswer bounds an answer to one: a log and what is around it.
	maxFarAnswer = 4 << 20
)

// far asks the other directors. It follows no redirect and no proxy of the
// environment: what a caller has shown goes to that director and nowhere else.
type far struct{ client *http.Client }

// newFar returns far for the directors of a store, who all know token. What
// listens where one of them was has to prove that it does.
func newFar(token string) far {
	base := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    2 * time.Second,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return far{&http.Client{
		Transport:     &farTransport{https: base, http: handshake.ToDirector(base, "http://", token)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (f far) close() { f.client.CloseIdleConnections() }

// farTransport proves connections by http; by https the certificate does.
type farTransport struct{ http, https http.RoundTripper }

func (t *farTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return t.https.RoundTrip(r)
	}
	return t.http.RoundTrip(r)
}

func (t *farTransport) CloseIdleConnections() {
	for _, under := range []http.RoundTripper{t.http, t.https} {
		if c, ok := under.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// farRefusal is an error that another director answered with.
type farRefusal struct{ said api.Error }

func (e *farRefusal) Error() string {
	return fmt.Sprintf("it answers %s: %s", clip(e.said.Error), clip(e.said.Message))
}

// ask sends a caller's question to another director as that caller, and puts
// the answer into what into points to. wait is how long it may take longer than
// a plain one.
func (d *Director) ask(ctx context.Context, other store.Director, q question, wait time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout+wait)
	defer cancel()
	r, err := d.questionTo(ctx, other, q)
	if err != nil {
		return err
	}
	resp, err := d.far.client.Do(r) //nolint:gosec // to where a director of this store says that it is
	if err != nil {
		return &noAnswer{err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFarAnswer))
	if err != nil {
		return &noAnswer{err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var said api.Error
		if json.Unmarshal(data, &said) == nil && said.Error != "" {
			return &farRefusal{said}
		}
		return fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("what it answers is no answer of a director: %w", err)
	}
	return nil
}

func (d *Director) questionTo(ctx context.Context, other store.Director, q question) (*http.Request, error) {
	at := strings.TrimRight(other.URL, "/") + q.path
	if len(q.query) > 0 {
		at += "?" + q.query.Encode()
	}
	var body io.Reader
	if q.body != nil {
		data, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, at, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	d.sign(r.Header, callerIn(ctx))
	return r, nil
}

// sign puts on a request who asks, and who passes it on.
func (d *Director) sign(h http.Header, c caller) {
	if c.from != nil {
		maps.Copy(h, proofOf(c.from))
	}
	h.Set(forwardedHeader, d.cfg.Peers.Self().ID)
	h.Set("X-Forwarded-For", c.addr) // so that nobody counts as local there
}

// noAnswer says that a director cannot be reached. What the transport says of
// it is for the log.
type noAnswer struct{ err error }

func (e *noAnswer) Error() string { return "it does not answer" }
func (e *noAnswer) Unwrap() error { return e.err }

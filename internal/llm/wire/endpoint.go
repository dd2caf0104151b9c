package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/signalbox-ai/signalbox/internal/retryafter"
)

// Options describe a model's endpoint. Nothing is read from the environment.
type Options struct {
	BaseURL string       // including its version if it has one, such as /v1; "": the vendor's
	APIKey  string       // "": no key is sent
	Client  *http.Client // nil: a client with the usual proxies
	Retries int          // after no answer, 408, 409, 429 or 5xx; 0: 2, negative: none

	Heard func(status int, h http.Header) // called for each answer, before its body is read; may be nil
}

const (
	defaultRetries = 2
	firstPause     = 500 * time.Millisecond // before the first retry; doubled each time
	longestPause   = 8 * time.Second
	longestWish    = time.Minute // longest accepted Retry-After of an endpoint
	maxEvent       = 16 << 20    // bytes of one event
)

// Endpoint answers turns: each is one POST, whose response is a stream of events.
type Endpoint struct {
	Host    string // as in its URL, without the port
	url     string
	header  http.Header
	client  *http.Client
	retries int
	heard   func(int, http.Header)
	secrets []string // values to mask: the key, and a password in the URL
}

// NewEndpoint returns the endpoint at path below o's base URL; vendor is an
// example URL for the error. The header is sent with each request.
func NewEndpoint(o Options, vendor, path string, header http.Header) (*Endpoint, error) {
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("the base URL of the model is not one such as " + vendor)
	}
	e := &Endpoint{Host: base.Hostname(), url: base.JoinPath(path).String(), header: header, heard: o.Heard, secrets: []string{o.APIKey}}
	if p, ok := base.User.Password(); ok {
		e.secrets = append(e.secrets, p)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "text/event-stream, application/json")
	header.Set("User-Agent", "signalbox")
	if e.retries = max(o.Retries, 0); o.Retries == 0 {
		e.retries = defaultRetries
	}
	// No redirects: keys and conversations are only for the configured endpoint,
	// and Go removes only some headers for another host.
	client := http.Client{Transport: http.DefaultTransport}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.client = &client
	return e, nil
}

// Error is an event of a stream that says that the turn failed. Event contains
// the endpoint's error.
type Error struct{ Event []byte }

func (e Error) Error() string { return string(e.Event) }

// Stream requests a turn with body as JSON, and passes on the data of each
// event. The events end with [DONE] or with the response; ended then reports
// whether the turn is complete, too. The error is ctx's own or an
// *llm.ModelError.
func (e *Endpoint) Stream(ctx context.Context, body any, event func(data []byte) error, ended func() bool) error {
	asked, err := json.Marshal(body)
	if err != nil {
		return broken(ctx, err, e.secrets...)
	}
	res, err := e.ask(ctx, asked)
	if err != nil {
		return broken(ctx, err, e.secrets...)
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		said, _ := io.ReadAll(res.Body) // a partial body is fine
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return refusal(res.StatusCode, said, e.secrets...)
	}
	err = read(res.Body, event)
	if err == nil && !ended() {
		err = unended(res)
	}
	if against := (Error{}); errors.As(err, &against) && ctx.Err() == nil {
		return refusal(0, against.Event, e.secrets...)
	}
	if err != nil {
		return broken(ctx, err, e.secrets...)
	}
	return nil
}

func read(body io.Reader, event func([]byte) error) error {
	for ev, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		switch {
		case err != nil:
			return err
		case ev.Data == "[DONE]":
			return nil
		case ev.Data == "":
			continue
		}
		if err := event([]byte(ev.Data)); err != nil {
			return err
		}
	}
	return nil
}

// ask makes the request, with retries if they may help.
func (e *Endpoint) ask(ctx context.Context, body []byte) (*http.Response, error) {
	for n := 0; ; n++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header = e.header.Clone()
		res, err := e.client.Do(req)
		if err == nil {
			bound(res)
			if e.heard != nil {
				e.heard(res.StatusCode, res.Header)
			}
		}
		if n >= e.retries || ctx.Err() != nil || err == nil && !passing(res) {
			return res, err
		}
		pause := min(firstPause<<n, longestPause)
		pause -= rand.N(pause / 4) // jitter, so that clients that were refused together do not retry together
		if err == nil {
			pause = wish(res.Header, pause)
			_ = res.Body.Close()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// passing reports whether a retry may succeed soon. An endpoint's own statement
// has precedence.
func passing(res *http.Response) bool {
	if wait, ok := RetryAfter(res.Header); ok && wait > longestWish && res.StatusCode == http.StatusTooManyRequests {
		return false
	}
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	s := res.StatusCode
	return s == http.StatusRequestTimeout || s == http.StatusConflict || s == http.StatusTooManyRequests || s >= http.StatusInternalServerError
}

// wish is how long the endpoint wants the next request to wait; otherwise, if
// it gives no time or one that is too long.
func wish(h http.Header, otherwise time.Duration) time.Duration {
	said, ok := RetryAfter(h)
	if !ok || said > longestWish {
		return otherwise
	}
	return said
}

// RetryAfter returns how long an endpoint wants to be left alone; false if it
// gives no usable time.
func RetryAfter(h http.Header) (time.Duration, bool) {
	wait, ok := retryafter.Of(h, time.Now())
	return wait, ok && wait >= 0 && wait < retryafter.Longest
}

// Text is a string in an event. Some endpoints put another type there, which is
// ignored.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	return nil
}

// Count is a number in an event. Other types are ignored, as in Text.
type Count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseFloat(string(b), 64); err == nil {
		*c = Count(n)
	}
	return nil
}

// Schema is a tool's schema, with its members unchanged. A tool without a schema
// takes an empty object, and all schemas must be objects: a vendor refuses the
// whole request because of one schema of another type.
func Schema(raw json.RawMessage) map[string]any {
	s := map[string]any{"type": "object", "properties": struct{}{}}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // not an object: no members
	for k, v := range members {
		if k != "type" && string(v) != "null" {
			s[k] = v
		}
	}
	return s
}

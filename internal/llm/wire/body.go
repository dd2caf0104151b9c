package wire

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

const (
	maxAnswer  = 64 << 20 // of one turn: some endpoints send half a kilobyte a token
	maxRefusal = 1 << 20
)

// ErrTooMuch says that an endpoint answered more than any turn can be.
var ErrTooMuch = errors.New("the endpoint answers more than 64 MiB in one turn")

// Bound is a middleware of both SDKs, which read a body as far as it goes.
func Bound(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if res == nil || res.Body == nil {
		return res, err
	}
	if res.StatusCode >= 400 {
		res.Body = cut{io.LimitReader(res.Body, maxRefusal), res.Body}
	} else {
		res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer}
	}
	return res, err
}

// Direct is a client that follows no redirects: keys and conversations are for
// the endpoint that was named, and Go takes only some headers away from another.
func Direct(c *http.Client) *http.Client {
	direct := *c
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &direct
}

// Unended says why an answer has no end. Most that are no stream of events come
// from something else than the endpoint that was meant.
func Unended(res *http.Response) error {
	if res == nil {
		return errUnended
	}
	if res.StatusCode >= 300 {
		to := "elsewhere"
		if u, err := res.Location(); err == nil {
			to = "to " + u.Scheme + "://" + u.Host + u.Path
		}
		return fmt.Errorf("it answered %d, which sends requests on %s; they are sent to no other place than the base URL", res.StatusCode, to)
	}
	kind := res.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(kind); kind == "" || err == nil && media == "text/event-stream" {
		return errUnended
	}
	return fmt.Errorf("it answered with %q, not with a stream of events", kind)
}

var errUnended = errors.New("it broke off before its end")

type cut struct {
	io.Reader
	io.Closer
}

type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooMuch
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

package wire

import (
	"errors"
	"io"
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

package wire

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

func TestBodiesAreBounded(t *testing.T) {
	for _, c := range []struct {
		status, most int
		want         error
	}{{200, 64 << 20, ErrTooMuch}, {500, 1 << 20, nil}} {
		res := &http.Response{StatusCode: c.status, Body: endless{}}
		bound(res)
		n, err := io.Copy(io.Discard, res.Body)
		if !errors.Is(err, c.want) || n != int64(c.most) || res.Body.Close() != nil {
			t.Errorf("status %d: %d bytes, %v", c.status, n, err)
		}
	}
}

package wire_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// endless is a body that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }
func (e *endless) Close() error               { return nil }

func TestBodiesAreBounded(t *testing.T) {
	for _, c := range []struct {
		status, most int
		want         error
	}{{200, 64 << 20, wire.ErrTooMuch}, {500, 1 << 20, nil}} {
		body := &endless{}
		res, err := wire.Bound(nil, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Body: body}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		if !errors.Is(err, c.want) || n != int64(c.most) || res.Body.Close() != nil {
			t.Errorf("status %d: %d bytes, %v", c.status, n, err)
		}
	}
	if res, err := wire.Bound(nil, func(*http.Request) (*http.Response, error) { return nil, io.EOF }); res != nil || !errors.Is(err, io.EOF) {
		t.Errorf("%v %v", res, err)
	}
}

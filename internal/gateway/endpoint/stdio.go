package endpoint

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// ServeStdio serves one client over in and out, in either era, until in ends or
// ctx does. Calls under way end then. The caller's Session is that of all calls.
func ServeStdio(ctx context.Context, gw Gateway, caller gateway.Caller, in io.ReadCloser, out io.WriteCloser, o Options) error {
	o.fill()
	s := newServer(gw, o)
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	from := &request{ctx: ctx, caller: caller}
	s.from = func(*mcp.RequestExtra) *request { return from }
	defer gw.OnChange(s.changed)()
	defer gw.EndSession(caller.Session)
	err := s.sdk.Run(ctx, &mcp.IOTransport{Reader: &ending{ReadCloser: in, gone: gone}, Writer: out})
	if err != nil && (ctx.Err() != nil || errors.Is(err, io.EOF)) {
		return nil // it was told to stop, or its client has gone
	}
	return err
}

// ending tells when there is nothing more to read: the client has gone.
type ending struct {
	io.ReadCloser
	gone func()
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if err != nil {
		e.gone()
	}
	return n, err
}

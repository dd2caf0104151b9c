package mcptools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is a connection to the server.
type session struct {
	*mcp.ClientSession
	wire   *wire
	broken atomic.Bool
}

// session returns a session that is not known to be broken. If the server is
// unreachable, it retries for as long as Patience.
func (t *Tools) session(ctx context.Context) (*session, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	if t.now != nil && !t.now.broken.Load() {
		return t.now, nil
	}
	if t.now != nil {
		_ = t.now.Close() // it is broken
		t.now = nil
	}
	give := time.Now().Add(t.o.Patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		s, err := t.connect(ctx)
		if err == nil {
			t.now = s
			return s, nil
		}
		if ctx.Err() != nil || !unsent(err) || time.Now().Add(pause).After(give) {
			return nil, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// connect begins a session. It tries the protocol era with sessions first,
// because at the end of a session the server releases at once what it holds.
// If the server supports only the newer era, that is used.
func (t *Tools) connect(ctx context.Context) (*session, error) {
	s, err := t.connectAs(ctx, "2025-11-25")
	var refused *Refused
	if err == nil || ctx.Err() != nil || unsent(err) || errors.As(err, &refused) && refused.Status != 400 {
		return s, err
	}
	if newer, again := t.connectAs(ctx, ""); again == nil {
		return newer, nil
	}
	return nil, err
}

func (t *Tools) connectAs(ctx context.Context, version string) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("no answer within 10s"))
	defer cancel()
	t.carrier.version.Store(nil)
	w := newWire(&mcp.StreamableClientTransport{
		Endpoint: t.o.URL, HTTPClient: t.carrier.client(), MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxAnswer,
	}, t.carrier, t.heard)
	cs, err := t.client.Connect(ctx, w, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return &session{ClientSession: cs, wire: w}, nil
}

// drop closes a session after an error of its connection. It returns false if
// the error is not about the connection.
func (t *Tools) drop(s *session, err error) bool {
	var refused *Refused
	if spoken(err) != nil || errors.As(err, &refused) && !unsent(err) {
		return false
	}
	s.broken.Store(true)
	return true
}

// spoken is the JSON-RPC error that the server itself sent. The SDK also wraps
// send failures in such an error.
func spoken(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	var transport *url.Error
	if errors.As(err, &transport) || !errors.As(err, &said) {
		return nil
	}
	return said
}

// unsent reports whether a request certainly was not executed.
func unsent(err error) bool {
	var dial *net.OpError
	var refused *Refused
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, mcp.ErrSessionMissing) ||
		errors.As(err, &refused) && refused.Code == "unavailable"
}

// explain converts an error of the connection to one that says what to do.
func (t *Tools) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *Refused
	var dial *net.OpError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("the tools at %s cannot be used: %w", t.shown, refused)
	case errors.As(err, &dial):
		return fmt.Errorf("there is no tool server at %s: %w", t.shown, dial)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the tools at %s cannot be used: the connection was closed", t.shown)
	}
	return fmt.Errorf("the tools at %s cannot be used: %w", t.shown, brief{err})
}

// brief shortens an error that may contain arbitrary text of a server.
type brief struct{ error }

func (b brief) Error() string { return plain(b.error.Error()) }

func (b brief) Unwrap() error { return b.error }

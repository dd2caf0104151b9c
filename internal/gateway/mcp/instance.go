package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// legacyVersion is requested if the newer era is not supported by the transport or
// the server.
const legacyVersion = "2025-11-25"

// closeTimeout bounds the closing of a session at the server.
const closeTimeout = 2 * time.Second

var (
	errClosed   = errors.New("Signalbox is closing it") //nolint:staticcheck // a name
	errNoAnswer = errors.New("it does not answer its health probe")
	errSlow     = errors.New("it was not ready in time")
)

// instance is one connection to a server, including its program if it has one. It is usable
// while ctx lives, and gone once end returns.
type instance struct {
	p           *Provider
	ctx         context.Context
	fail        context.CancelCauseFunc // keeps the first cause
	interceptor *interceptor

	session    *sdk.ClientSession
	child      *child  // stdio only
	link       *link   // WebSocket only
	web        *web    // all but stdio
	direct     *direct // nil: the SDK makes the calls
	disconnect context.CancelFunc

	calls        atomic.Int32
	probeNow     chan struct{} // asks for a health probe now
	toolsChanged chan struct{} // the server's tools changed
	ending       sync.Once
	ended        chan struct{}
	watch        sync.WaitGroup
}

// connect starts or dials the server and negotiates the version. The instance lives until ctx
// ends or it fails.
func (p *Provider) connect(ctx context.Context, legacy bool) (*instance, error) {
	i := &instance{p: p, probeNow: make(chan struct{}, 1), toolsChanged: make(chan struct{}, 1), ended: make(chan struct{})}
	i.ctx, i.fail = context.WithCancelCause(ctx)
	i.interceptor = newInterceptor(p.server.Name, p.log, p.mask, i.fail)
	slow := time.AfterFunc(p.opts.StartTimeout, func() { i.fail(errSlow) })
	defer slow.Stop()
	err := i.negotiate(legacy)
	if err != nil {
		err = i.reason(err)
		i.fail(err)
		i.end()
		return nil, i.explain(err)
	}
	i.direct = newDirect(i)
	i.watch.Go(func() { // the connection may end by itself
		err := i.session.Wait()
		if err == nil {
			err = errLinkClosed
		}
		i.fail(err)
	})
	i.watch.Go(i.monitor)
	return i, nil
}

// negotiate connects and agrees on a protocol version.
func (i *instance) negotiate(legacy bool) (err error) {
	if i.p.server.Transport == toolconf.HTTP {
		return i.negotiateHTTP()
	}
	version := ""
	if legacy {
		version = legacyVersion
	}
	i.session, err = i.open(version)
	return err
}

// negotiateHTTP tries the era with sessions first: there a call costs about half. Two kinds of
// servers get the newest version that both sides know instead: a server without a session ID,
// which cannot receive cancels in that era, and a server that supports only the newer era.
func (i *instance) negotiateHTTP() error {
	first, err := i.open(legacyVersion)
	if err == nil && first.ID() != "" {
		i.session = first
		return nil
	}
	if err != nil && i.ctx.Err() != nil {
		return err
	}
	newest, again := i.open("")
	switch {
	case again == nil:
		i.session = newest
		if first != nil {
			_ = first.Close() // the server keeps no session for it
		}
	case err == nil:
		i.session = first
	default:
		return again
	}
	return nil
}

// open opens a session with this version, or with the newest version that
// both sides know.
func (i *instance) open(version string) (*sdk.ClientSession, error) {
	t, old, err := i.transport()
	if err != nil {
		return nil, err
	}
	if old {
		version = legacyVersion
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "signalbox", Version: i.p.opts.Version}, &sdk.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler), // this package logs instead
		Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			notify(i.toolsChanged)
		},
	})
	return client.Connect(i.ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
}

// transport starts or dials the server. old: the transport belongs to the older
// era.
func (i *instance) transport() (t sdk.Transport, old bool, err error) {
	s := i.p.server
	if s.Transport == toolconf.Stdio {
		if i.child, err = startChild(s, i.interceptor, i.p.stderrBudget); err != nil {
			return nil, false, err
		}
		return fixedTransport{i.child.link}, false, nil
	}
	if i.web == nil {
		// Requests outlive ctx until the session is closed.
		net, cancel := context.WithCancel(context.WithoutCancel(i.ctx))
		i.disconnect = cancel
		if i.web, err = newWeb(net, s.URL, s.Headers, i.p.opts.Prove, i.interceptor); err != nil {
			return nil, false, err
		}
	}
	switch s.Transport {
	case toolconf.HTTP:
		// A proxy that ends idle streams every minute is not a failure, so the SDK
		// may resume streams any number of times. The health probe detects that the
		// server is gone.
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: i.web.client(), MaxRetries: 1 << 30, MaxEventSize: -1}, false, nil
	case toolconf.SSE:
		i.web.posts = true
		return &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: i.web.client(), MaxEventSize: -1}, true, nil
	case toolconf.WebSocket:
		if i.link, err = dialWebSocket(i.ctx, i.web.ctx, s.URL, i.web.client(), i.interceptor); err != nil {
			return nil, true, err
		}
		return fixedTransport{i.link}, true, nil
	}
	return nil, false, fmt.Errorf("the transport %q is none of stdio, http, sse, websocket", s.Transport)
}

// fixedTransport is a transport of an existing connection.
type fixedTransport struct{ conn sdk.Connection }

// Connect implements the SDK's Transport.
func (f fixedTransport) Connect(context.Context) (sdk.Connection, error) { return f.conn, nil }

// end closes the session, disconnects, ends the program, and returns when all of it
// has ended.
func (i *instance) end() {
	i.ending.Do(func() {
		i.fail(errClosed)
		if i.child != nil { // closing stdin is all that a stdio server is told
			i.child.fail(errLinkClosed)
		}
		if i.link != nil {
			i.link.fail(errLinkClosed)
		}
		if i.session != nil {
			i.waitCancelsSent()
			i.closeSession()
		}
		if i.child != nil {
			if err := i.child.end(); err != nil {
				i.p.unkillablePIDs(err)
				i.p.log.Error("a tool server's processes could not be ended", "server", i.p.server.Name, "error", err)
			}
		}
		if i.disconnect != nil {
			i.disconnect()
		}
		if i.web != nil {
			(&http.Client{Transport: i.web.base}).CloseIdleConnections()
		}
		i.watch.Wait()
		close(i.ended)
	})
	<-i.ended
}

// waitCancelsSent waits until the cancels of the calls that end with the instance are sent: a
// server may wait for them when its session ends. If the session is lost, it waits until the
// calls have learnt that.
func (i *instance) waitCancelsSent() {
	for end := time.Now().Add(cancelTimeout); (i.closing() || i.sessionLost()) && i.calls.Load() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

// closing reports whether Signalbox is ending a web instance, so that the server
// must be told.
func (i *instance) closing() bool {
	cause := context.Cause(i.ctx)
	return i.web != nil && (errors.Is(cause, context.Canceled) || errors.Is(cause, errClosed) || errors.Is(cause, errSessionEnded))
}

// closeSession closes the session; over HTTP this is a request.
func (i *instance) closeSession() {
	closed := make(chan struct{})
	go func() {
		_ = i.session.Close() // an error has no consequence
		close(closed)
	}()
	t := time.NewTimer(closeTimeout)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
}

// reason is why the instance is unusable. err is the observed error.
func (i *instance) reason(err error) error {
	if cause := context.Cause(i.ctx); cause != nil {
		err = cause
	}
	return err
}

// explain describes a reason for people, with the last output of the program and without
// secrets. It is called after the instance has ended.
func (i *instance) explain(err error) error {
	if i.child != nil {
		err = i.child.reason(err)
	} else {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest is the URL, which may contain a secret
		}
	}
	return errors.New(printable(i.p.mask.hide(err.Error())))
}

// notify sends to c without blocking.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

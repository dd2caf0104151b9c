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

// legacyVersion is asked for where the newer era has no binding, or was not
// understood.
const legacyVersion = "2025-11-25"

// farewell bounds how long a server may take to hear that a session ends.
const farewell = 2 * time.Second

var (
	errClosed   = errors.New("Signalbox is closing it") //nolint:staticcheck // a name
	errNoAnswer = errors.New("it does not answer its health probe")
	errSlow     = errors.New("it was not ready in time")
)

// instance is one connection to a server, with the program behind it where it
// has one. It is used for as long as ctx lives, and gone once end returns.
type instance struct {
	p    *Provider
	ctx  context.Context
	fail context.CancelCauseFunc // the first cause stands
	tap  *tap

	session *sdk.ClientSession
	child   *child  // of stdio
	link    *link   // of a WebSocket
	web     *web    // of all but stdio
	direct  *direct // nil: calls are made by the SDK
	hangUp  context.CancelFunc

	calls  atomic.Int32
	kick   chan struct{} // probe now
	relist chan struct{} // the server's tools are others
	ending sync.Once
	ended  chan struct{}
	watch  sync.WaitGroup
}

// connect starts or dials the server and greets it. The instance lives until
// ctx ends or it fails.
func (p *Provider) connect(ctx context.Context, legacy bool) (*instance, error) {
	i := &instance{p: p, kick: make(chan struct{}, 1), relist: make(chan struct{}, 1), ended: make(chan struct{})}
	i.ctx, i.fail = context.WithCancelCause(ctx)
	i.tap = newTap(p.server.Name, p.log, p.mask, i.fail)
	slow := time.AfterFunc(p.opts.StartTimeout, func() { i.fail(errSlow) })
	defer slow.Stop()
	err := i.greet(legacy)
	if err != nil {
		err = i.reason(err)
		i.fail(err)
		i.end()
		return nil, i.explain(err)
	}
	i.direct = newDirect(i)
	i.watch.Go(func() { // the connection ends by itself
		err := i.session.Wait()
		if err == nil {
			err = errLinkClosed
		}
		i.fail(err)
	})
	i.watch.Go(i.look)
	return i, nil
}

// greet connects and agrees on a protocol version.
func (i *instance) greet(legacy bool) (err error) {
	if i.p.server.Transport == toolconf.HTTP {
		return i.greetHTTP()
	}
	version := ""
	if legacy {
		version = legacyVersion
	}
	i.session, err = i.open(version)
	return err
}

// greetHTTP tries the era with sessions first: there a call costs a server of
// both about half. One that gives out no session could not be told in that era
// that a call was given up, and one of the newer era alone does not know it:
// they are greeted in the newest that they know.
func (i *instance) greetHTTP() error {
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
			_ = first.Close() // it has no session that the server would hear of
		}
	case err == nil:
		i.session = first
	default:
		return again
	}
	return nil
}

// open opens a session: of that version, else of the newest that both know.
func (i *instance) open(version string) (*sdk.ClientSession, error) {
	t, old, err := i.transport()
	if err != nil {
		return nil, err
	}
	if old {
		version = legacyVersion
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "signalbox", Version: i.p.opts.Version}, &sdk.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler), // what is worth a line is logged here
		Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			poke(i.relist)
		},
	})
	return client.Connect(i.ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
}

// transport starts or dials the server. old: the transport is of the older
// era.
func (i *instance) transport() (t sdk.Transport, old bool, err error) {
	s := i.p.server
	if s.Transport == toolconf.Stdio {
		if i.child, err = startChild(s, i.tap, i.p.said); err != nil {
			return nil, false, err
		}
		return fixed{i.child.link}, false, nil
	}
	if i.web == nil {
		// Requests outlive ctx for as long as it takes to say goodbye.
		net, hangUp := context.WithCancel(context.WithoutCancel(i.ctx))
		i.hangUp = hangUp
		if i.web, err = newWeb(net, s.URL, s.Headers, i.p.opts.Prove, i.tap); err != nil {
			return nil, false, err
		}
	}
	switch s.Transport {
	case toolconf.HTTP:
		// A proxy that ends idle streams every minute is no failure, so the
		// SDK may take them up again any number of times; the health probe
		// says when the server is gone.
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: i.web.client(), MaxRetries: 1 << 30, MaxEventSize: -1}, false, nil
	case toolconf.SSE:
		i.web.posts = true
		return &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: i.web.client(), MaxEventSize: -1}, true, nil
	case toolconf.WebSocket:
		if i.link, err = dialWebSocket(i.ctx, i.web.ctx, s.URL, i.web.client(), i.tap); err != nil {
			return nil, true, err
		}
		return fixed{i.link}, true, nil
	}
	return nil, false, fmt.Errorf("the transport %q is none of stdio, http, sse, websocket", s.Transport)
}

// fixed is a transport whose connection is there already.
type fixed struct{ conn sdk.Connection }

// Connect implements the SDK's Transport.
func (f fixed) Connect(context.Context) (sdk.Connection, error) { return f.conn, nil }

// end says goodbye, hangs up, ends the program, and returns when nothing of
// the instance is left.
func (i *instance) end() {
	i.ending.Do(func() {
		i.fail(errClosed)
		if i.child != nil { // to close it is all there is to say
			i.child.fail(errLinkClosed)
		}
		if i.link != nil {
			i.link.fail(errLinkClosed)
		}
		if i.session != nil {
			i.hush()
			i.goodbye()
		}
		if i.child != nil {
			if err := i.child.end(); err != nil {
				i.p.leftOver(err)
				i.p.log.Error("a tool server's processes could not be ended", "server", i.p.server.Name, "error", err)
			}
		}
		if i.hangUp != nil {
			i.hangUp()
		}
		if i.web != nil {
			(&http.Client{Transport: i.web.base}).CloseIdleConnections()
		}
		i.watch.Wait()
		close(i.ended)
	})
	<-i.ended
}

// hush waits until the server was told of the calls that end with the
// instance: one that ends a session may wait for them. Where it has forgotten
// the session, it waits until they have heard so.
func (i *instance) hush() {
	for end := time.Now().Add(tellWait); (i.closing() || i.forgotten()) && i.calls.Load() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

// closing reports whether an instance of the web has come to its end by us, so
// that there is still a server to be told.
func (i *instance) closing() bool {
	cause := context.Cause(i.ctx)
	return i.web != nil && (errors.Is(cause, context.Canceled) || errors.Is(cause, errClosed) || errors.Is(cause, errSessionEnded))
}

// goodbye closes the session, which over HTTP the server is told.
func (i *instance) goodbye() {
	closed := make(chan struct{})
	go func() {
		_ = i.session.Close() // nobody is left to tell
		close(closed)
	}()
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
}

// reason is why the instance is of no use; err is what was seen of it.
func (i *instance) reason(err error) error {
	if cause := context.Cause(i.ctx); cause != nil {
		err = cause
	}
	return err
}

// explain puts a reason in words for people: with what a program said last,
// and without secrets. It is asked once the instance has ended.
func (i *instance) explain(err error) error {
	if i.child != nil {
		err = i.child.reason(err)
	} else {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest is its address, which may carry a secret
		}
	}
	return errors.New(printable(i.p.mask.hide(err.Error())))
}

// poke wakes whoever waits for c, now or later.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

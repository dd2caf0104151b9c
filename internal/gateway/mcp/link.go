package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/signalbox-ai/signalbox"
)

const (
	// linkRoom is how many messages may stand between a transport and the SDK.
	linkRoom = 64
	// discoverWait bounds the wait for an answer to server/discover, which
	// servers of the older era do not know; some of them do not say so.
	discoverWait = 10 * time.Second
)

var errLinkClosed = errors.New("the connection is closed")

// link is a connection of the SDK for transports that carry one message after
// the other. Neither a call that ends nor a server that does not read holds
// others up: a goroutine of the transport takes from out.
type link struct {
	tap  *tap
	in   chan jsonrpc.Message
	out  chan []byte
	done chan struct{}

	once sync.Once
	err  error // why done is closed
	hang func()

	mu       sync.Mutex
	discover *time.Timer
}

// newLink makes a link; hang is called once when it closes, and must be quick.
func newLink(t *tap, hang func()) *link {
	return &link{tap: t, in: make(chan jsonrpc.Message, linkRoom), out: make(chan []byte, linkRoom), done: make(chan struct{}), hang: hang}
}

// deliver hands a message to the SDK.
func (l *link) deliver(msg jsonrpc.Message) {
	select {
	case l.in <- msg:
	case <-l.done:
	}
}

// Read implements the SDK's Connection. What came before the end is still read.
func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-l.in:
		return msg, nil
	default:
	}
	select {
	case msg := <-l.in:
		return msg, nil
	case <-l.done:
		return nil, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection.
func (l *link) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	l.tap.outgoing(ctx, msg)
	l.watchDiscover(msg)
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case l.out <- data:
		l.tap.sent(ctx, msg) // what comes later comes behind it
		return nil
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchDiscover has a server that does not answer server/discover taken for
// one that does not know it.
func (l *link) watchDiscover(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.discover != nil { // whatever is asked next, it is over
		l.discover.Stop()
		l.discover = nil
	}
	if req.Method == "server/discover" {
		unknown := &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}
		l.discover = time.AfterFunc(discoverWait, func() { l.deliver(unknown) })
	}
}

// fail closes the link for a reason.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.mu.Lock()
		if l.discover != nil {
			l.discover.Stop()
		}
		l.mu.Unlock()
		l.err = err
		if !errors.Is(err, io.EOF) { // which is the SDK's way to close it
			l.tap.bad(err) // before any call can see that it failed
		}
		close(l.done)
		l.hang()
	})
}

// Close implements the SDK's Connection.
func (l *link) Close() error {
	l.fail(io.EOF)
	return nil
}

// SessionID implements the SDK's Connection: there is none.
func (l *link) SessionID() string { return "" }

// pump writes what the SDK sends until the link closes.
func (l *link) pump(write func([]byte) error) {
	for {
		select {
		case data := <-l.out:
			if err := write(data); err != nil {
				l.fail(err)
				return
			}
		case <-l.done:
			return
		}
	}
}

// wsProtocol is the subprotocol of MCP over a WebSocket: a message each.
const wsProtocol = "mcp"

// dialWebSocket connects while dial lives; the connection then lives until ctx
// ends or the link closes.
func dialWebSocket(dial, ctx context.Context, addr string, client *http.Client, t *tap) (*link, error) {
	conn, resp, err := websocket.Dial(dial, addr, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{wsProtocol}}) //nolint:bodyclose // the package does
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("it answered HTTP %s to the WebSocket handshake", statusText(resp.StatusCode))
		}
		return nil, err
	}
	conn.SetReadLimit(-1) // gather keeps no more than it may
	ctx, cancel := context.WithCancel(ctx)
	l := newLink(t, func() {
		go func() {
			_ = conn.Close(websocket.StatusNormalClosure, "") // bounded; nobody is left to tell
			cancel()
		}()
	})
	go l.pump(func(data []byte) error { return conn.Write(ctx, websocket.MessageText, data) })
	go func() { l.fail(readWebSocket(ctx, conn, &gather{tap: t, deliver: l.deliver})) }()
	return l, nil
}

// readWebSocket reads messages until the connection ends.
func readWebSocket(ctx context.Context, conn *websocket.Conn, g *gather) error {
	buf := make([]byte, 32<<10)
	for {
		_, r, err := conn.Reader(ctx)
		if err != nil {
			return closedBy(err)
		}
		for {
			n, err := r.Read(buf)
			g.add(buf[:n])
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return closedBy(err)
			}
		}
		g.end()
	}
}

// closedBy says why the connection has ended.
func closedBy(err error) error {
	if code := websocket.CloseStatus(err); code != -1 {
		return fmt.Errorf("the server closed the connection (%v)", code)
	}
	return fmt.Errorf("the connection was lost: %w", err)
}

// body ends its request when it is closed.
type body struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// limited fails a body that is longer than it may be.
type limited struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("its answer is too long")
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func success(status int) bool { return status >= 200 && status < 300 }

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

func (w *web) misread() *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with something that is no MCP message.", w.tap.name)
}

// refused is the fault of an HTTP status.
func (w *web) refused(status int) *signalbox.Error {
	code := signalbox.CodeToolFailed
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = signalbox.CodeToolDown
	}
	hint := ""
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = " Check the headers that are configured for it."
	}
	if success(status) {
		return w.misread()
	}
	return signalbox.Errorf(code, "The server %q answered HTTP %s to the call.%s", w.tap.name, statusText(status), hint)
}

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
	// linkBuffer is the number of messages buffered between a transport and the SDK.
	linkBuffer = 64
	// discoverTimeout bounds the wait for server/discover, which older servers may ignore.
	discoverTimeout = 10 * time.Second
)

var errLinkClosed = errors.New("the connection is closed")

// link is an SDK connection for transports that send one message after another. Neither an
// ended call nor a server that does not read blocks other calls: a goroutine per transport
// writes.
type link struct {
	interceptor *interceptor
	in          chan jsonrpc.Message
	out         chan []byte
	done        chan struct{}

	once    sync.Once
	err     error // why done is closed
	onClose func()

	mu       sync.Mutex
	discover *time.Timer
}

// newLink makes a link; onClose is called once when it closes and must be quick.
func newLink(t *interceptor, onClose func()) *link {
	return &link{interceptor: t, in: make(chan jsonrpc.Message, linkBuffer), out: make(chan []byte, linkBuffer), done: make(chan struct{}), onClose: onClose}
}

// deliver hands a message to the SDK.
func (l *link) deliver(msg jsonrpc.Message) {
	select {
	case l.in <- msg:
	case <-l.done:
	}
}

// Read implements the SDK's Connection. Messages that arrived before the end
// can still be read.
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
	l.interceptor.outgoing(ctx, msg)
	l.watchDiscover(msg)
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case l.out <- data:
		l.interceptor.sent(ctx, msg) // later messages are queued behind it
		return nil
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchDiscover treats a server that does not answer server/discover like a server that does
// not know the method.
func (l *link) watchDiscover(msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.discover != nil { // any other request means that discovery has ended
		l.discover.Stop()
		l.discover = nil
	}
	if req.Method == "server/discover" {
		unknown := &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}
		l.discover = time.AfterFunc(discoverTimeout, func() { l.deliver(unknown) })
	}
}

// fail closes the link with a reason.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.mu.Lock()
		if l.discover != nil {
			l.discover.Stop()
		}
		l.mu.Unlock()
		l.err = err
		if !errors.Is(err, io.EOF) { // the SDK closes with EOF
			l.interceptor.bad(err) // before any call sees the failure
		}
		close(l.done)
		l.onClose()
	})
}

// Close implements the SDK's Connection.
func (l *link) Close() error {
	l.fail(io.EOF)
	return nil
}

// SessionID implements the SDK's Connection: there is none.
func (l *link) SessionID() string { return "" }

// writeLoop writes the SDK's messages until the link closes.
func (l *link) writeLoop(write func([]byte) error) {
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

// wsProtocol is the WebSocket subprotocol of MCP: one message per frame.
const wsProtocol = "mcp"

// dialWebSocket connects, bounded by dial; the connection then lives until ctx
// ends or the link closes.
func dialWebSocket(dial, ctx context.Context, addr string, client *http.Client, t *interceptor) (*link, error) {
	conn, resp, err := websocket.Dial(dial, addr, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{wsProtocol}}) //nolint:bodyclose // the package does
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("it answered HTTP %s to the WebSocket handshake", statusText(resp.StatusCode))
		}
		return nil, err
	}
	conn.SetReadLimit(-1) // messageReader enforces the limit
	ctx, cancel := context.WithCancel(ctx)
	l := newLink(t, func() {
		go func() {
			_ = conn.Close(websocket.StatusNormalClosure, "") // Close is bounded; its error has no consequence
			cancel()
		}()
	})
	go l.writeLoop(func(data []byte) error { return conn.Write(ctx, websocket.MessageText, data) })
	go func() { l.fail(readWebSocket(ctx, conn, &messageReader{interceptor: t, deliver: l.deliver})) }()
	return l, nil
}

// readWebSocket reads messages until the connection ends.
func readWebSocket(ctx context.Context, conn *websocket.Conn, g *messageReader) error {
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

// closedBy describes why the connection ended.
func closedBy(err error) error {
	if code := websocket.CloseStatus(err); code != -1 {
		return fmt.Errorf("the server closed the connection (%v)", code)
	}
	return fmt.Errorf("the connection was lost: %w", err)
}

// cancelBody cancels its request when it is closed.
type cancelBody struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *cancelBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// limitedBody fails when a body exceeds its limit.
type limitedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (l *limitedBody) Read(p []byte) (int, error) {
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

func (w *web) readError() *signalbox.Error {
	return signalbox.Errorf(signalbox.CodeToolFailed, "The server %q answered with something that is not an MCP message.", w.interceptor.name)
}

// statusError is the error for an HTTP status.
func (w *web) statusError(status int) *signalbox.Error {
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
		return w.readError()
	}
	return signalbox.Errorf(code, "The server %q answered HTTP %s to the call.%s", w.interceptor.name, statusText(status), hint)
}

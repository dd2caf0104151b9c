package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

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

package mcp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
		l.discover = time.AfterFunc(discoverWait, func() { l.deliver(unknownMethod(req.ID)) })
	}
}

func unknownMethod(id jsonrpc.ID) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}
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

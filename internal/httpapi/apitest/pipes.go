package apitest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// Pipes is a listener whose connections are net.Pipes, so that it can be used in a
// synctest bubble.
type Pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to the director.
func (p *Pipes) Dial(t *testing.T) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	select {
	case p.conns <- server:
	case <-p.done:
		t.Fatal("the director does not listen any more")
	}
	return client
}

// ServePipes serves on pipes. The returned function stops the director and waits.
func ServePipes(t *testing.T, b *Fixture) (*Pipes, func()) {
	t.Helper()
	p := newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Server.Serve(ctx, p) }()
	return p, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
}

// WriteString writes text to a connection.
func WriteString(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// LimitedUser is a user who may use only the agent coder.
var LimitedUser = signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "someone", Email: "someone@example.com", Scopes: signalbox.RoleUser.Scopes(), Agents: []string{"coder"}}

func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

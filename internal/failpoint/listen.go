package failpoint

import (
	"bytes"
	"net"
	"strings"
	"sync"
)

// Listener adds points around the answers that are written to its connections. name names an answer by method
// and path; "" has no point. It parses requests as they are read: HTTP/1.1 without pipelining, like all of
// ours.
func (s *Set) Listener(under net.Listener, name func(method, path string) string) net.Listener {
	return &listener{under, s, name}
}

type listener struct {
	net.Listener
	set  *Set
	name func(method, path string) string
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, l: l}, nil
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	l  *listener
	mu sync.Mutex
	// point is that of the request whose answer is due, "" for none; begun: a part of the answer has been
	// written.
	point string
	begun bool
}

// Read implements net.Conn. At the beginning of a request its answer becomes due.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	line, _, _ := bytes.Cut(b[:n], []byte("\r\n"))
	if words := strings.Split(string(line), " "); len(words) == 3 && strings.HasPrefix(words[2], "HTTP/1.") {
		path, _, _ := strings.Cut(words[1], "?")
		c.mu.Lock()
		c.point, c.begun = c.l.name(words[0], path), false
		c.mu.Unlock()
	}
	return n, err
}

// Write implements net.Conn: the first one is the answer, or its beginning.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	point, first := c.point, !c.begun
	c.begun = true
	c.mu.Unlock()
	if point == "" || !first {
		return c.Conn.Write(b)
	}
	if c.l.set.Hit(point+".before") != "" {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(b)
	if c.l.set.Hit(point+".after") != "" {
		_ = c.Close() // what was written may have arrived, the rest will not
	}
	return n, err
}

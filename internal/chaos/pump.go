package chaos

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pair is a client's connection and that to the server which belongs to it.
type pair struct {
	p              *Proxy
	client, server net.Conn
	// mute swallows what the server says; answered has one when it has said
	// something.
	mute     atomic.Bool
	answered chan struct{}
	ended    chan struct{} // closed when the server says nothing more
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	defer p.forget(client)
	if !p.keep(client) {
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(p.ctx, "tcp", to)
	if err != nil {
		reset(client) // what a client gets where nobody listens, as near as it can be
		return
	}
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	c := &pair{p: p, client: client, server: server, answered: make(chan struct{}, 1), ended: make(chan struct{})}
	p.all.Go(func() {
		defer close(c.ended)
		c.pump(Down, server, client)
	})
	c.pump(Up, client, server)
	<-c.ended
}

// pump passes on what one side says until it ends, or a fault ends it. Where
// the server may go on alone, a fault waits for that itself.
func (c *pair) pump(way Way, from, to net.Conn) {
	defer func() { _ = to.Close() }() // a fault may have closed it
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		said := buffer[:n]
		if way == Down && n > 0 {
			select {
			case c.answered <- struct{}{}:
			default:
			}
			if c.mute.Load() {
				continue
			}
			said = c.p.rewritten(said)
		}
		if n > 0 && !c.say(way, said, to) || err != nil {
			return
		}
	}
}

// say passes something on, or what a fault makes of it, and reports whether
// the connection goes on.
func (c *pair) say(way Way, said []byte, to net.Conn) bool {
	c.p.pass(way)
	s := c.p.draw(way, said)
	if s == nil {
		_, err := to.Write(said)
		return err == nil
	}
	struck := sync.OnceFunc(func() { close(s.done) })
	defer struck()
	return c.suffer(s.fault, said, to, struck)
}

// suffer calls struck where the fault has struck before it is over.
func (c *pair) suffer(f Fault, said []byte, to net.Conn, struck func()) bool {
	switch f {
	case DropBefore:
		_ = c.client.Close()
		return false
	case DropAfter:
		c.dropAfter(said)
		return false
	case Duplicate:
		copied := bytes.Clone(said)
		c.p.all.Go(func() { c.p.again(copied, c.server.RemoteAddr().String()) })
	case KeepBack:
		_ = c.client.Close()
		c.keepBack(said, struck)
		return false
	case KeepHalf:
		_, _ = to.Write(said[:len(said)/2])
		released := make(chan struct{})
		c.p.hold(func() { close(released) })
		struck()
		select {
		case <-released:
		case <-c.ended: // by the server
		}
		return false
	case DelayUp, DelayDown:
		c.p.sleep(c.p.some())
	case TruncateUp, TruncateDown:
		_, _ = to.Write(said[:len(said)/2])
		return false
	case ResetUp, ResetDown:
		reset(c.client)
		reset(c.server)
		return false
	case DripUp, DripDown:
		return drip(to, said)
	case PartitionUp:
		c.p.wall(Up)
		c.p.pass(Up)
	case PartitionDown:
		c.p.wall(Down)
		c.p.pass(Down)
	case PartitionBoth:
		c.p.wall(Up, Down)
		c.p.pass(Up)
	}
	_, err := to.Write(said)
	return err == nil
}

// dropAfter lets the server have it and waits until it has answered. The
// client does not see the connection break before: it might ask the server to
// stop.
func (c *pair) dropAfter(said []byte) {
	select {
	case <-c.answered: // something before
	default:
	}
	c.mute.Store(true)
	_, err := c.server.Write(said)
	for patience := 2 * time.Second; err == nil && patience > 0; {
		select {
		case <-c.answered:
			patience = 20 * time.Millisecond // for more of it
		case <-time.After(patience):
			patience = 0
		case <-c.p.ctx.Done():
			patience = 0
		}
	}
	_ = c.client.Close()
}

// keepBack lets the server have it at Release, with nobody to answer.
func (c *pair) keepBack(said []byte, struck func()) {
	c.mute.Store(true)
	released, done := make(chan struct{}), make(chan struct{})
	c.p.hold(func() { close(released); <-done })
	struck()
	<-released
	_, _ = c.server.Write(said)
	if tcp, ok := c.server.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	<-c.ended // the server has done it
	close(done)
}

// again says a whole request once more, a moment later, and listens to the
// answer for a while.
func (p *Proxy) again(said []byte, to string) {
	p.sleep(p.some() / 4)
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(p.ctx, "tcp", to)
	if err != nil || !p.keep(conn) {
		return
	}
	defer p.forget(conn)
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := conn.Write(said); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// wholeRequest reports whether something is an HTTP request from beginning to
// end, and nothing beside.
func wholeRequest(said []byte) bool {
	rest := bufio.NewReader(bytes.NewReader(said))
	r, err := http.ReadRequest(rest)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return false
	}
	return rest.Buffered() == 0
}

// drip passes something on in so many pieces at most, a millisecond apart.
func drip(to net.Conn, said []byte) bool {
	const most = 200
	size := max(1, len(said)/most)
	for len(said) > 0 {
		n := min(size, len(said))
		if _, err := to.Write(said[:n]); err != nil {
			return false
		}
		said = said[n:]
		time.Sleep(time.Millisecond)
	}
	return true
}

// reset ends a connection as a machine does that does not know it any more.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (p *Proxy) rewritten(b []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.old) == 0 {
		return b
	}
	// The text is led by its length: what is longer takes room at its end.
	changed := bytes.Replace(b, p.old, p.fresh, 1)
	if more := len(changed) - len(b); more > 0 && bytes.HasSuffix(changed, []byte("\r\n")) {
		changed = append(changed[:len(changed)-2-more], '\r', '\n')
	}
	return changed
}

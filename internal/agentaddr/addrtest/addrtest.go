// Package addrtest is a hostile name server: its names resolve to another
// address at each lookup.
package addrtest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// Resolver answers questions for any name.
type Resolver struct {
	conn net.PacketConn

	mu    sync.Mutex
	next  []netip.Addr
	asked map[uint16]int // by query type
	over  bool
	conns []net.Conn // of clients
}

// attacker is the name server in use, or nil.
var attacker atomic.Pointer[Resolver]

// The process's resolver is replaced before its first use, because a lookup may
// outlive the test that began it.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dial}
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r := attacker.Load(); r != nil {
		return r.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Use makes this process resolve all names with a hostile server until the
// test ends: to each of the addresses in turn, and then always to the last
// one. Tests that use it cannot run in parallel.
func Use(t *testing.T, next ...netip.Addr) *Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Resolver{conn: conn, next: next, asked: map[uint16]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.serve()
	}()
	before := attacker.Swap(r)
	t.Cleanup(func() {
		attacker.Store(before)
		r.end()
		_ = conn.Close() // makes serve end
		<-done
	})
	return r
}

func (r *Resolver) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", r.conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		_ = c.Close() // there was no query
		return nil, net.ErrClosed
	}
	r.conns = append(r.conns, c)
	return c, nil
}

// end closes connections of clients that still wait for an answer.
func (r *Resolver) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, c := range r.conns {
		_ = c.Close() // most were already closed by the client
	}
}

// Asked is the number of queries for an IPv4 address.
func (r *Resolver) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[typeA]
}

func (r *Resolver) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := r.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if said := r.answer(buf[:n]); said != nil {
			_, _ = r.conn.WriteTo(said, from)
		}
	}
}

const (
	header = 12
	typeA  = 1
	typeV6 = 28
)

// answer repeats the query with the current address (RFC 1035, 4.1).
func (r *Resolver) answer(ask []byte) []byte {
	end := header
	for end < len(ask) && ask[end] != 0 {
		end += 1 + int(ask[end])
	}
	end += 5 // the end of the name, and type and class
	if len(ask) < end {
		return nil
	}
	to := r.lead(binary.BigEndian.Uint16(ask[end-4:]))
	said := append([]byte{}, ask[:end]...)
	copy(said[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	if to.IsValid() {
		said[7] = 1
		bytes := to.AsSlice()
		said = append(said, 0xc0, header)        // the queried name
		said = append(said, ask[end-4:end]...)   // its type and class
		said = append(said, 0, 0, 0, 0)          // TTL 0
		said = append(said, 0, byte(len(bytes))) // length of the data
		return append(said, bytes...)
	}
	return said
}

// lead returns the address to which the name now resolves. Each query for one
// record type counts separately, because a lookup queries both types.
func (r *Resolver) lead(kind uint16) netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.next[min(r.asked[kind], len(r.next)-1)]
	r.asked[kind]++
	if kind == typeA && to.Is4() || kind == typeV6 && to.Is6() {
		return to
	}
	return netip.Addr{}
}

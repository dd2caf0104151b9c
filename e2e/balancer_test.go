package e2e_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer is one address in front of several directors: each connection goes
// to the next one that answers, as with a plain TCP load balancer.
type balancer struct {
	url     string
	targets []string
	next    atomic.Int64
}

func newBalancer(t *testing.T, targets ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{url: "http://" + l.Addr().String(), targets: targets}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { b.carry(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		all.Wait()
	})
	return b
}

// carry connects a connection with one to a director, until either side
// closes it.
func (b *balancer) carry(ctx context.Context, from net.Conn) {
	defer from.Close()
	to := b.dial(ctx)
	if to == nil {
		return
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { from.Close(); to.Close() })
	defer stop()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(from, to)
		from.Close()
	}()
	_, _ = io.Copy(to, from)
	to.Close()
	<-back
}

func (b *balancer) dial(ctx context.Context) net.Conn {
	d := net.Dialer{Timeout: time.Second}
	for range b.targets {
		n := int(b.next.Add(1)) % len(b.targets)
		if conn, err := d.DialContext(ctx, "tcp", b.targets[n]); err == nil {
			return conn
		}
	}
	return nil
}

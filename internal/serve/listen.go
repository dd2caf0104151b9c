package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// URL is the URL of a listener from this host.
func URL(l net.Listener) string {
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err == nil && at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
		return "http://" + at.String()
	}
	return "http://" + l.Addr().String()
}

// IsLoopback reports whether only this host can reach a listener at addr, a host with
// a port. It is true for an invalid address.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// deadHolds limits the wait for the port of a director that was killed: a command that
// it was just starting holds the inherited port until its exec.
const deadHolds = 2 * time.Second

// ListenUntil listens at addr until g stops. The error for an address in use names the
// process that has it, if known, and the flag to choose another.
func ListenUntil(ctx context.Context, g *lifecycle.Group, addr string) (net.Listener, error) {
	l, err := Listen(ctx, addr)
	if err == nil {
		g.Defer(func() { _ = l.Close() }) // closed already after serving
	}
	return l, err
}

// Listen listens at addr. See ListenUntil.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	for begun := time.Now(); ; {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, addressInUse) {
			return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
		}
		holder := "another program"
		if f, ok := DefaultDirector(); ok && samePort(f, addr) {
			if !proc.Running(f.PID) && time.Since(begun) < deadHolds {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			holder = fmt.Sprintf("a director with data folder %s (pid %d)", f.Data, f.PID)
		}
		return nil, fmt.Errorf("%s is taken by %s: stop it, or choose another address with --addr, such as --addr 127.0.0.1:0 for any free port", addr, holder)
	}
}

func samePort(f api.DirectorFile, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && strings.HasSuffix(f.URL, ":"+port)
}

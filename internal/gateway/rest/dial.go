package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/internal/agentaddr"
)

// Reach says whom a Client may ask.
type Reach struct {
	// Named are hosts that the configuration itself names, without port. One
	// that is an address may be any address.
	Named []string
	// Others, which something else than the configuration named, have to be in
	// the public network unless Private is set.
	Private bool
}

// metadataNames are what clouds call the hosts that hand out credentials.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

// refusedError is a request that was not made because of where it would have
// gone.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// Check returns why a host may not be asked, as far as its name tells.
func (r Reach) Check(host string) error {
	host = plainHost(host)
	if r.names(host) {
		return nil
	}
	if slices.Contains(metadataNames, host) {
		return &refusedError{fmt.Sprintf("%s is a cloud's metadata host, where nobody may be asked", host)}
	}
	if host == "localhost" && !r.Private {
		return &refusedError{"localhost is not in the public network"}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return r.checkIP(ip, false)
	}
	return nil // a name: the dialer sees what it resolves to
}

func (r Reach) checkIP(ip netip.Addr, named bool) error {
	if err := agentaddr.Never(ip); err != nil {
		return &refusedError{err.Error()}
	}
	if !named && !r.Private && !agentaddr.Public(ip) {
		return &refusedError{fmt.Sprintf("%s is not in the public network, and the configuration does not name the host", ip)}
	}
	return nil
}

func (r Reach) names(host string) bool {
	return slices.ContainsFunc(r.Named, func(n string) bool { return plainHost(n) == host })
}

func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// dialer connects where Reach allows. It decides on the address that a name
// resolved to, in the moment of connecting.
type dialer struct {
	reach   Reach
	mu      sync.Mutex
	proxies []string // host:port, named by the environment
}

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = plainHost(host)
	named := d.reach.names(host)
	_, notIP := netip.ParseAddr(host)
	if named && notIP == nil || d.isProxy(address) {
		return plain.DialContext(ctx, network, address)
	}
	plain.Control = func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return d.reach.checkIP(to.Addr(), named)
	}
	return plain.DialContext(ctx, network, address)
}

// proxy is the proxy of the environment, as other programs use it. Its own
// address is the administrator's word.
func (d *dialer) proxy(r *http.Request) (*url.URL, error) {
	p, err := http.ProxyFromEnvironment(r)
	if p == nil || err != nil {
		return nil, err
	}
	port := p.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.Scheme]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := net.JoinHostPort(p.Hostname(), port); !slices.Contains(d.proxies, a) {
		d.proxies = append(d.proxies, a)
	}
	return p, nil
}

func (d *dialer) isProxy(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.proxies, address)
}

// errElsewhere is a redirect that is not followed.
var errElsewhere = errors.New("redirect")

const maxRedirects = 5

// sameOrigin follows up to five redirects, none to another host: our headers
// are meant for the one that the configuration names.
func sameOrigin(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	upgrade := first.Scheme == "http" && next.URL.Scheme == "https" && first.Port() == "" && next.URL.Port() == "" && first.Hostname() == next.URL.Hostname()
	if !upgrade && (first.Scheme != next.URL.Scheme || first.Host != next.URL.Host) {
		return fmt.Errorf("%w to %s://%s, another host: if that is right, name it in the configuration", errElsewhere, next.URL.Scheme, next.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w after redirect, more than %d", errElsewhere, maxRedirects)
	}
	return nil
}

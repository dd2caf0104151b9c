// Package httpguard has the checks of all Signalbox HTTP APIs before the
// handlers: the Host header, the token, and whether a route exists. The API
// itself writes the answer.
package httpguard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Hosts are the host names under which a server answers. A page of another
// site can make its own name resolve to this address (DNS rebinding); its
// requests then have that name, which is refused.
type Hosts struct {
	names map[string]bool
	anyIP bool
}

// NewHosts allows the names and those of loopback. anyIP allows every numeric
// address: beyond loopback a server is reached at addresses that it does not
// know, and a rebinding attack needs a name.
func NewHosts(anyIP bool, names ...string) Hosts {
	h := Hosts{names: map[string]bool{"localhost": true}, anyIP: anyIP}
	for _, name := range names {
		h.names[plainHost(name)] = true
	}
	return h
}

// Allow reports whether the server answers for the host of a request.
func (h Hosts) Allow(hostport string) bool {
	host := plainHost(hostport)
	if h.names[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && (h.anyIP || ip.Unmap().IsLoopback()) // a zone may contain any text
}

// plainHost is a host without port, brackets and trailing dot, in lower case.
func plainHost(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// SameToken reports whether an Authorization header has the token. It compares
// in constant time, whatever the lengths.
func SameToken(header, token string) bool {
	scheme, got, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	a, b := sha256.Sum256([]byte(strings.TrimSpace(got))), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Unmatched reports whether no route matches a request, and which methods its
// path allows, if any.
func Unmatched(mux *http.ServeMux, r *http.Request) (allow string, none bool) {
	h, pattern := mux.Handler(r)
	if pattern != "" {
		return "", false
	}
	p := probe{header: http.Header{}}
	h.ServeHTTP(&p, r)
	if p.status == http.StatusMethodNotAllowed {
		allow = p.header.Get("Allow")
	}
	return allow, true
}

// probe captures the mux's answer.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

package alone

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// guard refuses what must not reach the API: an unknown Host (a rebound DNS
// name) and pages of other sites.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, string(signalbox.CodeForbidden), "requests from pages of other sites are refused")
	}))
	protected := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hostAllowed(r.Host) {
			fail(w, http.StatusForbidden, string(signalbox.CodeForbidden), "the Host header names none of this scheduler's hosts: add it to hosts in the configuration")
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// hostAllowed accepts loopback names and addresses, the configured names and,
// on a listener beyond loopback, plain addresses, which cannot be rebound.
func (s *Server) hostAllowed(hostport string) bool {
	name := strings.ToLower(strings.TrimSuffix(strings.Trim(host(hostport), "[]"), "."))
	if name == "localhost" {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && (s.o.AnyIP || ip.IsLoopback()) {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, hostport) })
}

// host is an address without its port.
func host(addr string) string {
	if h, _, err := net.SplitHostPort(addr); err == nil {
		return h
	}
	return addr
}

// asksForToken lets callers with the token pass, where there is one.
func (s *Server) asksForToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Token != "" && !sameToken(r.Header.Get("Authorization"), s.o.Token) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="signalbox scheduler"`)
			fail(w, http.StatusUnauthorized, string(signalbox.CodeUnauthorized), "this scheduler wants its token (scheduler.token): Authorization: Bearer …")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameToken compares in constant time, whatever the lengths.
func sameToken(header, token string) bool {
	scheme, got, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	a, b := sha256.Sum256([]byte(strings.TrimSpace(got))), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// inJSON has a mux's own refusals (no such path, wrong method) speak JSON too.
func inJSON(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := probe{http.Header{}}
		mux.ServeHTTP(probe, r)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			fail(w, http.StatusMethodNotAllowed, string(signalbox.CodeMethodNotAllowed), shown(r.Method)+" is not possible here: use "+allow)
			return
		}
		fail(w, http.StatusNotFound, string(signalbox.CodeNotFound), "there is nothing here: GET /status, POST /trigger/{job}, GET /healthz and GET /metrics are what there is")
	})
}

// probe takes an answer for its headers alone.
type probe struct{ header http.Header }

func (p probe) Header() http.Header         { return p.header }
func (p probe) Write(b []byte) (int, error) { return len(b), nil }
func (p probe) WriteHeader(int)             {}

// shown is a caller's text as an error cites it: bounded, in quotes.
func shown(s string) string {
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return strconv.QuoteToASCII(s)
}

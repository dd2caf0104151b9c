package director

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// caller is who sent a request.
type caller struct {
	trusted  bool // showed the token
	loopback bool // asks from this host, with no proxy in between
	addr     string
	who      signalbox.Principal
}

// String names the caller for the journal and for messages such as
// "cancelled by …".
func (c caller) String() string {
	if c.loopback {
		return "a local caller"
	}
	return "a caller at " + c.addr
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// gate decides who may use which route.
type gate struct {
	open bool // no token is asked for
	want [sha256.Size]byte
	bad  *badTokens
}

func newGate(token string) gate {
	return gate{open: token == "", want: sha256.Sum256([]byte(token)), bad: &badTokens{seen: map[netip.Prefix]*bucket{}}}
}

// admit returns the caller of a request if it may use a route of that scope.
// There is one token, which has every right.
func (g gate) admit(r *http.Request, scope api.Scope) (caller, error) {
	who := callerFrom(r)
	if g.open || scope == api.ScopePublic {
		return who, nil
	}
	token, given := bearer(r)
	if !given {
		return who, signalbox.Errorf(signalbox.CodeUnauthorized, "this director asks for a token")
	}
	key := addrKey(who.addr)
	if wait := g.bad.wait(key, time.Now()); wait > 0 {
		return who, &refusal{
			err:        signalbox.Errorf(signalbox.CodeRateLimited, "too many wrong tokens came from %s", who.addr),
			retryAfter: int(wait/time.Second) + 1,
		}
	}
	got := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], g.want[:]) != 1 {
		g.bad.note(key, time.Now())
		return who, signalbox.Errorf(signalbox.CodeUnauthorized, "the token is not the right one")
	}
	who.trusted = true
	return who, nil
}

func bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// callerFrom reads the address of the connection. What a proxy claims is not
// believed; that there is one is, and then nobody counts as local.
func callerFrom(r *http.Request) caller {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	c := caller{addr: clip(host)}
	ip, err := netip.ParseAddr(host)
	proxied := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("X-Real-Ip") != ""
	c.loopback = err == nil && ip.Unmap().IsLoopback() && !proxied
	return c
}

// addrKey groups addresses that one caller can choose among: an IPv6 host
// has a whole /64.
func addrKey(addr string) netip.Prefix {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}

// Ten wrong tokens may come at once from one address, then one in six
// seconds.
const (
	badBurst    = 10
	badRefill   = 6 * time.Second
	maxBadAddrs = 10_000
)

// badTokens counts wrong tokens by address.
type badTokens struct {
	mu   sync.Mutex
	seen map[netip.Prefix]*bucket
}

// bucket holds when the address would be free of blame.
type bucket struct{ until time.Time }

// wait returns how long the address has to wait before a token of its is
// looked at again.
func (b *badTokens) wait(key netip.Prefix, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.seen[key]
	if got == nil {
		return 0
	}
	return got.until.Sub(now) - (badBurst-1)*badRefill
}

// note counts a wrong token. The table is bounded: when it is full, the
// addresses that are free of blame go, or else all do.
func (b *badTokens) note(key netip.Prefix, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= maxBadAddrs {
		for k, old := range b.seen {
			if old.until.Before(now) {
				delete(b.seen, k)
			}
		}
		if len(b.seen) >= maxBadAddrs {
			clear(b.seen)
		}
	}
	got := b.seen[key]
	if got == nil {
		got = &bucket{}
		b.seen[key] = got
	}
	if got.until.Before(now) {
		got.until = now
	}
	got.until = got.until.Add(badRefill)
}

package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// LinkFor is how long a login link is valid. It works once.
	LinkFor = 10 * time.Minute
	// maxLinks is how many links are valid at a time. A new link ends the oldest.
	maxLinks = 20
)

// links are the unused login links. They are in memory: a restart ends them.
type links struct {
	mu   sync.Mutex
	open []link
}

type link struct {
	code [sha256.Size]byte
	ends time.Time
}

var errLink = signalbox.Errorf(signalbox.CodeUnauthorized, "the login link was used already, or has expired: signalbox login-link makes another one")

// NewLink returns a code that starts one login of the owner, and when it expires.
//
// Errors: CodeUnsupported if there is no static token: people then log in
// with a password.
func (k *Keeper) NewLink() (code string, ends time.Time, err error) {
	if !k.Static() || k.store == nil {
		return "", ends, signalbox.Errorf(signalbox.CodeUnsupported, "login links are for the owner, and this director has no owner's token: log in with a password")
	}
	var b [secretBytes]byte
	if _, err := io.ReadFull(k.opts.Random, b[:]); err != nil {
		return "", ends, fmt.Errorf("read random bytes for a login link: %w", err)
	}
	code = base64.RawURLEncoding.EncodeToString(b[:])
	now := k.opts.Now()
	ends = now.Add(LinkFor)
	k.links.mu.Lock()
	defer k.links.mu.Unlock()
	k.links.drop(now)
	if over := len(k.links.open) - maxLinks + 1; over > 0 {
		k.links.open = k.links.open[over:]
	}
	k.links.open = append(k.links.open, link{code: sha256.Sum256([]byte(code)), ends: ends})
	return code, ends, nil
}

// drop removes the expired links. Links are sorted by their expiry.
func (l *links) drop(now time.Time) {
	for len(l.open) > 0 && !now.Before(l.open[0].ends) {
		l.open = l.open[1:]
	}
}

// take reports whether a code is valid, and uses it up.
func (l *links) take(code string, now time.Time) bool {
	sum := sha256.Sum256([]byte(code)) // hashes are compared, so that timing reveals nothing about the code
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	for i := range l.open {
		if l.open[i].code == sum {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
			return true
		}
	}
	return false
}

// UseLink starts the login of a link: a login of the owner, with every scope.
//
// Errors: CodeUnauthorized for a code that is used, expired or invalid.
func (k *Keeper) UseLink(ctx context.Context, code string) (Login, error) {
	if !k.Static() || !k.links.take(code, k.opts.Now()) {
		return Login{}, errLink
	}
	now := k.now()
	return k.storeLogin(ctx, signalbox.Token{
		Kind: signalbox.PrincipalService, Principal: staticName, Scopes: signalbox.Scopes(), CreatedAt: now, CreatedBy: k.ownerMark(),
	}, func(v *view) error { return k.endOldLogins(ctx, v, staticName, now) })
}

// ownerMark ties the owner's logins to the static token: they end when the token is
// replaced.
func (k *Keeper) ownerMark() string {
	sum := sha256.Sum256(append([]byte("login of the owner "), k.static[:]...))
	return "owner:" + base64.RawURLEncoding.EncodeToString(sum[:9])
}

// foreign reports whether a login belongs to another static token.
func (k *Keeper) foreign(c *credential) bool {
	return c.row.Login && c.row.Kind == signalbox.PrincipalService && (!k.Static() || c.row.CreatedBy != k.ownerMark())
}

// The backoff of logins (seed work-queue): ten failures of a user from one address
// block, an IPv4 address or an IPv6 /64, block that user there for an hour. Fifty
// failures from one address block, of any users, block it for all. The right password
// still works at other addresses, so that nobody can be locked out from afar. It also
// works in a browser in which the user has logged in before: attempts there are counted
// separately, with ten failures too.
const (
	userFailures = 10
	addrFailures = 50
	blockedFor   = time.Hour
	maxFailing   = 10_000
)

// guesser identifies the source of a login attempt.
type guesser struct {
	user   string
	device string // a browser in which the user has logged in before; "": unknown
	addr   netip.Prefix
}

// counts returns the counters of an attempt, with the maximum of each.
func (g guesser) counts() map[failing]int {
	if g.device != "" {
		return map[failing]int{{user: g.user, device: g.device}: userFailures}
	}
	return map[failing]int{{user: g.user, from: g.addr}: userFailures, {from: g.addr}: addrFailures}
}

// failing is the key of a counter: a user at an address block or on a device, or the
// address block if user is "".
type failing struct {
	user   string
	device string
	from   netip.Prefix
}

type failures struct {
	n    int
	last time.Time
}

// backoff counts failed logins. It is in memory: a restart resets it.
type backoff struct {
	mu   sync.Mutex
	seen map[failing]failures
}

func (b *backoff) init() { b.seen = map[failing]failures{} }

// AddrBlock returns the block of addresses that one caller can choose from: the address
// itself for IPv4, a /64 for IPv6. It is zero for an invalid address.
func AddrBlock(addr string) netip.Prefix {
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

// take counts an attempt as failed before it is made, so that concurrent attempts are
// counted too. If there were too many, it returns how long to wait. forgive undoes it.
func (b *backoff) take(g guesser, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := g.counts()
	for key, most := range counts {
		wait = max(wait, b.wait(key, most, now))
	}
	if wait > 0 {
		return wait
	}
	b.makeRoom(now)
	for key := range counts {
		f := b.seen[key]
		if now.Sub(f.last) >= blockedFor {
			f.n = 0
		}
		b.seen[key] = failures{n: f.n + 1, last: now}
	}
	return 0
}

func (b *backoff) wait(key failing, most int, now time.Time) time.Duration {
	f := b.seen[key]
	if f.n < most {
		return 0
	}
	return blockedFor - now.Sub(f.last)
}

// forgive undoes take: the password was right.
func (b *backoff) forgive(g guesser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range g.counts() {
		if f := b.seen[key]; key.user == "" && f.n > 1 { // failures of other users at the address still count
			f.n--
			b.seen[key] = f
		} else {
			delete(b.seen, key)
		}
	}
}

// makeRoom limits the table: it removes expired counters, or else the oldest.
func (b *backoff) makeRoom(now time.Time) {
	if len(b.seen) < maxFailing {
		return
	}
	var oldest failing
	at := now
	for key, f := range b.seen {
		if now.Sub(f.last) >= blockedFor {
			delete(b.seen, key)
		} else if !f.last.After(at) {
			oldest, at = key, f.last
		}
	}
	if len(b.seen) >= maxFailing {
		delete(b.seen, oldest)
	}
}

// Blocked is the error of a login that has to wait.
type Blocked struct{ Wait time.Duration }

func (b *Blocked) Error() string { return b.Unwrap().Error() }

// Unwrap returns the error with the code CodeRateLimited.
func (b *Blocked) Unwrap() error {
	return signalbox.Errorf(signalbox.CodeRateLimited, "too many failed logins: try again in %d minutes", (b.Wait+time.Minute-1)/time.Minute)
}

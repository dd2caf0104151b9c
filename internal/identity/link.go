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
	// LinkFor is how long a login link can be used, once.
	LinkFor = 10 * time.Minute
	// maxLinks that can be used at a time; the oldest ends for a new one.
	maxLinks = 20
)

// links are the login links that were made and not yet used. They are in
// memory: a restart ends them.
type links struct {
	mu   sync.Mutex
	open []link
}

type link struct {
	code [sha256.Size]byte
	ends time.Time
}

var errLink = signalbox.Errorf(signalbox.CodeUnauthorized, "the login link was used already, or has expired: signalbox login-link makes another one")

// NewLink makes a code with which one login of the owner can be begun, once.
//
// Errors: CodeUnsupported where there is no static token: people then log in
// with a password.
func (k *Keeper) NewLink() (code string, ends time.Time, err error) {
	if !k.Static() || k.store == nil {
		return "", ends, signalbox.Errorf(signalbox.CodeUnsupported, "this director has no token of its owner, for whom a login link would be: log in with a password")
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

// drop forgets the links that have expired. They stand in the order of their
// ends.
func (l *links) drop(now time.Time) {
	for len(l.open) > 0 && !now.Before(l.open[0].ends) {
		l.open = l.open[1:]
	}
}

// take reports whether a code can be used, and ends it.
func (l *links) take(code string, now time.Time) bool {
	sum := sha256.Sum256([]byte(code)) // compared as a hash: how long it takes tells nothing of the code
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

// UseLink begins the login of a link: one of the owner, with every right.
//
// Errors: CodeUnauthorized for a code that was used, has expired, or is none.
func (k *Keeper) UseLink(ctx context.Context, code string) (Login, error) {
	if !k.Static() || !k.links.take(code, k.opts.Now()) {
		return Login{}, errLink
	}
	now := k.now()
	return k.storeLogin(ctx, signalbox.Token{
		Kind: signalbox.PrincipalService, Principal: staticName, Scopes: signalbox.Scopes(), CreatedAt: now, CreatedBy: k.ownerMark(),
	}, func(v *view) error { return k.endOldLogins(ctx, v, staticName, now) })
}

// ownerMark ties the owner's logins to the static token of which they come:
// they end when another one takes its place.
func (k *Keeper) ownerMark() string {
	sum := sha256.Sum256(append([]byte("login of the owner "), k.static[:]...))
	return "owner:" + base64.RawURLEncoding.EncodeToString(sum[:9])
}

// foreign reports whether a login is of the owner of another static token.
func (k *Keeper) foreign(c *credential) bool {
	return c.row.Login && c.row.Kind == signalbox.PrincipalService && (!k.Static() || c.row.CreatedBy != k.ownerMark())
}

// The back-off of logins (seed work-queue): ten failures of a user from one
// address block block that user from there for an hour; fifty from one
// address block, of whatever users, block it whole. The right password at
// another address still works, so nobody can be locked out from afar, and so it
// does in a browser in which the user has logged in before: what is tried
// there is counted by itself, ten failures too.
const (
	userFailures = 10
	addrFailures = 50
	blockedFor   = time.Hour
	maxFailing   = 10_000
)

// guesser is who tries to log in.
type guesser struct {
	user   string
	device string // in which the user has logged in before; "": in none that is known
	addr   netip.Prefix
}

// counts are what an attempt is counted at, with the most failures of each.
func (g guesser) counts() map[failing]int {
	if g.device != "" {
		return map[failing]int{{user: g.user, device: g.device}: userFailures}
	}
	return map[failing]int{{user: g.user, from: g.addr}: userFailures, {from: g.addr}: addrFailures}
}

// failing names who fails: a user at an address block or in a device, or with
// user "" the block.
type failing struct {
	user   string
	device string
	from   netip.Prefix
}

type failures struct {
	n    int
	last time.Time
}

// backoff counts failed logins. It is in memory: a restart forgives.
type backoff struct {
	mu   sync.Mutex
	seen map[failing]failures
}

func (b *backoff) init() { b.seen = map[failing]failures{} }

// AddrBlock groups addresses that one caller can choose among: an IPv6 host
// has a whole /64.
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

// take counts an attempt as failed before it is made, so that many at once
// are counted too, or says how long to wait. forgive takes it back.
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

// forgive takes an attempt back: the password was right.
func (b *backoff) forgive(g guesser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range g.counts() {
		if f := b.seen[key]; key.user == "" && f.n > 1 { // others of the address are not forgiven
			f.n--
			b.seen[key] = f
		} else {
			delete(b.seen, key)
		}
	}
}

// makeRoom bounds the table: what is over goes, else the oldest.
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

// Blocked is the refusal of a login that has to wait.
type Blocked struct{ Wait time.Duration }

func (b *Blocked) Error() string { return b.Unwrap().Error() }

// Unwrap gives it its code.
func (b *Blocked) Unwrap() error {
	return signalbox.Errorf(signalbox.CodeRateLimited, "too many failed logins: try again in %d minutes", (b.Wait+time.Minute-1)/time.Minute)
}

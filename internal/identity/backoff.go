package identity

import (
	"net/netip"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// The back-off of logins (seed work-queue): ten failures of a user from one
// address block block that user from there for an hour; fifty from one
// address block, of whatever users, block it whole. The right password at
// another address still works, so nobody can be locked out from afar.
const (
	userFailures = 10
	addrFailures = 50
	blockedFor   = time.Hour
	maxFailing   = 10_000
)

// failing names who fails: a user at an address block, or with user "" the
// block.
type failing struct {
	user string
	from netip.Prefix
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
func (b *backoff) take(user, addr string, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byUser, byAddr := failing{user, AddrBlock(addr)}, failing{"", AddrBlock(addr)}
	if wait = max(b.wait(byUser, userFailures, now), b.wait(byAddr, addrFailures, now)); wait > 0 {
		return wait
	}
	b.makeRoom(now)
	for _, key := range []failing{byUser, byAddr} {
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
func (b *backoff) forgive(user, addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, failing{user, AddrBlock(addr)})
	key := failing{"", AddrBlock(addr)}
	if f := b.seen[key]; f.n > 1 {
		f.n--
		b.seen[key] = f
	} else {
		delete(b.seen, key)
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

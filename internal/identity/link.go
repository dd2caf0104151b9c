package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
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

package identity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// LoginFor is how long a login lasts.
	LoginFor = 12 * time.Hour
	// maxLogins is how many logins a user has at a time. A new one ends the oldest.
	maxLogins = 20
)

var errLogin = signalbox.Errorf(signalbox.CodeUnauthorized, "the user or the password is not right")

// Login is a new login: its principal, and the two halves of its secret. A browser sends
// the cookie to every port of the director's host, and so to pages of other programs. It
// keeps the key for the director's own pages, which send it in a header. One half is
// useless without the other.
type Login struct {
	Who         signalbox.Principal
	Cookie, Key string
	Ends        time.Time
	Device      string // secret that identifies the browser at the next login; "": none
}

// Attempt is a login attempt.
type Attempt struct {
	User, Password string
	Addr           string
	Device         string // device secret from an earlier login in this browser; "": none
}

// Login checks a password and returns a new login. All failures look the same and take
// the same time, whether the user exists or not.
//
// Errors: CodeUnauthorized; CodeRateLimited, as a *Blocked if it comes from the backoff.
func (k *Keeper) Login(ctx context.Context, a Attempt) (Login, error) {
	if a.User == "" || a.Password == "" || len(a.Password) > MaxPassword {
		return Login{}, signalbox.Invalid("password", "user and password must be given, the password with at most %d bytes", MaxPassword)
	}
	user := a.User
	if !signalbox.ValidName(user) {
		user = "-" // not a valid name: all unknown users share one counter
	}
	from := guesser{user: user, device: k.deviceOf(user, a.Device), addr: AddrBlock(a.Addr)}
	if wait := k.backoff.take(from, time.Now()); wait > 0 {
		return Login{}, &Blocked{Wait: wait}
	}
	u, ok := k.current().users[user]
	usable := ok && !u.Disabled && u.Password != ""
	stored := u.Password
	if !usable {
		stored = k.nobody
	}
	right, err := k.verify(ctx, stored, a.Password)
	switch {
	case err != nil:
		return Login{}, err
	case !right || !usable:
		return Login{}, errLogin
	}
	k.backoff.forgive(from)
	l, err := k.beginLogin(ctx, u)
	if l.Device = a.Device; from.device == "" {
		l.Device = k.newDevice(user)
	}
	return l, err
}

// beginLogin stores a login. The password was checked against u; if the user has changed
// since, the login is refused.
func (k *Keeper) beginLogin(ctx context.Context, u signalbox.User) (Login, error) {
	now := k.now()
	return k.storeLogin(ctx, signalbox.Token{
		Kind: signalbox.PrincipalUser, Principal: u.ID, Scopes: u.Role.Scopes(), CreatedAt: later(now, u.CreatedAt), CreatedBy: u.ID,
	}, func(v *view) error {
		latest, ok := v.users[u.ID]
		if !ok || latest.Disabled || latest.Password != u.Password || !latest.CreatedAt.Equal(u.CreatedAt) {
			return errLogin
		}
		return k.endOldLogins(ctx, v, u.ID, now)
	})
}

// storeLogin creates the secrets of a login and stores it, if check allows it.
func (k *Keeper) storeLogin(ctx context.Context, t signalbox.Token, check func(v *view) error) (l Login, err error) {
	t.ID, l.Cookie, _, err = k.newSecret(signalbox.PrincipalUser)
	if err != nil {
		return l, err
	}
	var key [secretBytes]byte
	if _, err = io.ReadFull(k.opts.Random, key[:]); err != nil {
		return l, fmt.Errorf("read random bytes for a login: %w", err)
	}
	l.Key = base64.RawURLEncoding.EncodeToString(key[:])
	t.Login, t.Name, t.Hash, t.ExpiresAt = true, "login", hashOf(bothHalves(l.Cookie, l.Key)), k.now().Add(LoginFor)
	err = k.alter(ctx, func(v *view) error {
		if err := check(v); err != nil {
			return err
		}
		return k.store.PutToken(ctx, t)
	})
	if err == nil {
		l.Ends = t.ExpiresAt
		l.Who, err = k.FromLogin(l.Cookie, l.Key)
	}
	return l, err
}

// bothHalves is the secret of a login.
func bothHalves(cookie, key string) string { return cookie + "." + key }

// ReauthWithin is how long after its start a login may change tokens and users.
const ReauthWithin = 10 * time.Minute

// Fresh reports whether a caller may change tokens and users. A login may do so only for
// ReauthWithin, so that an unattended browser or a stolen login cannot create rights that
// outlive it.
func (k *Keeper) Fresh(who signalbox.Principal) bool {
	t, ok := k.Token(who.TokenID)
	return !ok || !t.Login || k.now().Sub(t.CreatedAt) < ReauthWithin
}

// later returns the later of two times. It keeps a token from being older than its user,
// even if the clock was set back in between.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// endOldLogins removes logins that have ended, and the user's oldest logins beyond
// maxLogins.
func (k *Keeper) endOldLogins(ctx context.Context, v *view, user string, now time.Time) error {
	var gone []string
	var own []signalbox.Token
	for _, c := range v.tokens {
		switch {
		case !c.row.Login:
		case c.expired(now) || c.reason != "":
			gone = append(gone, c.row.ID)
		case c.row.Principal == user:
			own = append(own, c.row)
		}
	}
	slices.SortFunc(own, func(a, b signalbox.Token) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for i := maxLogins - 1; i < len(own); i++ {
		gone = append(gone, own[i].ID)
	}
	return k.deleteTokens(ctx, gone)
}

func (k *Keeper) deleteTokens(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if _, err := k.store.DeleteToken(ctx, id); err != nil {
			return err
		}
		k.used.Delete(id)
	}
	return nil
}

// Logout ends a login. An unknown or ended login is no error.
func (k *Keeper) Logout(ctx context.Context, cookie, key string) error {
	who, err := k.FromLogin(cookie, key)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to end
	}
	return k.alter(ctx, func(*view) error { return k.deleteTokens(ctx, []string{who.TokenID}) })
}

// A device is a browser in which a user has logged in before; it sends the secret that it
// got then. Its attempts are counted separately, so that an attacker behind the same
// address, which may belong to a whole office or a proxy, does not lock out the people
// there. The secrets end with the process, as the counters do.

// newDevice returns a new device secret for a user; "" on an error.
func (k *Keeper) newDevice(user string) string {
	var id [16]byte
	if _, err := io.ReadFull(k.opts.Random, id[:]); err != nil {
		return ""
	}
	name := base64.RawURLEncoding.EncodeToString(id[:])
	return name + "." + k.deviceMAC(user, name)
}

func (k *Keeper) deviceMAC(user, name string) string {
	mac := hmac.New(sha256.New, k.devices[:])
	mac.Write([]byte(user + "\n" + name))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// deviceOf returns the name of the user's device with a secret; "" if the secret is not
// valid.
func (k *Keeper) deviceOf(user, secret string) string {
	name, mac, _ := strings.Cut(secret, ".")
	if name == "" || !hmac.Equal([]byte(mac), []byte(k.deviceMAC(user, name))) {
		return ""
	}
	return name
}

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
	// maxLogins a user has at once; the oldest ends for a new one.
	maxLogins = 20
)

var errLogin = signalbox.Errorf(signalbox.CodeUnauthorized, "the user or the password is not right")

// Login is a login that was begun: who it is, and the two halves of what proves
// it. A browser sends the cookie to every port of the director's host, and so
// to other programs' pages; the key it keeps for the director's own pages,
// which send it in a header. Neither is worth anything without the other.
type Login struct {
	Who         signalbox.Principal
	Cookie, Key string
	Ends        time.Time
	Device      string // secret by which the browser is known at the next login; "": none
}

// Attempt is a try to log in.
type Attempt struct {
	User, Password string
	Addr           string
	Device         string // what a browser shows that has logged in before; "": nothing
}

// Login proves a password and returns a new login. All ways to fail look and
// last the same, whether there is such a user or not.
//
// Errors: CodeUnauthorized; CodeRateLimited, as a *Blocked where it was the
// back-off.
func (k *Keeper) Login(ctx context.Context, a Attempt) (Login, error) {
	if a.User == "" || a.Password == "" || len(a.Password) > MaxPassword {
		return Login{}, signalbox.Invalid("password", "user and password must be given, the password with at most %d bytes", MaxPassword)
	}
	user := a.User
	if !signalbox.ValidName(user) {
		user = "-" // no user can be named so; they share one count
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

// beginLogin stores a login. The password was proved of the user as u was
// then: if it was changed in the meantime, that counts no more.
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

// storeLogin gives a login its secrets and stores it, after check.
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

// bothHalves is what a login is proved by.
func bothHalves(cookie, key string) string { return cookie + "." + key }

// FreshFor is how long after it was begun a login may change who may do what.
const FreshFor = 10 * time.Minute

// Fresh reports whether a caller may change tokens and users: a login only
// soon after it was begun, so that a browser that was left alone, or a stolen
// login, cannot make rights that outlive it.
func (k *Keeper) Fresh(who signalbox.Principal) bool {
	t, ok := k.Token(who.TokenID)
	return !ok || !t.Login || k.now().Sub(t.CreatedAt) < FreshFor
}

// later is the later of two times: a token is not older than its user, even
// where the clock was set back between them.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// endOldLogins forgets logins that have ended, and of the user's the oldest
// beyond what one may have.
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

// Logout ends a login. One that is none, or has ended, is no error.
func (k *Keeper) Logout(ctx context.Context, cookie, key string) error {
	who, err := k.FromLogin(cookie, key)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to end
	}
	return k.alter(ctx, func(*view) error { return k.deleteTokens(ctx, []string{who.TokenID}) })
}

// A device is a browser in which a user has logged in before: it shows a
// secret that it was given then. Its attempts are counted by themselves, so
// that whoever guesses passwords from the same address, which may be that of a
// whole office or of a proxy, does not lock out those who work there. The
// secrets end with the process, as the counts do.

// newDevice makes the secret of a device of a user; "" where that fails.
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

// deviceOf is the name of a device in which the user has logged in before;
// "" where the secret is none.
func (k *Keeper) deviceOf(user, secret string) string {
	name, mac, _ := strings.Cut(secret, ".")
	if name == "" || !hmac.Equal([]byte(mac), []byte(k.deviceMAC(user, name))) {
		return ""
	}
	return name
}

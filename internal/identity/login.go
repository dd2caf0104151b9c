package identity

import (
	"context"
	"slices"
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

// Login proves a password and returns a new login. All ways to fail look and
// last the same, whether there is such a user or not.
//
// Errors: CodeUnauthorized; CodeRateLimited, as a *Blocked where it was the
// back-off.
func (k *Keeper) Login(ctx context.Context, user, password, addr string) (who signalbox.Principal, secret string, ends time.Time, err error) {
	if user == "" || password == "" || len(password) > MaxPassword {
		return who, "", ends, signalbox.Invalid("password", "user and password must be given, the password with at most %d bytes", MaxPassword)
	}
	if !signalbox.ValidName(user) {
		user = "-" // no user can be named so; they share one count
	}
	if wait := k.backoff.take(user, addr, time.Now()); wait > 0 {
		return who, "", ends, &Blocked{Wait: wait}
	}
	u, ok := k.current().users[user]
	usable := ok && !u.Disabled && u.Password != ""
	stored := u.Password
	if !usable {
		stored = k.nobody
	}
	right, err := k.verify(ctx, stored, password)
	switch {
	case err != nil:
		return who, "", ends, err
	case !right || !usable:
		return who, "", ends, errLogin
	}
	k.backoff.forgive(user, addr)
	return k.beginLogin(ctx, u)
}

// beginLogin stores a login. The password was proved of the user as u was
// then: if it was changed in the meantime, that counts no more.
func (k *Keeper) beginLogin(ctx context.Context, u signalbox.User) (who signalbox.Principal, secret string, ends time.Time, err error) {
	id, secret, hash, err := k.newSecret(signalbox.PrincipalUser)
	if err != nil {
		return who, "", ends, err
	}
	now := k.now()
	ends = now.Add(LoginFor)
	err = k.alter(ctx, func(v *view) error {
		latest, ok := v.users[u.ID]
		if !ok || latest.Disabled || latest.Password != u.Password || !latest.CreatedAt.Equal(u.CreatedAt) {
			return errLogin
		}
		if err := k.endOldLogins(ctx, v, u.ID, now); err != nil {
			return err
		}
		return k.store.PutToken(ctx, signalbox.Token{
			ID: id, Login: true, Name: "login", Hash: hash, Kind: signalbox.PrincipalUser, Principal: u.ID, Scopes: u.Role.Scopes(),
			CreatedAt: later(now, u.CreatedAt), CreatedBy: u.ID, ExpiresAt: ends,
		})
	})
	if err != nil {
		return who, "", ends, err
	}
	who, err = k.FromLogin(secret)
	return who, secret, ends, err
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
func (k *Keeper) Logout(ctx context.Context, secret string) error {
	who, err := k.FromLogin(secret)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to end
	}
	return k.alter(ctx, func(*view) error { return k.deleteTokens(ctx, []string{who.TokenID}) })
}

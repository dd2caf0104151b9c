package identity

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/signalbox-ai/signalbox"
)

// PutUser is what a user is to be. What is nil, and Role "" and Password "",
// keep what a known user has: a change of one thing must not widen another. A
// new one is a user without limits and without a password, who cannot log in.
type PutUser struct {
	ID       string
	Email    *string
	Password string
	Role     signalbox.Role
	Agents   []string // empty, not nil: all
	Disabled *bool
}

const maxEmail = 254

func (p *PutUser) check() (err error) {
	switch {
	case !signalbox.ValidName(p.ID):
		return signalbox.Invalid("id", "the id of a user is 1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit")
	case p.Role != "" && p.Role != signalbox.RoleAdmin && p.Role != signalbox.RoleUser:
		return signalbox.Invalid("role", "role must be admin or user")
	case p.Email != nil && *p.Email != "" && !validEmail(*p.Email):
		return signalbox.Invalid("email", "email must be an address, NAME@HOST, of at most %d bytes", maxEmail)
	}
	if p.Password != "" {
		if err := checkPassword(p.Password); err != nil {
			return err
		}
	}
	p.Agents, err = limits(p.Agents)
	return err
}

// validEmail looks at the form only: it is shown to people, no mail is sent.
func validEmail(s string) bool {
	name, host, ok := strings.Cut(s, "@")
	return ok && name != "" && host != "" && len(s) <= maxEmail &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) && !strings.Contains(host, "@")
}

// PutUser makes or changes a user. With a new password, or disabled, the
// user's logins end; its tokens stay, and are refused while it is disabled.
//
// Errors: CodeValidation; CodeConflict where it would be the first credential
// and not an admin's, or would take the last admin away.
func (k *Keeper) PutUser(ctx context.Context, p PutUser) (u signalbox.User, created bool, err error) {
	if err := p.check(); err != nil {
		return u, false, err
	}
	hash := ""
	if p.Password != "" { // before change is locked: it takes long
		if hash, err = k.hashPassword(ctx, p.Password); err != nil {
			return u, false, err
		}
	}
	err = k.alter(ctx, func(v *view) error {
		u, created, err = k.merge(v, p, hash)
		if err != nil {
			return err
		}
		if hash != "" || u.Disabled || created {
			if err := k.deleteTokens(ctx, v.tokensOf(u.ID, created)); err != nil {
				return err
			}
		}
		return k.store.PutUser(ctx, u)
	})
	return u, created, err
}

// merge makes the row and checks it against what is there.
func (k *Keeper) merge(v *view, p PutUser, hash string) (u signalbox.User, created bool, err error) {
	u, known := v.users[p.ID]
	if !known {
		u = signalbox.User{ID: p.ID, Role: signalbox.RoleUser, CreatedAt: k.now()}
		if len(v.users) >= MaxUsers {
			return u, true, signalbox.Errorf(signalbox.CodeConflict, "there are %d users, the most there can be", len(v.users))
		}
	}
	p.change(&u)
	if hash != "" {
		u.Password = hash
	}
	admin := u.Role == signalbox.RoleAdmin && !u.Disabled
	switch {
	case u.Role == signalbox.RoleAdmin && len(u.Agents) > 0:
		return u, !known, signalbox.Invalid("agents", "an admin has no limits: take them away with an empty list of agents, or give the role user")
	case u.Role != signalbox.RoleAdmin && !k.Static() && !v.admin:
		return u, !known, errFirst
	case !admin && !k.Static() && v.admin && !v.keepsAdmin(k.now(), isUser(u.ID)):
		return u, !known, errLast
	}
	return u, !known, nil
}

// change puts into a row what is given.
func (p *PutUser) change(u *signalbox.User) {
	if p.Email != nil {
		u.Email = *p.Email
	}
	if p.Agents != nil {
		u.Agents = slices.Clip(p.Agents)
	}
	if len(u.Agents) == 0 {
		u.Agents = nil
	}
	if p.Disabled != nil {
		u.Disabled = *p.Disabled
	}
	if p.Role != "" {
		u.Role = p.Role
	}
}

// isUser matches the credentials of a user.
func isUser(id string) func(*signalbox.Token, string) bool {
	return func(_ *signalbox.Token, user string) bool { return user == id }
}

// tokensOf lists the logins of a user, or all its tokens.
func (v *view) tokensOf(user string, all bool) []string {
	var ids []string
	for _, c := range v.tokens {
		if c.row.Kind == signalbox.PrincipalUser && c.row.Principal == user && (all || c.row.Login) {
			ids = append(ids, c.row.ID)
		}
	}
	return ids
}

// RemoveUser forgets a user, with its tokens and logins.
//
// Errors: CodeNotFound; CodeConflict for the last admin credential where there
// is no static token.
func (k *Keeper) RemoveUser(ctx context.Context, id string) error {
	return k.alter(ctx, func(v *view) error {
		if _, ok := v.users[id]; !ok {
			return signalbox.Errorf(signalbox.CodeNotFound, "there is no user of that id: signalbox users lists them")
		}
		if !k.Static() && v.admin && !v.keepsAdmin(k.now(), isUser(id)) {
			return errLast
		}
		// First the tokens: a user that is half removed can be removed again.
		if err := k.deleteTokens(ctx, v.tokensOf(id, true)); err != nil {
			return err
		}
		_, err := k.store.DeleteUser(ctx, id)
		return err
	})
}

// Users lists the users, by id.
func (k *Keeper) Users() []signalbox.User {
	v := k.current()
	list := make([]signalbox.User, 0, len(v.users))
	for _, u := range v.users {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b signalbox.User) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// HasUser reports whether there is a user of that id.
func (k *Keeper) HasUser(id string) bool {
	_, ok := k.current().users[id]
	return ok
}

// sameRights reports whether two principals may do the same.
func sameRights(a, b signalbox.Principal) bool {
	return a.Kind == b.Kind && a.ID == b.ID && slices.Equal(a.Scopes, b.Scopes) && slices.Equal(a.Agents, b.Agents)
}

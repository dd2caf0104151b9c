package identity

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/argon2"

	"github.com/signalbox-ai/signalbox"
)

// PutUser creates or changes a user. Fields that are nil, and Role "" and Password "", leave
// an existing user unchanged: a change of one field must not extend other rights. A new
// user has by default the role user, no limits, and no password, and so cannot log in.
type PutUser struct {
	ID       string
	Email    *string
	Password string
	Role     signalbox.Role
	Agents   []string // empty, not nil: all
	Disabled *bool

	was string // hash of the password that was checked; a user with another hash is refused; "": any
}

const maxEmail = 254

func (p *PutUser) check() (err error) {
	switch {
	case !signalbox.ValidName(p.ID):
		return signalbox.Invalid("id", "a user's id is 1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit")
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

// validEmail checks only the form: addresses are for display, no mail is sent.
func validEmail(s string) bool {
	name, host, ok := strings.Cut(s, "@")
	return ok && name != "" && host != "" && len(s) <= maxEmail &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) && !strings.Contains(host, "@")
}

// PutUser creates or changes a user. A new password or Disabled ends the user's logins.
// The user's tokens stay, and are refused while the user is disabled.
//
// Errors: CodeValidation; CodeConflict if there is no admin yet and the user is
// not one, or if the change would remove the last admin.
func (k *Keeper) PutUser(ctx context.Context, p PutUser) (u signalbox.User, created bool, err error) {
	if err := p.check(); err != nil {
		return u, false, err
	}
	hash := ""
	if p.Password != "" { // hashing is slow: do it before locking change
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

// ChangePassword sets a new password for a user who gives the current one, and returns a new
// login. All other logins of the user end; the tokens stay. Wrong passwords count as failed
// logins.
//
// Errors: those of Login and PutUser; CodeValidation if the passwords are equal.
func (k *Keeper) ChangePassword(ctx context.Context, a Attempt, password string) (Login, error) {
	if len(password) < MinPassword || len(password) > MaxPassword {
		return Login{}, signalbox.Invalid("new_password", "new_password must be %d to %d bytes long", MinPassword, MaxPassword)
	}
	if sameSecret(password, a.Password) {
		return Login{}, signalbox.Invalid("new_password", "new_password is the current password")
	}
	was := k.current().users[a.User].Password
	if _, err := k.Login(ctx, a); err != nil {
		return Login{}, err
	}
	if _, _, err := k.PutUser(ctx, PutUser{ID: a.User, Password: password, was: was}); err != nil {
		return Login{}, err
	}
	a.Password = password
	return k.Login(ctx, a)
}

// merge returns the new row of a user, and checks it against the existing ones.
func (k *Keeper) merge(v *view, p PutUser, hash string) (u signalbox.User, created bool, err error) {
	u, known := v.users[p.ID]
	if !known {
		u = signalbox.User{ID: p.ID, Role: signalbox.RoleUser, CreatedAt: k.now()}
		if len(v.users) >= MaxUsers {
			return u, true, signalbox.Errorf(signalbox.CodeConflict, "there are %d users, which is the maximum", len(v.users))
		}
	}
	if p.was != "" && !sameSecret(p.was, u.Password) {
		return u, !known, errLogin
	}
	p.change(&u)
	if hash != "" {
		u.Password = hash
	}
	admin := u.Role == signalbox.RoleAdmin && !u.Disabled
	switch {
	case u.Role == signalbox.RoleAdmin && len(u.Agents) > 0:
		return u, !known, signalbox.Invalid("agents", "an admin cannot be limited to agents: clear the limit with an empty list of agents, or give the role user")
	case u.Role != signalbox.RoleAdmin && !k.Static() && !v.admin:
		return u, !known, errFirst
	case !admin && !k.Static() && v.admin && !v.keepsAdmin(k.now(), isUser(u.ID)):
		return u, !known, errLast
	}
	return u, !known, nil
}

// change applies the given fields to a row.
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

// isUser matches a user and the user's tokens, for keepsAdmin.
func isUser(id string) func(*signalbox.Token, string) bool {
	return func(_ *signalbox.Token, user string) bool { return user == id }
}

// tokensOf returns the ids of a user's logins, or of all the user's tokens.
func (v *view) tokensOf(user string, all bool) []string {
	var ids []string
	for _, c := range v.tokens {
		if c.row.Kind == signalbox.PrincipalUser && c.row.Principal == user && (all || c.row.Login) {
			ids = append(ids, c.row.ID)
		}
	}
	return ids
}

// RemoveUser removes a user with all tokens and logins.
//
// Errors: CodeNotFound; CodeConflict for the last admin credential if there is no
// static token.
func (k *Keeper) RemoveUser(ctx context.Context, id string) error {
	return k.alter(ctx, func(v *view) error {
		if _, ok := v.users[id]; !ok {
			return signalbox.Errorf(signalbox.CodeNotFound, "there is no user with that id: signalbox users lists them")
		}
		if !k.Static() && v.admin && !v.keepsAdmin(k.now(), isUser(id)) {
			return errLast
		}
		// Tokens first: after an error the user can be removed again.
		if err := k.deleteTokens(ctx, v.tokensOf(id, true)); err != nil {
			return err
		}
		_, err := k.store.DeleteUser(ctx, id)
		return err
	})
}

// Users returns the users, sorted by id.
func (k *Keeper) Users() []signalbox.User {
	users := k.current().users
	list := slices.AppendSeq(make([]signalbox.User, 0, len(users)), maps.Values(users))
	slices.SortFunc(list, func(a, b signalbox.User) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// HasUser reports whether there is a user with that id.
func (k *Keeper) HasUser(id string) bool {
	_, ok := k.current().users[id]
	return ok
}

// sameRights reports whether two principals have the same rights.
func sameRights(a, b signalbox.Principal) bool {
	return a.Kind == b.Kind && a.ID == b.ID && slices.Equal(a.Scopes, b.Scopes) && slices.Equal(a.Agents, b.Agents)
}

// Lengths of a password in bytes. The maximum limits what a stranger can make the
// director hash.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// maxHashes is the number of concurrent hashes, each of which takes a processor and
// Cost.MemoryKiB. maxWaiting is the number of logins that may wait for one.
const (
	maxHashes  = 2
	maxWaiting = 32
)

const (
	saltBytes = 16
	keyBytes  = 32
)

// Cost sets the cost of one password hash (argon2id, one lane).
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
}

// DefaultCost is above what RFC 9106 and OWASP recommend for systems with little memory.
var DefaultCost = Cost{MemoryKiB: 64 << 10, Passes: 2}

// Limits for the parameters of a stored hash: a bad row must not exhaust the memory.
const (
	mostMemoryKiB = 256 << 10
	mostPasses    = 10
)

// encode returns a hash in the PHC string format.
func (c Cost) encode(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, c.MemoryKiB, c.Passes, b64.EncodeToString(salt), b64.EncodeToString(key))
}

// nobody is a hash that no password matches.
func (c Cost) nobody() string { return c.encode(make([]byte, saltBytes), make([]byte, keyBytes)) }

func checkPassword(password string) error {
	if len(password) < MinPassword || len(password) > MaxPassword {
		return signalbox.Invalid("password", "password must be %d to %d bytes long", MinPassword, MaxPassword)
	}
	return nil
}

// hashPassword returns the form of a password for the store.
func (k *Keeper) hashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := io.ReadFull(k.opts.Random, salt); err != nil {
		return "", fmt.Errorf("read random bytes for a password: %w", err)
	}
	leave, err := k.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	c := k.opts.Cost
	return c.encode(salt, c.derive(password, salt, keyBytes)), nil
}

// collectFrom is the minimum memory of a hash that is worth a garbage collection.
const collectFrom = 16 << 10 // KiB

// derive returns the key of a password. Its memory is free for the next one at once:
// otherwise a server that collects garbage late would grow to many times the memory of
// maxHashes as soon as a stranger guesses passwords.
func (c Cost) derive(password string, salt []byte, n uint32) []byte {
	key := argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, 1, n)
	if c.MemoryKiB >= collectFrom {
		runtime.GC()
	}
	return key
}

// enter waits until a hash may be made.
func (k *Keeper) enter(ctx context.Context) (leave func(), err error) {
	if k.waiting.Add(1) > maxWaiting {
		k.waiting.Add(-1)
		return nil, signalbox.Errorf(signalbox.CodeRateLimited, "too many people are logging in now: try again")
	}
	defer k.waiting.Add(-1)
	select {
	case k.hashing <- struct{}{}:
		return func() { <-k.hashing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// verify reports whether a password matches its stored form.
func (k *Keeper) verify(ctx context.Context, stored, password string) (bool, error) {
	c, salt, want, err := parsePHC(stored)
	if err != nil {
		return false, err
	}
	leave, err := k.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	got := c.derive(password, salt, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func parsePHC(s string) (c Cost, salt, key []byte, err error) {
	bad := signalbox.Errorf(signalbox.CodeStoreCorrupt, "a stored password is not in the form $argon2id$v=19$m=…,t=…,p=1$salt$hash")
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, bad
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=1", &c.MemoryKiB, &c.Passes); err != nil {
		return c, nil, nil, bad
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	key, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(salt) < 8 || len(key) < 16 || len(key) > 64 ||
		c.MemoryKiB < 8 || c.MemoryKiB > mostMemoryKiB || c.Passes < 1 || c.Passes > mostPasses {
		return c, nil, nil, bad
	}
	return c, salt, key, nil
}

func sameSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

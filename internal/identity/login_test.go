package identity_test

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func try(user, password, addr string) identity.Attempt {
	return identity.Attempt{User: user, Password: password, Addr: addr}
}

func withAnna(t *testing.T) *rig {
	h := newRig(t)
	h.user(identity.PutUser{ID: "anna", Email: new("anna@example.com"), Password: right, Role: signalbox.RoleAdmin})
	return h
}

func TestALoginIsNotATokenAndATokenNoLogin(t *testing.T) {
	h := withAnna(t)
	cookie := h.login("anna", right)
	_, token := h.token(identity.NewToken{Name: "laptop", User: "anna"})
	who, err := h.FromLogin(cookie.Cookie, cookie.Key)
	if err != nil || who.Key() != "user:anna" || !who.Has(signalbox.ScopeAdmin) || who.Email != "anna@example.com" {
		t.Errorf("%+v, %v", who, err)
	}
	_, err = h.FromToken(cookie.Cookie)
	wantCode(t, err, signalbox.CodeUnauthorized)
	_, err = h.FromLogin(token, cookie.Key)
	wantCode(t, err, signalbox.CodeUnauthorized)
	for _, tok := range h.Tokens() {
		if tok.Login {
			t.Error("a login is listed")
		}
	}
	_, err = h.RevokeToken(t.Context(), who.TokenID)
	wantCode(t, err, signalbox.CodeNotFound)
	if h.login("anna", right).Cookie == cookie.Cookie {
		t.Error("a second login has the secret of the first")
	}
	if err := h.Logout(t.Context(), cookie.Cookie, cookie.Key); err != nil {
		t.Fatal(err)
	}
	_, err = h.FromLogin(cookie.Cookie, cookie.Key)
	wantCode(t, err, signalbox.CodeUnauthorized)
	if err := h.Logout(t.Context(), cookie.Cookie, cookie.Key); err != nil {
		t.Errorf("logging out twice: %v", err)
	}
}

func TestALoginEnds(t *testing.T) {
	h := withAnna(t)
	cookie := h.login("anna", right)
	h.now = h.now.Add(identity.LoginFor)
	_, err := h.FromLogin(cookie.Cookie, cookie.Key)
	wantCode(t, err, signalbox.CodeUnauthorized, "expired")
	// A new password ends the user's logins, not the tokens.
	cookie = h.login("anna", right)
	_, token := h.token(identity.NewToken{Name: "laptop", User: "anna"})
	h.user(identity.PutUser{ID: "anna", Password: "another long password"})
	if _, err = h.FromLogin(cookie.Cookie, cookie.Key); err == nil {
		t.Error("a login outlived its password")
	}
	if _, err = h.FromToken(token); err != nil {
		t.Error(err)
	}
	_, err = h.Login(t.Context(), try("anna", right, "192.0.2.1"))
	wantCode(t, err, signalbox.CodeUnauthorized)
	// The number of logins is limited.
	for range identity.MaxLogins + 5 {
		h.now = h.now.Add(time.Second)
		h.login("anna", "another long password")
	}
	if n := len(h.rows.tokens) - 1; n > identity.MaxLogins {
		t.Errorf("%d logins of one user", n)
	}
}

// Neither the errors nor the work done reveal whether a user exists.
func TestUsersCannotBeEnumerated(t *testing.T) {
	h := withAnna(t)
	h.user(identity.PutUser{ID: "ben", Password: right})
	h.user(identity.PutUser{ID: "ben", Disabled: new(true)})
	h.user(identity.PutUser{ID: "carl"}) // without a password
	said := map[string]bool{}
	for i, user := range []string{"anna", "ben", "carl", "nobody", "../etc", strings.Repeat("x", 5000), "-"} {
		password := wrong
		if user == "ben" {
			password = right
		}
		_, err := h.Login(t.Context(), try(user, password, fmt.Sprintf("192.0.2.%d", i)))
		wantCode(t, err, signalbox.CodeUnauthorized)
		said[err.Error()] = true
	}
	if len(said) != 1 {
		t.Errorf("the errors differ: %v", said)
	}
	for _, bad := range []string{"", strings.Repeat("x", identity.MaxPassword+1)} {
		_, err := h.Login(t.Context(), try("anna", bad, "192.0.2.1"))
		wantCode(t, err, signalbox.CodeValidation)
	}
}

func TestFailedLoginsAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withAnna(t)
		attempt := func(user, password, addr string) error {
			_, err := h.Login(t.Context(), try(user, password, addr))
			return err
		}
		const there, elsewhere = "203.0.113.9", "203.0.113.10"
		for range identity.UserFailures {
			wantCode(t, attempt("anna", wrong, there), signalbox.CodeUnauthorized)
		}
		err := attempt("anna", right, there)
		wantCode(t, err, signalbox.CodeRateLimited)
		var blocked *identity.Blocked
		if !errors.As(err, &blocked) || blocked.Wait > identity.BlockedFor || blocked.Wait < identity.BlockedFor-time.Minute {
			t.Errorf("%+v", blocked)
		}
		if err := attempt("anna", right, elsewhere); err != nil {
			t.Errorf("she is locked out from afar: %v", err)
		}
		wantCode(t, attempt("ben", wrong, there), signalbox.CodeUnauthorized) // another user from there
		time.Sleep(identity.BlockedFor)
		h.now = h.now.Add(identity.BlockedFor)
		if err := attempt("anna", right, there); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		// A success resets the counter.
		for range 3 {
			for range identity.UserFailures - 1 {
				wantCode(t, attempt("anna", wrong, there), signalbox.CodeUnauthorized)
			}
			if err := attempt("anna", right, there); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An attacker at an office's address, or behind its proxy, does not lock out people who
// have logged in there before. Guesses in a known browser do not lock out others at the
// address.
func TestGuessesLockOutWhoGuesses(t *testing.T) {
	h := withAnna(t)
	const office = "203.0.113.9"
	first, err := h.Login(t.Context(), try("anna", right, office))
	if err != nil || first.Device == "" {
		t.Fatalf("%v, device %q", err, first.Device)
	}
	for i := range identity.AddrFailures {
		_, err := h.Login(t.Context(), try(fmt.Sprint("user", i%20), wrong, office))
		wantCode(t, err, signalbox.CodeUnauthorized)
	}
	_, err = h.Login(t.Context(), try("anna", right, office))
	wantCode(t, err, signalbox.CodeRateLimited)
	known := try("anna", right, office)
	known.Device = first.Device
	again, err := h.Login(t.Context(), known)
	if err != nil || again.Device != first.Device {
		t.Fatalf("in her own browser: %v, device %q", err, again.Device)
	}
	// A forged device secret, or another user's, does not count.
	for _, device := range []string{"x", ".", "a.b", strings.ToUpper(first.Device), first.Device + "x"} {
		forged := known
		forged.Device = device
		_, err := h.Login(t.Context(), forged)
		wantCode(t, err, signalbox.CodeRateLimited)
	}
	h.user(identity.PutUser{ID: "ben", Password: right})
	others := try("ben", right, office)
	others.Device = first.Device
	_, err = h.Login(t.Context(), others)
	wantCode(t, err, signalbox.CodeRateLimited)
	// A known browser has only ten attempts, too.
	guess := known
	guess.Password = wrong
	for range identity.UserFailures {
		_, err := h.Login(t.Context(), guess)
		wantCode(t, err, signalbox.CodeUnauthorized)
	}
	_, err = h.Login(t.Context(), known)
	wantCode(t, err, signalbox.CodeRateLimited)
	if _, err = h.Login(t.Context(), try("anna", right, "203.0.113.10")); err != nil {
		t.Errorf("at another address: %v", err)
	}
}

// A page on another port of the host sees the cookie, but cannot use it.
func TestHalfALoginIsNone(t *testing.T) {
	h := withAnna(t)
	one, two := h.login("anna", right), h.login("anna", right)
	for _, key := range []string{"", "x", two.Key, one.Cookie, one.Key + "x"} {
		_, err := h.FromLogin(one.Cookie, key)
		wantCode(t, err, signalbox.CodeUnauthorized)
		if err := h.Logout(t.Context(), one.Cookie, key); err != nil {
			t.Error(err)
		}
	}
	for _, cookie := range []string{"", one.Key, one.Cookie + "." + one.Key} {
		_, err := h.FromLogin(cookie, one.Key)
		wantCode(t, err, signalbox.CodeUnauthorized)
	}
	if _, err := h.FromLogin(one.Cookie, one.Key); err != nil {
		t.Error(err)
	}
}

func TestALoginChangesRightsOnlyWhenItIsFresh(t *testing.T) {
	h := withAnna(t)
	who := h.login("anna", right).Who
	_, token := h.token(identity.NewToken{Name: "laptop", User: "anna"})
	h.now = h.now.Add(identity.ReauthWithin - time.Second)
	if !h.Fresh(who) {
		t.Error("the password is asked for again at once")
	}
	h.now = h.now.Add(time.Second)
	if h.Fresh(who) {
		t.Error("a login of a while ago changes tokens and users")
	}
	if by, err := h.FromToken(token); err != nil || !h.Fresh(by) {
		t.Errorf("a token: %v", err)
	}
}

func TestALoginLinkIsGoodOnce(t *testing.T) {
	ctx := t.Context()
	h := newRig(t, func(o *identity.Options) { o.Static = strings.Repeat("owner", 8) })
	code, ends, err := h.NewLink()
	if err != nil || !ends.Equal(h.now.Add(identity.LinkFor)) {
		t.Fatal(err, ends)
	}
	for _, bad := range []string{"", "x", code + "x", code[:len(code)-1]} {
		_, err := h.UseLink(ctx, bad)
		wantCode(t, err, signalbox.CodeUnauthorized, "signalbox login-link")
	}
	l, err := h.UseLink(ctx, code)
	if err != nil || !l.Who.Has(signalbox.ScopeAdmin) || l.Who.Key() != "service:static" || h.IsStatic(l.Who) {
		t.Fatalf("%+v %v", l.Who, err)
	}
	_, err = h.UseLink(ctx, code)
	wantCode(t, err, signalbox.CodeUnauthorized)
	late, _, _ := h.NewLink()
	h.now = h.now.Add(identity.LinkFor)
	_, err = h.UseLink(ctx, late)
	wantCode(t, err, signalbox.CodeUnauthorized)
	// Replacing or removing the static token ends the logins that came from it.
	for _, static := range []string{strings.Repeat("other", 8), ""} {
		other := newRigOver(t, h.rows, func(o *identity.Options) { o.Static = static })
		other.now = h.now
		_, err = other.FromLogin(l.Cookie, l.Key)
		wantCode(t, err, signalbox.CodeUnauthorized)
		if other.InForce(l.Who) {
			t.Error("it is still in force")
		}
		if static == "" && !other.Open() {
			t.Error("the login of an owner keeps the director closed")
		}
	}
	_, _, err = newRig(t).NewLink()
	wantCode(t, err, signalbox.CodeUnsupported)
	// The number of links is limited: new ones end the oldest.
	first, _, _ := h.NewLink()
	for range 20 {
		code, _, _ = h.NewLink()
	}
	_, err = h.UseLink(ctx, first)
	wantCode(t, err, signalbox.CodeUnauthorized)
	if _, err = h.UseLink(ctx, code); err != nil {
		t.Error(err)
	}
}

// An address that tries many users is blocked for all users; an IPv6 host can choose from a
// whole /64.
func TestSprayingUsersIsSlowedDown(t *testing.T) {
	h := withAnna(t)
	for i := range identity.AddrFailures {
		_, err := h.Login(t.Context(), try(fmt.Sprint("user", i), wrong, fmt.Sprintf("2001:db8::%x", i)))
		wantCode(t, err, signalbox.CodeUnauthorized)
	}
	_, err := h.Login(t.Context(), try("anna", right, "2001:db8::ffff"))
	wantCode(t, err, signalbox.CodeRateLimited, "minutes")
	if _, err = h.Login(t.Context(), try("anna", right, "2001:db8:1::1")); err != nil {
		t.Error(err)
	}
}

// Concurrent guesses are counted before they are checked, and at most two are hashed at a
// time.
func TestGuessesAtOnceAreCounted(t *testing.T) {
	h := newRig(t, func(o *identity.Options) { o.Cost = identity.Cost{MemoryKiB: 1 << 10, Passes: 1} })
	h.user(identity.PutUser{ID: "anna", Password: right, Role: signalbox.RoleAdmin})
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[signalbox.Code]int{}
	for range 30 {
		wg.Go(func() {
			_, err := h.Login(t.Context(), try("anna", wrong, "192.0.2.1"))
			mu.Lock()
			defer mu.Unlock()
			codes[signalbox.CodeOf(err)]++
			if n := h.Hashing(); n > identity.MaxHashes {
				t.Errorf("%d hashes at once", n)
			}
		})
	}
	wg.Wait()
	if codes[signalbox.CodeUnauthorized] != identity.UserFailures || codes[signalbox.CodeRateLimited] != 30-identity.UserFailures {
		t.Errorf("%v", codes)
	}
}

func TestPasswordsAreStoredAsArgon2id(t *testing.T) {
	h := newRig(t)
	for _, bad := range []string{"short", strings.Repeat("x", 11), strings.Repeat("x", 1025)} {
		_, _, err := h.PutUser(t.Context(), identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin, Password: bad})
		wantCode(t, err, signalbox.CodeValidation, "12 to 1024")
	}
	long := strings.Repeat("x", 1024)
	h.user(identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin, Password: long})
	h.user(identity.PutUser{ID: "ben", Role: signalbox.RoleAdmin, Password: long})
	a, b := h.rows.users["anna"].Password, h.rows.users["ben"].Password
	if !strings.HasPrefix(a, "$argon2id$v=19$m=8,t=1,p=1$") || a == b {
		t.Errorf("stored as %q and %q", a, b)
	}
	h.login("anna", long)
	for _, bad := range []string{"", "plain", a[:len(a)-40], strings.Replace(a, "m=8", "m=99999999", 1), strings.Replace(a, "argon2id", "argon2i", 1), strings.Replace(a, "t=1", "t=0", 1)} {
		if signalbox.CodeOf(identity.ParsePHC(bad)) != signalbox.CodeStoreCorrupt {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, p := range []identity.PutUser{
		{ID: "a b"}, {ID: "anna", Role: "root"}, {ID: "anna", Email: new("anna")}, {ID: "anna", Email: new("a\r\n@b")}, {ID: "anna", Email: new("a@b@c")},
		{ID: "anna", Agents: []string{"coder"}, Role: signalbox.RoleAdmin}, {ID: "anna", Agents: []string{".."}},
	} {
		_, _, err := h.PutUser(t.Context(), p)
		wantCode(t, err, signalbox.CodeValidation)
	}
}

// The default cost of a login has a lower bound.
func TestDefaultCost(t *testing.T) {
	if c := identity.DefaultCost; c.MemoryKiB < 19<<10 || c.Passes < 1 {
		t.Errorf("%+v is less than what is advised", c)
	}
	h := newRig(t, func(o *identity.Options) { o.Cost = identity.Cost{} })
	h.user(identity.PutUser{ID: "anna", Password: right, Role: signalbox.RoleAdmin})
	h.login("anna", right)
	if !strings.HasPrefix(h.rows.users["anna"].Password, "$argon2id$v=19$m=65536,t=2,p=1$") {
		t.Error(h.rows.users["anna"].Password)
	}
}

// The director collects garbage late, but password guesses must not make its memory grow:
// the memory of a hash is free again once it is made.
func TestGuessesDoNotPileUpMemory(t *testing.T) {
	const hash = 16 << 20
	h := newRig(t, func(o *identity.Options) { o.Cost = identity.Cost{MemoryKiB: hash >> 10, Passes: 1} })
	h.user(identity.PutUser{ID: "anna", Password: right, Role: signalbox.RoleAdmin})
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := h.Login(t.Context(), try("anna", wrong, "192.0.2.1"))
	wantCode(t, err, signalbox.CodeUnauthorized)
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > hash/2 {
		t.Errorf("a guess left %d bytes behind", grown)
	}
}

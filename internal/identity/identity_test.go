package identity_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows is a store that two directors may share.
type rows struct {
	mu     sync.Mutex
	tokens map[string]signalbox.Token
	users  map[string]signalbox.User
	reads  int
	fail   error
	takes  time.Duration // duration of a read
}

func newRows() *rows {
	return &rows{tokens: map[string]signalbox.Token{}, users: map[string]signalbox.User{}}
}

func (r *rows) PutToken(_ context.Context, t signalbox.Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail == nil {
		r.tokens[t.ID] = t
	}
	return r.fail
}

func (r *rows) DeleteToken(_ context.Context, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, was := r.tokens[id]
	delete(r.tokens, id)
	return was, r.fail
}

func (r *rows) PutUser(_ context.Context, u signalbox.User) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail == nil {
		r.users[u.ID] = u
	}
	return r.fail
}

func (r *rows) DeleteUser(_ context.Context, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, was := r.users[id]
	delete(r.users, id)
	return was, r.fail
}

func (r *rows) slow(takes time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = takes
}

func (r *rows) read() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}

func (r *rows) Tokens(ctx context.Context) ([]signalbox.Token, error) {
	r.mu.Lock()
	takes := r.takes
	r.mu.Unlock()
	over := time.NewTimer(takes)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return slices.Collect(maps.Values(r.tokens)), r.fail
}

func (r *rows) Users(context.Context) ([]signalbox.User, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.users)), r.fail
}

// cheap makes hashing fast.
var cheap = identity.Cost{MemoryKiB: 8, Passes: 1}

// rig is a Keeper over rows, with a clock.
type rig struct {
	*identity.Keeper
	t    *testing.T
	rows *rows
	now  time.Time
}

func newRig(t *testing.T, change ...func(*identity.Options)) *rig {
	t.Helper()
	return newRigOver(t, newRows(), change...)
}

func newRigOver(t *testing.T, r *rows, change ...func(*identity.Options)) *rig {
	t.Helper()
	h := &rig{t: t, rows: r, now: time.Date(2025, 1, 17, 10, 0, 0, 0, time.UTC)}
	o := identity.Options{Now: func() time.Time { return h.now }, Cost: cheap}
	for _, f := range change {
		f(&o)
	}
	var err error
	if h.Keeper, err = identity.New(t.Context(), r, o); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *rig) token(n identity.NewToken) (identity.Known, string) {
	h.t.Helper()
	got, secret, err := h.CreateToken(h.t.Context(), n)
	if err != nil {
		h.t.Fatal(err)
	}
	return got, secret
}

func (h *rig) admin() (identity.Known, string) {
	h.t.Helper()
	return h.token(identity.NewToken{Name: "admin", Scopes: []signalbox.Scope{signalbox.ScopeAdmin}})
}

func (h *rig) user(p identity.PutUser) signalbox.User {
	h.t.Helper()
	u, _, err := h.PutUser(h.t.Context(), p)
	if err != nil {
		h.t.Fatal(err)
	}
	return u
}

func (h *rig) login(user, password string) identity.Login {
	h.t.Helper()
	l, err := h.Login(h.t.Context(), try(user, password, "192.0.2.1"))
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

func wantCode(t *testing.T, err error, code signalbox.Code, words ...string) {
	t.Helper()
	if signalbox.CodeOf(err) != code {
		t.Fatalf("got %v, want code %q", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

const (
	right = "a right long password"
	wrong = "a wrong long password"
)

func TestOpenUntilTheFirstAdmin(t *testing.T) {
	ctx := t.Context()
	h := newRig(t)
	if !h.Open() {
		t.Fatal("closed without anyone")
	}
	// Tokens of agents do not close the director; others are refused while it is open.
	h.token(identity.NewToken{Name: "coder", Agent: "coder"})
	_, _, err := h.CreateToken(ctx, identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	wantCode(t, err, signalbox.CodeConflict, "open", "--scope admin")
	_, _, err = h.PutUser(ctx, identity.PutUser{ID: "anna", Password: right})
	wantCode(t, err, signalbox.CodeConflict, "--role admin")
	h.user(identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin}) // cannot log in yet
	if !h.Open() {
		t.Fatal("an admin who cannot log in closed the director")
	}
	h.user(identity.PutUser{ID: "anna", Password: right})
	if h.Open() {
		t.Fatal("open with an admin")
	}
	// She is the last admin, and cannot be removed in any way.
	wantCode(t, h.RemoveUser(ctx, "anna"), signalbox.CodeConflict, "last admin")
	_, _, err = h.PutUser(ctx, identity.PutUser{ID: "anna", Disabled: new(true)})
	wantCode(t, err, signalbox.CodeConflict, "last admin")
	_, _, err = h.PutUser(ctx, identity.PutUser{ID: "anna", Role: signalbox.RoleUser})
	wantCode(t, err, signalbox.CodeConflict, "last admin")
	// Her own token does not count: it ends with her.
	h.token(identity.NewToken{Name: "anna", User: "anna"})
	wantCode(t, h.RemoveUser(ctx, "anna"), signalbox.CodeConflict, "last admin")
	tok, secret := h.admin()
	if err := h.RemoveUser(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	_, err = h.RevokeToken(ctx, tok.ID)
	wantCode(t, err, signalbox.CodeConflict, "last admin", "--token")
	if _, err := h.FromToken(secret); err != nil {
		t.Error(err)
	}
}

// Time alone must not open a director.
func TestAnExpiredAdminKeepsTheDirectorClosed(t *testing.T) {
	h := newRig(t)
	tok, _ := h.token(identity.NewToken{Name: "admin", Scopes: []signalbox.Scope{signalbox.ScopeAdmin}, Expires: time.Hour})
	h.now = h.now.Add(40 * 24 * time.Hour)
	h.token(identity.NewToken{Name: "coder", Agent: "coder"})
	if h.Open() {
		t.Error("open after the admin's token expired")
	}
	if _, ok := h.Token(tok.ID); !ok {
		t.Error("the row that keeps the director closed is gone")
	}
}

func TestWhatATokenMayNotBe(t *testing.T) {
	h := newRig(t)
	h.admin()
	h.user(identity.PutUser{ID: "ben", Role: signalbox.RoleUser})
	h.user(identity.PutUser{ID: "anna", Role: signalbox.RoleAdmin})
	scopes := func(s ...signalbox.Scope) []signalbox.Scope { return s }
	for name, n := range map[string]identity.NewToken{
		"no name":                  {Scopes: scopes("read")},
		"a name with a line":       {Name: "a\nb", Scopes: scopes("read")},
		"no scopes":                {Name: "ci"},
		"an unknown scope":         {Name: "ci", Scopes: scopes("root")},
		"the name static":          {Name: "static", Scopes: scopes("read")},
		"both user and agent":      {Name: "ci", User: "ben", Agent: "coder"},
		"an agent that is admin":   {Name: "ci", Agent: "coder", Scopes: scopes("admin")},
		"a service as an agent":    {Name: "ci", Scopes: scopes("agent")},
		"a limited admin":          {Name: "ci", Scopes: scopes("admin"), Agents: []string{"coder"}},
		"a limited user as admin":  {Name: "ci", User: "anna", Agents: []string{"coder"}},
		"more than the role":       {Name: "ci", User: "ben", Scopes: scopes("read", "release")},
		"an agent that is no name": {Name: "ci", Agent: "../x"},
		"limits that are no names": {Name: "ci", Scopes: scopes("read"), Agents: []string{"a b"}},
		"a negative life":          {Name: "ci", Scopes: scopes("read"), Expires: -1},
		"too long a life":          {Name: "ci", Scopes: scopes("read"), Expires: 20 * 365 * 24 * time.Hour},
	} {
		_, _, err := h.CreateToken(t.Context(), n)
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := h.CreateToken(t.Context(), identity.NewToken{Name: "ci", User: "carl"})
	wantCode(t, err, signalbox.CodeNotFound, "carl")
}

// A service is identified by the name of its token: two programs with one name would
// be one principal, and could see and replay each other's tasks.
func TestTwoServicesDoNotShareAName(t *testing.T) {
	h := newRig(t)
	h.admin()
	ci := identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Expires: time.Hour}
	first, _ := h.token(ci)
	_, _, err := h.CreateToken(t.Context(), ci)
	wantCode(t, err, signalbox.CodeConflict, "another name", "signalbox tokens revoke "+first.ID)
	// An agent or a user with that name is another principal, and may have several tokens.
	h.user(identity.PutUser{ID: "ci"})
	for range 2 {
		h.token(identity.NewToken{Name: "ci", Agent: "ci"})
		h.token(identity.NewToken{Name: "ci", User: "ci"})
	}
	if _, err = h.RevokeToken(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	h.token(ci)
	h.now = h.now.Add(2 * time.Hour) // the token has expired
	h.token(ci)
}

func TestATokenNeverOutlivesItsUser(t *testing.T) {
	ctx := t.Context()
	h := newRig(t)
	h.admin()
	h.user(identity.PutUser{ID: "ben", Email: new("ben@example.com"), Role: signalbox.RoleAdmin, Password: right})
	_, secret := h.token(identity.NewToken{Name: "laptop", User: "ben"})
	cookie := h.login("ben", right)
	who, err := h.FromToken(secret)
	if err != nil || !who.Has(signalbox.ScopeRelease) || who.Email != "ben@example.com" {
		t.Fatalf("%+v, %v", who, err)
	}
	before := who
	h.user(identity.PutUser{ID: "ben", Role: signalbox.RoleUser, Agents: []string{"coder"}})
	if who, err = h.FromToken(secret); err != nil || who.Has(signalbox.ScopeRelease) || !slices.Equal(who.Agents, []string{"coder"}) {
		t.Errorf("after the change of role: %+v, %v", who, err)
	}
	if h.InForce(before) || !h.InForce(who) {
		t.Error("a stream would keep the old rights")
	}
	h.user(identity.PutUser{ID: "ben", Disabled: new(true)})
	_, err = h.FromToken(secret)
	wantCode(t, err, signalbox.CodeUnauthorized, "disabled")
	_, err = h.FromLogin(cookie.Cookie, cookie.Key)
	wantCode(t, err, signalbox.CodeUnauthorized)
	_, err = h.Login(ctx, try("ben", right, "192.0.2.7"))
	wantCode(t, err, signalbox.CodeUnauthorized)
	h.user(identity.PutUser{ID: "ben", Disabled: new(false)})
	if _, err = h.FromToken(secret); err != nil {
		t.Error(err)
	}
	if _, err = h.FromLogin(cookie.Cookie, cookie.Key); err == nil {
		t.Error("a login is valid again after its user was enabled")
	}
	// A later user with the same name does not get the tokens.
	stale := maps.Clone(h.rows.tokens)
	if err := h.RemoveUser(ctx, "ben"); err != nil {
		t.Fatal(err)
	}
	maps.Copy(h.rows.tokens, stale) // as if another director had written them at the same time
	h.now = h.now.Add(time.Minute)
	h.user(identity.PutUser{ID: "anna"})
	h.user(identity.PutUser{ID: "ben", Password: right})
	if _, err = h.FromToken(secret); err == nil {
		t.Error("the token of the first ben works for the second")
	}
	wantCode(t, h.RemoveUser(ctx, "nobody"), signalbox.CodeNotFound)
}

// A change of one field of a user must not remove the user's limits.
func TestWhatIsNotGivenOfAUserStays(t *testing.T) {
	h := newRig(t)
	h.admin()
	h.user(identity.PutUser{ID: "ben", Email: new("ben@example.com"), Password: right, Agents: []string{"coder"}})
	want := h.rows.users["ben"]
	for _, p := range []identity.PutUser{{ID: "ben", Disabled: new(true)}, {ID: "ben", Role: signalbox.RoleUser}, {ID: "ben", Disabled: new(false)}, {ID: "ben"}} {
		h.user(p)
	}
	if got := h.rows.users["ben"]; !reflect.DeepEqual(got, want) || len(got.Agents) != 1 {
		t.Errorf("it was %+v and is %+v", want, got)
	}
	_, _, err := h.PutUser(t.Context(), identity.PutUser{ID: "ben", Role: signalbox.RoleAdmin})
	wantCode(t, err, signalbox.CodeValidation, "empty list")
	h.user(identity.PutUser{ID: "ben", Role: signalbox.RoleAdmin, Agents: []string{}, Email: new("")})
	if got := h.rows.users["ben"]; got.Agents != nil || got.Email != "" || got.Role != signalbox.RoleAdmin || got.Password != want.Password {
		t.Errorf("%+v", got)
	}
}

func TestLimitsOfTokenAndUserBothHold(t *testing.T) {
	h := newRig(t)
	h.admin()
	h.user(identity.PutUser{ID: "ben", Agents: []string{"coder", "reviewer"}})
	_, one := h.token(identity.NewToken{Name: "one", User: "ben", Agents: []string{"coder", "writer"}})
	_, none := h.token(identity.NewToken{Name: "none", User: "ben", Agents: []string{"writer"}})
	_, agent := h.token(identity.NewToken{Name: "agent", Agent: "boss", Agents: []string{"coder"}})
	for secret, want := range map[string]map[string]bool{
		one:   {"coder": true, "reviewer": false, "writer": false},
		none:  {"coder": false, "reviewer": false, "writer": false},
		agent: {"coder": true, "reviewer": false, "boss": true},
	} {
		who, err := h.FromToken(secret)
		if err != nil {
			t.Fatal(err)
		}
		for name, may := range want {
			if who.MayUse(name) != may {
				t.Errorf("limits %v: may use %s is %v", who.Agents, name, who.MayUse(name))
			}
		}
	}
}

func TestUpMakesOneTokenForAnAgent(t *testing.T) {
	h := newRig(t)
	byHand, _ := h.token(identity.NewToken{Name: "up:coder", Agent: "coder", By: "anna"})
	first, err := h.EnsureAgentToken(t.Context(), "coder")
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.EnsureAgentToken(t.Context(), "coder")
	if err != nil || first == second {
		t.Fatal(err)
	}
	if _, err := h.EnsureAgentToken(t.Context(), "reviewer"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.FromToken(first); err == nil {
		t.Error("the previous token is still valid")
	}
	if who, err := h.FromToken(second); err != nil || who.Key() != "agent:coder" {
		t.Errorf("%+v, %v", who, err)
	}
	if _, ok := h.Token(byHand.ID); !ok || len(h.Tokens()) != 3 {
		t.Errorf("tokens: %+v", h.Tokens())
	}
	if _, err := h.EnsureAgentToken(t.Context(), "a b"); signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Error(err)
	}
}

// A listener may call InForce at once, even if the view is old.
func TestAListenerMayAsk(t *testing.T) {
	h := newRig(t)
	_, secret := h.token(identity.NewToken{Name: "coder", Agent: "coder"})
	who, err := h.FromToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := 0
	h.OnChange(func() {
		mu.Lock() // a second call from within this one would wait for ever
		defer mu.Unlock()
		h.Age()
		if h.InForce(signalbox.Principal{}) && h.InForce(who) {
			asked++
		}
	})
	h.Age()
	h.Refresh()
	if _, err := h.EnsureAgentToken(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
}

// Concurrent changes by two directors: none is lost, and no revoked token becomes valid
// again.
func TestManyAtOnce(t *testing.T) {
	h := newRig(t)
	other := newRigOver(t, h.rows)
	h.admin()
	var wg sync.WaitGroup
	for i := range 40 {
		k := h
		if i%2 == 1 {
			k = other
		}
		wg.Go(func() {
			n := identity.NewToken{Name: fmt.Sprint("ci-", i), Scopes: []signalbox.Scope{signalbox.ScopeRead}}
			tok, secret, err := k.CreateToken(t.Context(), n)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := k.FromToken(secret); err != nil {
				t.Errorf("a new token is refused: %v", err)
			}
			if _, err := k.RevokeToken(t.Context(), tok.ID); err != nil {
				t.Error(err)
			}
			for range 20 {
				k.Age()
				if _, err := k.FromToken(secret); err == nil {
					t.Error("a revoked token was accepted")
				}
			}
		})
	}
	wg.Wait()
	h.Age()
	if n := len(h.Tokens()); n != 41 {
		t.Errorf("%d tokens, want 41", n)
	}
}

func TestWithoutAStore(t *testing.T) {
	k, err := identity.New(t.Context(), nil, identity.Options{Static: "x"})
	if err != nil || k.Open() {
		t.Fatal(err)
	}
	_, _, err = k.CreateToken(t.Context(), identity.NewToken{Name: "a", Agent: "coder"})
	wantCode(t, err, signalbox.CodeUnsupported)
}

package storetest

import (
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func identityRules() []rule {
	return []rule{
		{"a token is stored by id, as it is", tokenStored},
		{"tokens are listed by id", tokensSorted},
		{"a deleted token is gone", tokenDeleted},
		{"a user is stored by id, as it is", userStored},
		{"a deleted user is gone", userDeleted},
		{"tokens and users write no entry", identityEntries},
		{"no memory is shared with the callers", identityNoAlias},
	}
}

func aToken(name string) signalbox.Token {
	return signalbox.Token{
		ID: name, Login: true, Name: "laptop", Hash: []byte{0, 1, 255}, Kind: signalbox.PrincipalUser, Principal: "ann",
		Scopes: []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeAdmin}, Agents: []string{"a", "b"},
		CreatedAt: start, CreatedBy: "user:ann", ExpiresAt: start.Add(time.Hour), RevokedAt: start.Add(time.Minute),
	}
}

func aUser(name string) signalbox.User {
	return signalbox.User{
		ID: name, Email: name + "@example.com", Password: "$argon2id$…", Role: signalbox.RoleUser, Agents: []string{"a"},
		CreatedAt: start, Disabled: true,
	}
}

func (b *fixture) tokens() []signalbox.Token {
	b.Helper()
	list, err := b.Tokens(b.ctx)
	b.must(err)
	return list
}

func (b *fixture) users() []signalbox.User {
	b.Helper()
	list, err := b.Users(b.ctx)
	b.must(err)
	return list
}

func tokenStored(b *fixture) {
	b.same("tokens", b.tokens(), []signalbox.Token(nil))
	t := aToken("t")
	b.must(b.PutToken(b.ctx, t))
	b.same("tokens", b.tokens(), []signalbox.Token{t})
	plain := signalbox.Token{ID: "t"}
	b.must(b.PutToken(b.ctx, plain))
	b.same("tokens", b.tokens(), []signalbox.Token{plain})
	for _, h := range hostile() {
		odd := aToken("t")
		odd.Name, odd.Principal, odd.CreatedBy, odd.Hash = h, h, h, []byte(h)
		odd.Scopes, odd.Agents = []signalbox.Scope{signalbox.Scope(h), ""}, []string{h, "", h}
		b.must(b.PutToken(b.ctx, odd))
		b.same("tokens", b.tokens(), []signalbox.Token{odd})
	}
}

func tokensSorted(b *fixture) {
	for _, name := range []string{"b", "a", "C", strings.Repeat("x", 300)} {
		b.must(b.PutToken(b.ctx, aToken(name)))
	}
	var names []string
	for _, t := range b.tokens() {
		names = append(names, t.ID)
	}
	b.same("names", names, []string{"C", "a", "b", strings.Repeat("x", 300)})
}

func tokenDeleted(b *fixture) {
	b.must(b.PutToken(b.ctx, aToken("a")))
	b.must(b.PutToken(b.ctx, aToken("b")))
	for _, want := range []bool{true, false} {
		was, err := b.DeleteToken(b.ctx, "a")
		b.must(err)
		b.same("was there", was, want)
	}
	b.same("tokens", b.tokens(), []signalbox.Token{aToken("b")})
}

func userStored(b *fixture) {
	b.must(b.PutUser(b.ctx, aUser("b")))
	b.must(b.PutUser(b.ctx, signalbox.User{ID: "a"}))
	b.same("users", b.users(), []signalbox.User{{ID: "a"}, aUser("b")})
	for _, h := range hostile() {
		odd := signalbox.User{ID: "b", Email: h, Password: h, Role: signalbox.Role(h), Agents: []string{h}}
		b.must(b.PutUser(b.ctx, odd))
		b.same("user", b.users()[1], odd)
	}
}

func userDeleted(b *fixture) {
	b.must(b.PutUser(b.ctx, aUser("a")))
	for _, want := range []bool{true, false} {
		was, err := b.DeleteUser(b.ctx, "a")
		b.must(err)
		b.same("was there", was, want)
	}
	b.same("users", b.users(), []signalbox.User(nil))
}

func identityEntries(b *fixture) {
	b.must(b.PutToken(b.ctx, aToken("a")))
	b.must(b.PutUser(b.ctx, aUser("a")))
	b.must(second(b.DeleteToken(b.ctx, "a")))
	b.must(second(b.DeleteUser(b.ctx, "a")))
	b.same("entries", len(b.journal()), 0)
}

func identityNoAlias(b *fixture) {
	t, u := aToken("t"), aUser("u")
	b.must(b.PutToken(b.ctx, t))
	b.must(b.PutUser(b.ctx, u))
	t.Hash[0], t.Scopes[0], t.Agents[0], u.Agents[0] = 9, "x", "x", "x"
	got := b.tokens()[0]
	got.Hash[0], got.Scopes[0], got.Agents[0], b.users()[0].Agents[0] = 9, "x", "x", "x"
	b.same("token", b.tokens()[0], aToken("t"))
	b.same("user", b.users()[0], aUser("u"))
}

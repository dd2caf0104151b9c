package identity_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func TestATokenIsShownOnceAndStoredHashed(t *testing.T) {
	h := newRig(t)
	tok, secret := h.token(identity.NewToken{Name: "coder", Agent: "coder", By: "a local caller"})
	if !strings.HasPrefix(secret, "sbxa_"+strings.TrimPrefix(tok.ID, "tok-")+"_") || len(secret) != len("sbxa_")+16+1+43 {
		t.Errorf("the secret of an agent is %q", secret)
	}
	for _, row := range h.rows.tokens {
		if strings.Contains(string(row.Hash), secret[22:]) || len(row.Hash) != 32 {
			t.Error("the store has the secret itself")
		}
	}
	who, err := h.FromToken(secret)
	if err != nil || who.Key() != "agent:coder" || who.TokenID != tok.ID {
		t.Errorf("got %+v, %v", who, err)
	}
	if want := []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeTool, signalbox.ScopeAgent}; !slices.Equal(who.Scopes, want) {
		t.Errorf("an agent has %v, want %v", who.Scopes, want)
	}
	_, other := h.admin()
	if !strings.HasPrefix(other, "sbxt_") || other == secret {
		t.Errorf("the secret of a service is %q", other)
	}
	for _, bad := range []string{"", "sbxa_", secret[:len(secret)-1], secret + "x", "sbxt_" + secret[5:], strings.Replace(secret, "_", "-", 1), strings.ToUpper(secret), other[:22] + secret[22:]} {
		_, err := h.FromToken(bad)
		wantCode(t, err, signalbox.CodeUnauthorized)
	}
}

func TestAStaticTokenHasEveryRight(t *testing.T) {
	h := newRig(t, func(o *identity.Options) { o.Static = "correct-horse-battery-staple" })
	who, ok := h.FromStatic("correct-horse-battery-staple")
	if !ok || who.Key() != "service:static" || !who.Has(signalbox.ScopeTerminal) || h.Open() {
		t.Errorf("got %+v %v, open %v", who, ok, h.Open())
	}
	if _, ok := h.FromStatic("correct-horse-battery-stapl"); ok || !h.Guessable() {
		t.Error("a wrong one was taken, or 28 characters count as unguessable")
	}
	if _, ok := newRig(t).FromStatic(""); ok {
		t.Error("no static token is taken for an empty one")
	}
	// With a static token others may be made in any order, and the last one may be revoked.
	tok, _ := h.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	if _, err := h.RevokeToken(t.Context(), tok.ID); err != nil {
		t.Error(err)
	}
}

func TestExpiredAndRevokedTokensAreRefused(t *testing.T) {
	h := newRig(t)
	h.admin()
	tok, secret := h.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Expires: time.Hour})
	h.now = h.now.Add(time.Hour - time.Millisecond)
	if _, err := h.FromToken(secret); err != nil {
		t.Fatal(err)
	}
	for _, known := range h.Tokens() {
		if used := known.LastUsed; known.ID == tok.ID && !used.Equal(h.now) {
			t.Errorf("last used %v, want %v", used, h.now)
		}
	}
	h.now = h.now.Add(time.Millisecond)
	_, err := h.FromToken(secret)
	wantCode(t, err, signalbox.CodeUnauthorized, "expired", "2025-01-17 11:00:00")
	h.now = h.now.Add(-time.Minute)
	for range 2 {
		got, err := h.RevokeToken(t.Context(), tok.ID)
		if err != nil || !got.RevokedAt.Equal(h.now) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	_, err = h.FromToken(secret)
	wantCode(t, err, signalbox.CodeUnauthorized, "revoked")
	_, err = h.RevokeToken(t.Context(), "tok-nothing")
	wantCode(t, err, signalbox.CodeNotFound)
	// Rows of tokens that ended long ago are removed when the next token is made.
	h.now = h.now.Add(31 * 24 * time.Hour)
	h.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	if _, ok := h.Token(tok.ID); ok {
		t.Error("a token that was revoked a month ago is still there")
	}
}

// A request costs no read of the store, and changes of another director take effect within
// seconds.
func TestAnotherDirectorsChangesCount(t *testing.T) {
	h := newRig(t)
	other := newRigOver(t, h.rows)
	h.admin()
	tok, secret := h.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
	reads := h.rows.reads
	for range 1000 {
		if _, err := h.FromToken(secret); err != nil {
			t.Fatal(err)
		}
	}
	if h.rows.reads > reads+1 {
		t.Errorf("1000 requests read the store %d times", h.rows.reads-reads)
	}
	other.Age()
	if _, err := other.FromToken(secret); err != nil {
		t.Errorf("the other director does not know the token: %v", err)
	}
	if _, err := other.RevokeToken(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	told := 0
	h.OnChange(func() { told++ })
	h.Age()
	if _, err := h.FromToken(secret); signalbox.CodeOf(err) != signalbox.CodeUnauthorized || told != 1 {
		t.Errorf("revoked elsewhere, it is still taken: %v (told %d times)", err, told)
	}
	// If the store does not answer, the old view stays.
	h.rows.fail = errors.New("no store")
	h.Age()
	if h.Open() {
		t.Error("a store that fails opened the director")
	}
}

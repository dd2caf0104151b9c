package identity_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func shared(o *identity.Options) { o.Shared, o.Static = true, "static-token" }

// Of two directors over one store, what one makes is good at the other at once,
// and what it takes away is refused there within identity.UnseenFor.
func TestSharedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alfa := newRig(t, shared)
		bravo := newRigOver(t, alfa.rows, shared)
		for range 3 {
			known, secret, err := alfa.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bravo.FromToken(secret); err != nil {
				t.Fatal(err)
			}
			if _, err := alfa.RevokeToken(t.Context(), known.ID); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for err = nil; err == nil; _, err = bravo.FromToken(secret) {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(begin); took > identity.UnseenFor {
				t.Errorf("refused after %s", took)
			}
		}
	})
}

// Tokens that nobody knows cost a few readings a second, however many come, and
// a reading that takes long makes them seldom.
func TestSharedUnknownTokensCostLittle(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		most  int
	}{{0, 110}, {50 * time.Millisecond, 15}} {
		synctest.Test(t, func(t *testing.T) {
			h := newRig(t, shared)
			h.rows.slow(c.takes)
			before := h.rows.read()
			var asking sync.WaitGroup
			for range 50 {
				asking.Go(func() {
					for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(time.Millisecond) {
						if _, err := h.FromToken("sbxt_0000000000000000_x"); signalbox.CodeOf(err) != signalbox.CodeUnauthorized {
							t.Error(err)
							return
						}
					}
				})
			}
			asking.Wait()
			if n := h.rows.read() - before; n > c.most {
				t.Errorf("%d readings in 10 s, each of %s", n, c.takes)
			}
		})
	}
}

// Without its store a director cannot tell whether a token that it does not
// know is in force, and says so; one that it knows goes on.
func TestSharedWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, shared)
		_, secret, err := h.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		h.rows.mu.Lock()
		h.rows.fail = errors.New("connection refused")
		h.rows.mu.Unlock()
		for range 3 {
			time.Sleep(identity.UnseenFor)
			if _, err := h.FromToken(secret); err != nil {
				t.Error(err)
			}
			if _, err := h.FromToken("sbxt_0000000000000000_x"); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
				t.Errorf("%v", err)
			}
			if _, err := h.FromToken("what is no token of ours"); signalbox.CodeOf(err) != signalbox.CodeUnauthorized {
				t.Errorf("%v", err)
			}
		}
	})
}

// A director that nobody asked for a while does not go by what it knew, though
// many ask at once and one of them reads.
func TestSharedNobodyGoesByWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alfa := newRig(t, shared)
		bravo := newRigOver(t, alfa.rows, shared)
		known, secret, err := alfa.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
		if err == nil {
			_, err = bravo.FromToken(secret)
		}
		if err == nil {
			_, err = alfa.RevokeToken(t.Context(), known.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		alfa.rows.slow(100 * time.Millisecond)
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if _, err := bravo.FromToken(secret); err == nil {
					t.Error("a token that was revoked a minute ago")
				}
			})
		}
		asking.Wait()
	})
}

// A store that hangs holds nobody up for longer than a reading may take.
func TestSharedAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, shared)
		_, secret, err := h.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		h.rows.slow(time.Hour)
		time.Sleep(identity.UnseenFor)
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				begin := time.Now()
				if _, err := h.FromToken(secret); err != nil || time.Since(begin) > 4*time.Second {
					t.Errorf("%v after %s", err, time.Since(begin))
				}
			})
		}
		asking.Wait()
	})
}

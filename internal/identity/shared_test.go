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

// With two directors that share a store, a token made at one is valid at the other at once,
// and a revoked token is refused there within identity.MaxStaleness.
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
			if took := time.Since(begin); took > identity.MaxStaleness {
				t.Errorf("refused after %s", took)
			}
		}
	})
}

// Unknown tokens cost a few reads per second, however many there are, and fewer if a read
// is slow.
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

// Without its store a director cannot check an unknown token, and says so; known tokens
// still work.
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
			time.Sleep(identity.MaxStaleness)
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

// A director that was idle for a while does not use its old view, even if many requests
// come at once and only one of them reads the store.
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

// A store that hangs delays no request for longer than refreshTimeout.
func TestSharedAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, shared)
		_, secret, err := h.CreateToken(t.Context(), identity.NewToken{Name: "reader", Scopes: []signalbox.Scope{signalbox.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		h.rows.slow(time.Hour)
		time.Sleep(identity.MaxStaleness)
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

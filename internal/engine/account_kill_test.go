package engine_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// A director that is killed after it stored a change of an account, but before it told anyone, loses nothing:
// the next director finds the account closed, or open with its tasks claimable.
func TestAccountStoredButNotTold(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	a.Account = "team"
	b.submit(engine.NewTask{Prompt: "p"})
	c, found, err := b.Claim(t.Context(), a, 0)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	task, err := b.Accept(t.Context(), c.Task, "id", "")
	b.must(err)
	task, err = b.Finish(t.Context(), task, engine.Outcome{
		Reason: signalbox.ReasonAgentError, Account: accounts.News{Name: "team"},
		Limit: &accounts.Limit{Kind: accounts.Usage, ResetsAt: b.Now().Add(time.Hour), Source: "event"},
	})
	b.must(err)
	change := func(kind signalbox.AccountEventKind) { // only the commit
		t.Helper()
		_, err := b.store.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: kind, Account: "team", Now: b.Now(), Source: "ann"})
		b.must(err)
	}
	next := func() *fixture {
		t.Helper()
		n := newFixtureOver(t, b.store)
		n.must(n.OpenGates(t.Context()))
		return n
	}
	change(signalbox.AccountClosedByPerson)
	n := next()
	if got, found, err := n.Claim(t.Context(), a, 0); err != nil || found || !got.Held {
		t.Errorf("closed: %+v, %t (%v)", got.Task, found, err)
	}
	change(signalbox.AccountOpened)
	n = next()
	got, found, err := n.Claim(t.Context(), a, 0)
	if err != nil || !found || got.Task.ID != task.ID || got.Task.Parking == nil {
		t.Errorf("open: %+v, %t (%v)", got.Task, found, err)
	}
}

package engine_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Unused accounts are removed after 30 days, but no account that is closed, recently heard of, or spent by a
// known agent.
func TestUnusedAccountsAreForgotten(t *testing.T) {
	b := newFixture(t)
	told := func(name string, kind signalbox.AccountEventKind, windows ...signalbox.AccountWindow) {
		t.Helper()
		if _, err := b.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: kind, Account: name, Windows: windows}); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (list []string) {
		all, err := b.Accounts(t.Context())
		b.must(err)
		for _, a := range all {
			list = append(list, a.Name)
		}
		return list
	}
	b.see(engine.LiveAgent{Agent: signalbox.Agent{Name: "gone", Kind: "demo", Slots: 1, Account: "spent"}})
	told("spent", signalbox.AccountReported)
	told("closed", signalbox.AccountClosedByPerson)
	told("old", signalbox.AccountReported, signalbox.AccountWindow{Name: "five_hour"})
	told("opened", signalbox.AccountClosedByPerson)
	told("opened", signalbox.AccountOpened)
	b.pass(29 * 24 * time.Hour)
	b.must(b.PruneAccounts(t.Context()))
	if got := len(names()); got != 4 {
		t.Errorf("after 29 days: %v", names())
	}
	told("late", signalbox.AccountReported, signalbox.AccountWindow{Name: "five_hour"})
	b.pass(25 * time.Hour)
	b.must(b.PruneAccounts(t.Context()))
	if got := names(); len(got) != 3 || got[0] != "closed" || got[1] != "late" || got[2] != "spent" {
		t.Errorf("after 30 days: %v", got)
	}

	if err := b.RemoveAccount(t.Context(), "spent", "ann"); signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("one that an agent spends: %v", err)
	}
	b.must(b.RemoveAccount(t.Context(), "closed", "ann"))
	if err := b.RemoveAccount(t.Context(), "closed", "ann"); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("one that is gone: %v", err)
	}
}

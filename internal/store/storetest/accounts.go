package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// While its account is not open, an agent claims from no queue.
func accountRules() []rule {
	return []rule{
		{"an account has the state of its last event", accountStored},
		{"an entry is written when it opens or closes", accountEntries},
		{"accounts are listed by name", accountsSorted},
		{"a removed account is unknown and does not block", accountRemoved},
		{"an account with parked tasks, or that has changed, is not removed", accountNotRemoved},
		{"hostile names and texts come back byte for byte", accountHostile},
		{"nothing is claimed for a closed or signed-out account", accountCloses},
		{"claims of other accounts, and of none, are let through", accountOthers},
		{"isolated claims are let through", accountIsolated},
		{"while an account is tried one claim at a time is let through", accountTried},
		{"of many concurrent claims one is let through", accountTriedAtOnce},
		{"the probe is reported to its claim", accountProbe},
		{"a claim that finds no task is not the probe", accountProbeNothing},
		{"a withheld slot stays the probe", accountProbeWithheld},
		{"a probe that meets the limit again closes the account", accountClosesAgain},
		{"an event of a task changes the account in the same commit", accountOfATask},
		{"a claim is held by an account or a drain, not by a queue or a slot", accountHeld},
		{"a task that runs anyway is let through when it is the first, once", accountAnyway},
		{"a task that runs anyway is not the probe", accountAnywayTried},
		{"tasks of reserved sources are passed over, unless they run anyway", accountReserved},
		{"tasks of excluded owners are passed over, by key or address", exceptOwners},
		{"a closed request only gets tasks that run anyway", closedClaim},
	}
}

// spends is the claim of an agent with one slot that spends an account.
func (b *fixture) spends(agent, account string) store.ClaimRequest {
	c := b.offer(agent)
	c.Account = account
	return c
}

// held wants a claim to find nothing because of its account, or because its agent is drained.
func (b *fixture) held(c store.ClaimRequest) {
	b.Helper()
	got, err := b.Claim(b.ctx, c)
	b.must(err)
	b.same("claim of "+c.Agent, got, store.Claimed{Held: true})
}

func (b *fixture) accountEvent(ev signalbox.AccountEvent) (signalbox.Account, bool) {
	b.Helper()
	if ev.Now.IsZero() {
		ev.Now = b.now
	}
	c, err := b.ChangeAccount(b.ctx, ev)
	b.must(err)
	b.same("stored", b.account(ev.Account), c.Account)
	return c.Account, c.Changed
}

// limit closes an account for a time.
func (b *fixture) limit(account string, d time.Duration) {
	b.Helper()
	b.accountEvent(signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: account, Until: b.now.Add(d)})
}

// told applies an event without further fields to an account, and returns the account's state.
func (b *fixture) told(account string, kind signalbox.AccountEventKind) signalbox.AccountState {
	b.Helper()
	a, _ := b.accountEvent(signalbox.AccountEvent{Kind: kind, Account: account})
	return a.State
}

// tried closes an account and lets its time pass, so that it is being tried.
func (b *fixture) tried(account string) {
	b.Helper()
	b.limit(account, time.Minute)
	b.pass(time.Minute)
	b.same("state", b.told(account, signalbox.AccountDue), signalbox.AccountTrying)
}

func (b *fixture) accounts() []signalbox.Account {
	b.Helper()
	list, err := b.Accounts(b.ctx)
	b.must(err)
	return list
}

func (b *fixture) account(name string) signalbox.Account {
	b.Helper()
	for _, a := range b.accounts() {
		if a.Name == name {
			return a
		}
	}
	b.Fatalf("there is no account %q", name)
	return signalbox.Account{}
}

func (b *fixture) removeAccount(seen signalbox.Account, want signalbox.Code) {
	b.Helper()
	err := b.RemoveAccount(b.ctx, seen, signalbox.Entry{At: b.now, Kind: signalbox.EventAccount, Account: seen.Name, Message: "removed", By: "ann"})
	b.same("removal of "+seen.Name, signalbox.CodeOf(err), want)
}

func accountRemoved(b *fixture) {
	b.limit("max", time.Hour)
	b.limit("pro", time.Hour)
	b.submit()
	c := b.offer("a")
	c.Account = "max"
	b.noClaim(c)
	b.removeAccount(b.account("max"), "")
	b.same("accounts", len(b.accounts()), 1)
	last := b.journal()[len(b.journal())-1]
	b.same("entry", last.Account+" "+last.Message+" by "+last.By, "max removed by ann")
	b.claimed(c)
	b.removeAccount(signalbox.Account{Name: "max"}, signalbox.CodeNotFound)
	b.limit("max", time.Minute) // like an account that is not known
	b.same("failures", b.account("max").Failures, 0)
}

func accountNotRemoved(b *fixture) {
	seen, _ := b.accountEvent(signalbox.AccountEvent{Kind: signalbox.AccountReported, Account: "max"})
	b.limit("max", time.Hour)
	b.removeAccount(seen, signalbox.CodeConflict)
	closed := b.account("max")
	parked := b.parks("a", closedMax)
	entries := len(b.journal())
	b.removeAccount(closed, signalbox.CodeConflict)
	b.same("entries", len(b.journal()), entries)
	b.happen(parked.ID, signalbox.Event{Kind: signalbox.EventCancel})
	b.removeAccount(closed, "")
	b.same("accounts", len(b.accounts()), 0)
}

func accountStored(b *fixture) {
	ev := signalbox.AccountEvent{
		Kind: signalbox.AccountLimit, Account: "max", Now: b.now, Until: b.now.Add(time.Hour), Jitter: 1500 * time.Microsecond,
		Window: "five_hour", Reason: "limit reached", Source: "event", Of: "claude", Login: "ann@example.com",
		Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 100.0 / 3, ResetsAt: b.now.Add(time.Hour)}, {Name: "seven_day"}},
	}
	a, changed := b.accountEvent(ev)
	want := signalbox.Account{
		Name: "max", Kind: "claude", Login: "ann@example.com", State: signalbox.AccountClosed, Reason: "limit reached", Window: "five_hour", Source: "event",
		Since: b.now, Until: b.now.Add(time.Hour + time.Millisecond), HeardAt: b.now,
		Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 33.333, ResetsAt: b.now.Add(time.Hour)}, {Name: "seven_day"}},
	}
	b.same("account, to the millisecond and a thousandth of a percent", a, want)
	b.same("changed", changed, true)
	b.pass(time.Second)
	a, changed = b.accountEvent(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "max", Source: "ann"})
	want.State, want.Since, want.Until, want.Reason, want.Window, want.Source = signalbox.AccountOpen, b.now, time.Time{}, "", "", "ann"
	b.same("account", a, want)
	b.same("changed", changed, true)
}

func accountEntries(b *fixture) {
	windows := []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 50}}
	for n, c := range []struct {
		ev    signalbox.AccountEvent
		entry string
	}{
		{signalbox.AccountEvent{Kind: signalbox.AccountReported, Windows: windows}, ""},
		{signalbox.AccountEvent{Kind: signalbox.AccountAnswered}, ""},
		{signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Source: "ann", Reason: "holidays"}, "account max is closed until someone opens it (holidays)"},
		{signalbox.AccountEvent{Kind: signalbox.AccountLimit, Until: b.now.Add(time.Hour)}, ""},
		{signalbox.AccountEvent{Kind: signalbox.AccountReported, Windows: windows}, ""},
		{signalbox.AccountEvent{Kind: signalbox.AccountOpened, Source: "ann"}, "account max is open"},
		{signalbox.AccountEvent{Kind: signalbox.AccountRefused, Source: "text"}, "account max is signed out: a person must log in"},
		{signalbox.AccountEvent{Kind: signalbox.AccountRefused, Source: "text"}, ""},
	} {
		before := len(b.journal())
		c.ev.Account = "max"
		_, changed := b.accountEvent(c.ev)
		log := b.journal()[before:]
		if changed != (c.entry != "") || len(log) != btoi(changed) {
			b.Fatalf("event %d: changed %v, with the entries %+v", n, changed, log)
		}
		if changed {
			b.same("entry", log[0], signalbox.Entry{Seq: int64(before + 1), At: b.now, Kind: signalbox.EventAccount, Account: "max", Message: c.entry, By: c.ev.By()})
		}
	}
	b.same("windows", b.account("max").Windows, windows)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func accountsSorted(b *fixture) {
	for _, name := range []string{"pro", "max", "Max", "max.1"} {
		b.told(name, signalbox.AccountOpened)
	}
	var names []string
	for _, a := range b.accounts() {
		names = append(names, a.Name)
	}
	b.same("names, byte by byte", names, []string{"Max", "max", "max.1", "pro"})
}

func accountHostile(b *fixture) {
	for n, h := range hostile() {
		b.accountEvent(signalbox.AccountEvent{
			Kind: signalbox.AccountRefused, Account: h, Reason: h, Source: h, Of: h, Login: h, Windows: []signalbox.AccountWindow{{Name: h}},
		})
		got := b.account(h)
		b.same("account", [6]string{got.Name, got.Reason, got.Source, got.Kind, got.Login, got.Windows[0].Name}, [6]string{h, h, h, h, h, h})
		b.same("entry", b.journal()[n].Account, h)
		b.held(b.spends("a", h))
	}
	b.same("accounts", len(b.accounts()), len(hostile()))
}

func accountCloses(b *fixture) {
	b.submits(2)
	b.claimed(b.spends("a", "max")) // an unknown account is not closed
	b.limit("max", time.Hour)
	b.pass(2 * time.Hour)
	b.held(b.spends("b", "max")) // its time is over only after AccountDue
	b.told("max", signalbox.AccountOpened)
	b.same("claimed", b.claimed(b.spends("b", "max")).ID, id(2))
	b.submits(1)
	b.told("max", signalbox.AccountRefused)
	b.held(b.spends("c", "max"))
	b.finish(id(1)) // running tasks continue
	b.told("max", signalbox.AccountAnswered)
	b.claimed(b.spends("c", "max"))
}

func accountOthers(b *fixture) {
	b.submits(4)
	b.limit("max", time.Hour)
	b.held(b.spends("a", "max"))
	b.claimed(b.spends("b", "pro"))
	b.claimed(b.spends("c", ""))
	b.told("pro", signalbox.AccountOpened)
	b.claimed(b.spends("d", "pro"))
	b.held(b.spends("a", "max"))
}

func accountIsolated(b *fixture) {
	b.limit("max", time.Hour)
	b.submit(inQueue("bypass:a"))
	c := b.apart("a", 1)
	c.Account = "max"
	b.claimed(c)
}

func accountTried(b *fixture) {
	b.submits(6)
	running := b.claimed(b.spends("z", "max")) // claimed before the limit
	b.tried("max")
	first := b.claimed(b.spends("a", "max"))
	b.same("the first", first.ID, id(2))
	for _, agent := range []string{"b", "a"} {
		c := b.spends(agent, "max")
		c.Slots = 3
		b.held(c)
	}
	b.finish(running.ID) // another slot than that of the probe
	b.held(b.spends("z", "max"))
	b.accept(first.ID)
	b.held(b.spends("b", "max"))
	b.finish(first.ID) // and nothing was heard of the provider
	b.same("the next", b.claimed(b.spends("b", "max")).ID, id(3))
	b.held(b.spends("a", "max"))
	b.told("max", signalbox.AccountAnswered)
	b.claimed(b.spends("a", "max"))
	b.claimed(b.spends("c", "max"))
}

func accountTriedAtOnce(b *fixture) {
	b.submits(32)
	b.tried("max")
	for range 4 {
		got := make([]store.Claimed, 8)
		for _, err := range together(8, func(n int) (err error) {
			got[n], err = b.Claim(b.ctx, b.spends(string(rune('a'+n)), "max"))
			return err
		}) {
			b.must(err)
		}
		first := ""
		for _, c := range got {
			if c.Found == c.Held || (c.Found && first != "") {
				b.Fatalf("of eight claims at once, these were let through: %+v", got)
			}
			if c.Found {
				first = c.Task.ID
			}
		}
		b.finish(first)
	}
}

func accountProbe(b *fixture) {
	b.submits(3)
	b.claim("a")
	c := b.spends("a", "max")
	c.Slots = 3
	b.told("max", signalbox.AccountOpened)
	b.claimed(c)
	b.same("while it is open", b.account("max").Probe, signalbox.AccountProbe{})
	b.tried("max")
	before := len(b.journal())
	t := b.claimed(c)
	b.same("goes first", b.account("max").Probe, signalbox.AccountProbe{Agent: "a", Slot: 2, Fence: t.Fence})
	b.same("entries", kinds(b.journal()[before:]), []signalbox.EventKind{"claim"})
	b.same("windows are told of it, too", b.told("max", signalbox.AccountReported), signalbox.AccountTrying)
	b.same("goes first", b.account("max").Probe.Fence, t.Fence)
}

func accountProbeNothing(b *fixture) {
	b.tried("max")
	b.noClaim(b.spends("a", "max"))
	b.submit()
	b.claimed(b.spends("b", "max"))
	b.held(b.spends("a", "max"))
}

func accountProbeWithheld(b *fixture) {
	b.submits(2)
	b.tried("max")
	t := b.claimed(b.spends("a", "max"))
	b.accept(t.ID)
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	b.held(b.spends("b", "max"))
	b.same("freed", b.freeSlot("a", t.Slot, t.Fence), true)
	b.claimed(b.spends("b", "max"))
}

func accountClosesAgain(b *fixture) {
	b.submits(2)
	b.tried("max")
	t := b.claimed(b.spends("a", "max"))
	b.happen(t.ID, signalbox.Event{
		Kind: signalbox.EventPark, Parking: &signalbox.Parking{Gate: closedMax},
		Account: &signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max", Now: b.now},
	})
	b.same("account", b.account("max").State, signalbox.AccountClosed)
	b.held(b.spends("a", "max"))
	b.pass(time.Hour)
	b.told("max", signalbox.AccountDue)
	b.same("the first", b.claimed(b.spends("a", "max")).ID, t.ID)
	b.held(b.spends("b", "max"))
}

func accountOfATask(b *fixture) {
	b.submits(2)
	b.tried("max")
	t := b.claimed(b.spends("a", "max"))
	b.happen(t.ID, signalbox.Event{Kind: signalbox.EventAccept, Account: &signalbox.AccountEvent{Kind: signalbox.AccountAnswered, Account: "max", Now: b.now, Of: "claude"}})
	b.same("account", [2]any{b.account("max").State, b.account("max").Kind}, [2]any{signalbox.AccountOpen, "claude"})
	b.same("accounts", len(b.accounts()), 1)
	b.claimed(b.spends("b", "max"))
	b.happen(t.ID, signalbox.Event{
		Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted,
		Account: &signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max", Now: b.now},
	})
	b.same("account", b.account("max").State, signalbox.AccountClosed)
}

func accountHeld(b *fixture) {
	b.noClaim(b.spends("a", "max"))
	told := func(what string, c store.ClaimRequest, want bool) {
		b.Helper()
		got, err := b.Claim(b.ctx, c)
		b.must(err)
		b.same(what, got, store.Claimed{Held: want})
	}
	told("nothing waits", b.spends("a", "max"), false)
	b.submits(2)
	b.pause(signalbox.Pause{Queue: "work"})
	told("the queue is paused", b.spends("a", "max"), false)
	b.pause(signalbox.Pause{Queue: "agent:a"})
	told("the agent is drained", b.spends("a", "max"), true)
	b.resume("work")
	b.resume("agent:a")
	b.claimed(b.spends("a", "max"))
	told("no slot is free", b.spends("a", "max"), false)
	b.limit("max", time.Hour)
	told("no slot is free, and the account is closed", b.spends("a", "max"), false)
	b.finish(id(1))
	told("the account is closed", b.spends("a", "max"), true)
}

// anyway lets a task run although its account is not open.
func (b *fixture) anyway(id string) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventUnpark, IgnoreGates: true, By: "ann"})
}

func accountAnyway(b *fixture) {
	parked := b.parks("a", closedMax)
	b.submits(2)
	b.limit("max", time.Hour)
	b.held(b.spends("a", "max"))
	b.same("anyway", [2]bool{b.anyway(id(3)).IgnoreGates, b.task(id(3)).IgnoreGates}, [2]bool{true, true})
	t := b.claimed(b.spends("a", "max"))
	b.same("claimed", [2]any{t.ID, t.IgnoreGates}, [2]any{id(3), true})
	b.finish(t.ID)
	b.held(b.spends("a", "max"))
	b.anyway(parked.ID)
	b.same("parked", b.parked("", ""), []string(nil))
	b.same("claimed", b.claimed(b.spends("a", "max")).ID, parked.ID)
	b.parkAt(parked.ID, closedMax)
	b.unpark(parked.ID)
	b.held(b.spends("a", "max"))
	b.anyway(parked.ID)
	b.pause(signalbox.Pause{Queue: "agent:a"})
	b.held(b.spends("a", "max")) // it is drained
}

func accountAnywayTried(b *fixture) {
	b.submits(3)
	b.tried("max")
	first := b.claimed(b.spends("a", "max"))
	b.anyway(id(3))
	b.same("claimed", b.claimed(b.spends("b", "max")).ID, id(3))
	b.same("goes first", b.account("max").Probe.Fence, first.Fence)
	b.finish(first.ID)
	b.same("claimed", b.claimed(b.spends("c", "max")).ID, id(2))
	b.held(b.spends("a", "max"))
}

func accountReserved(b *fixture) {
	b.submits(3, bySchedule("nightly"))
	b.submit(inQueue("agent:a"))
	b.submit()
	c := b.offerSlots("a", 5)
	c.Except.Sources = []signalbox.Source{signalbox.SourceScheduler, signalbox.SourceWeb}
	b.same("claimed", b.claimed(c).ID, id(4))
	b.same("claimed", b.claimed(c).ID, id(5))
	b.noClaim(c)
	b.anyway(id(2))
	b.same("claimed", b.claimed(c).ID, id(2))
	b.noClaim(c)
	c.Except.Sources = nil
	b.same("claimed", b.claimed(c).ID, id(1))
}

func exceptOwners(b *fixture) {
	b.submit(ofOwner("ann"))
	b.submit(ofOwner("bob"), func(s *store.Submission) { s.Task.OwnerEmail = "bob@example.org" })
	b.submit()
	b.submit(ofOwner("ann"))
	c := b.offerSlots("a", 5)
	c.Except.Owners = []string{"user:ann", "bob@example.org", ""}
	b.same("claimed", b.claimed(c).ID, id(3))
	b.noClaim(c)
	b.anyway(id(4))
	b.same("claimed", b.claimed(c).ID, id(4))
	c.Except.Owners = []string{"user:bob"}
	b.same("claimed", b.claimed(c).ID, id(1))
	b.noClaim(c)
}

func closedClaim(b *fixture) {
	b.submits(2)
	c := b.spends("a", "max")
	c.Closed = true
	b.held(c)
	b.tried("max")
	b.anyway(id(2))
	b.same("claimed", b.claimed(c).ID, id(2))
	b.same("goes first", b.account("max").Probe.Fence, int64(0))
	isolated := b.offerSlots("b", 1)
	isolated.Closed = true
	b.held(isolated)
	isolated.Closed = false
	b.same("claimed", b.claimed(isolated).ID, id(1))
}

package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func errorRules() []rule {
	return []rule{
		{"a verb with an ended context does nothing", errorCancelled},
		{"a verb after the close is refused with a code", errorClosed},
		{"refusals say what to do", errorWords},
	}
}

// verbs are all methods of a store that can fail.
func verbs(b *fixture) map[string]func(context.Context) error {
	t := b.submit(keyed("k", "h"), waitUntil(b.now), notBefore(b.now))
	b.put(anAgent("idle"))
	b.pause(signalbox.Pause{Queue: "pool:k"})
	b.plan(aSchedule("old"), opened("o", start))
	sub, cancel := b.submission(), b.change(t, signalbox.Event{Kind: signalbox.EventCancel})
	offer, now, e := b.offer("a"), b.now, signalbox.Entry{At: b.now}
	shut := signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "max", Now: b.now}
	tickets := b.step("q")
	tickets.Enter = calls("q", "c1")
	return map[string]func(context.Context) error{
		"Submit":        func(ctx context.Context) error { return second(b.Submit(ctx, sub)) },
		"Claim":         func(ctx context.Context) error { return second(b.Claim(ctx, offer)) },
		"Apply":         func(ctx context.Context) error { return second(b.Apply(ctx, cancel, now)) },
		"Renew":         func(ctx context.Context) error { return second(b.Renew(ctx, []store.Lease{{Agent: "a", Fence: 1}})) },
		"FreeSlot":      func(ctx context.Context) error { return second(b.FreeSlot(ctx, "a", 0, 1)) },
		"Wake":          func(ctx context.Context) error { _, _, err := b.Wake(ctx, now, 1); return err },
		"PutAgent":      func(ctx context.Context) error { return b.PutAgent(ctx, anAgent("a"), e) },
		"RemoveAgent":   func(ctx context.Context) error { return b.RemoveAgent(ctx, "idle", e) },
		"SetPause":      func(ctx context.Context) error { return b.SetPause(ctx, signalbox.Pause{Queue: "work"}, e) },
		"ChangeAccount": func(ctx context.Context) error { _, err := b.ChangeAccount(ctx, shut); return err },
		"RemoveAccount": func(ctx context.Context) error { return b.RemoveAccount(ctx, signalbox.Account{Name: "max"}, e) },
		"Accounts":      func(ctx context.Context) error { return second(b.Accounts(ctx)) },
		"Holds":         func(ctx context.Context) error { return second(b.Holds(ctx)) },
		"Landings":      func(ctx context.Context) error { return second(b.Landings(ctx)) },
		"Parked":        func(ctx context.Context) error { return second(b.Parked(ctx, "", "")) },
		"Resume":        func(ctx context.Context) error { return second(b.Resume(ctx, "pool:k", e)) },
		"Note":          func(ctx context.Context) error { return b.Note(ctx, e) },
		"Prune": func(ctx context.Context) error {
			return second(b.Prune(ctx, store.Pruning{Ended: now.Add(time.Hour), Limit: 1}))
		},
		"PutSession":   func(ctx context.Context) error { return b.PutSession(ctx, signalbox.Session{}, aSession("s"), e) },
		"KeepStale":    func(ctx context.Context) error { return b.KeepStale(ctx, t.ID, aStale(1)) },
		"RestoreUsage": func(ctx context.Context) error { return b.RestoreUsage(ctx, aUsage("a")) },
		"Usage":        func(ctx context.Context) error { return second(b.Usage(ctx, everyUsage)) },
		"PutToken":     func(ctx context.Context) error { return b.PutToken(ctx, aToken("t")) },
		"DeleteToken":  func(ctx context.Context) error { return second(b.DeleteToken(ctx, "t")) },
		"PutUser":      func(ctx context.Context) error { return b.PutUser(ctx, aUser("u")) },
		"DeleteUser":   func(ctx context.Context) error { return second(b.DeleteUser(ctx, "u")) },
		"AppendAudit":  func(ctx context.Context) error { return second(b.AppendAudit(ctx, anAudit(1))) },
		"PutSchedule": func(ctx context.Context) error {
			return second(b.PutSchedule(ctx, aSchedule("new"), nil, signalbox.Entry{At: now, Kind: signalbox.EventScheduleChanged}))
		},
		"DeleteSchedule": func(ctx context.Context) error { return second(b.DeleteSchedule(ctx, "sched-old", e)) },
		"Schedules":      func(ctx context.Context) error { return second(b.Schedules(ctx)) },
		"Schedule":       func(ctx context.Context) error { return second(b.Schedule(ctx, "sched-old")) },
		"ScheduleRuns":   func(ctx context.Context) error { return second(b.ScheduleRuns(ctx, "sched-old", 1)) },
		"OpenRuns":       func(ctx context.Context) error { return second(b.OpenRuns(ctx)) },
		"Snapshot":       func(ctx context.Context) error { return second(b.Snapshot(ctx, 1)) },
		"Task":           func(ctx context.Context) error { return second(b.Task(ctx, t.ID)) },
		"Request":        func(ctx context.Context) error { return second(b.Request(ctx, t.ID)) },
		"Result":         func(ctx context.Context) error { return second(b.Result(ctx, t.ID)) },
		"Find":           func(ctx context.Context) error { return second(b.Find(ctx, t.ID, 1)) },
		"Position":       func(ctx context.Context) error { return second(b.Position(ctx, t.ID)) },
		"Tasks":          func(ctx context.Context) error { return second(b.Tasks(ctx, []string{t.ID})) },
		"Counts":         func(ctx context.Context) error { return second(b.Counts(ctx)) },
		"Lengths":        func(ctx context.Context) error { return second(b.Lengths(ctx, "work")) },
		"Waiting":        func(ctx context.Context) error { return second(b.Waiting(ctx, "", store.Cursor{}, 1)) },
		"InFlight":       func(ctx context.Context) error { return second(b.InFlight(ctx)) },
		"Overdue":        func(ctx context.Context) error { return second(b.Overdue(ctx, now, 1)) },
		"SessionTasks":   func(ctx context.Context) error { return second(b.SessionTasks(ctx, "s", 1)) },
		"History":        func(ctx context.Context) error { return second(b.History(ctx, store.HistoryQuery{Limit: 1})) },
		"ByKey":          func(ctx context.Context) error { return second(b.ByKey(ctx, "k")) },
		"Kept":           func(ctx context.Context) error { return second(b.Kept(ctx)) },
		"Durations":      func(ctx context.Context) error { return second(b.Durations(ctx, "a", 1)) },
		"Agents":         func(ctx context.Context) error { return second(b.Agents(ctx)) },
		"Slots":          func(ctx context.Context) error { return second(b.Slots(ctx)) },
		"Pauses":         func(ctx context.Context) error { return second(b.Pauses(ctx)) },
		"Session":        func(ctx context.Context) error { return second(b.Session(ctx, "s")) },
		"Sessions":       func(ctx context.Context) error { return second(b.Sessions(ctx, store.SessionQuery{Limit: 1})) },
		"Children":       func(ctx context.Context) error { return second(b.Children(ctx, t.ID, 1)) },
		"Whole":          func(ctx context.Context) error { return second(b.Whole(ctx, t.ID)) },
		"Stales":         func(ctx context.Context) error { return second(b.Stales(ctx, t.ID)) },
		"Tokens":         func(ctx context.Context) error { return second(b.Tokens(ctx)) },
		"Users":          func(ctx context.Context) error { return second(b.Users(ctx)) },
		"AuditLog":       func(ctx context.Context) error { return second(b.AuditLog(ctx, store.AuditQuery{Limit: 1})) },
		"AuditHead":      func(ctx context.Context) error { return second(b.AuditHead(ctx)) },
		"Journal":        func(ctx context.Context) error { return second(b.Journal(ctx, 0, 1)) },
		"Beat": func(ctx context.Context) error {
			return second(b.Beat(ctx, store.Beat{Director: b.director("x"), Take: []string{"a"}, Now: now}))
		},
		"Tickets":      func(ctx context.Context) error { return second(b.Tickets(ctx, tickets)) },
		"Directors":    func(ctx context.Context) error { return second(b.Directors(ctx)) },
		"Holders":      func(ctx context.Context) error { return second(b.Holders(ctx)) },
		"JournalRange": func(ctx context.Context) error { _, _, err := b.JournalRange(ctx); return err },
	}
}

func errorCancelled(b *fixture) {
	calls := verbs(b)
	before := everything(b)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range calls {
		err := call(gone)
		if !errors.Is(err, context.Canceled) {
			b.Errorf("%s: got %v, want an error that is context.Canceled", name, err)
		}
		wantCode(b, name, err)
	}
	b.same("what is stored", everything(b), before)
}

func errorClosed(b *fixture) {
	calls := verbs(b)
	b.must(b.Close())
	for name, call := range calls {
		wantCode(b, name, call(context.Background()))
	}
	b.Store = nil // nothing to check at the end of the case
}

func wantCode(b *fixture, name string, err error) {
	if code := signalbox.CodeOf(err); code == "" || code == signalbox.CodeInternal {
		b.Errorf("%s: got error %v with code %q, want one with a code of its own", name, err, code)
	}
}

// everything is what a refused verb must not change.
func everything(b *fixture) []any {
	b.Helper()
	counts, err := b.Counts(b.ctx)
	b.must(err)
	return []any{
		counts, b.waiting("", store.Cursor{}, 100), b.slots(), b.agents(), b.accounts(), b.pauses(), b.journal(),
		b.history(store.HistoryQuery{Limit: 100}), b.sessions(store.SessionQuery{Limit: 100}), b.tokens(), b.users(),
		b.auditLog(store.AuditQuery{Limit: 100}), b.schedules(), b.openRuns(), b.directors(), b.tickets("q"),
	}
}

func errorWords(b *fixture) {
	b.submit(keyed("k", "h"))
	_, full := b.Submit(b.ctx, b.submission(capped("work", 1)))
	_, used := b.Submit(b.ctx, b.submission(keyed("k", "H")))
	_, unknown := b.Task(b.ctx, "queue-x")
	for _, err := range []error{full, used, unknown, b.remove("x")} {
		var e *signalbox.Error
		if !errors.As(err, &e) || e.Message == "" {
			b.Errorf("%v is no error with a message", err)
		}
	}
}

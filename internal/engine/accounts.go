package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// spreadOver is how long agents are told, after the claims of an account were spread, that they no longer
// are. It is more than the second between two calls of OpenGates plus what a clock may step back.
const spreadOver = 5 * time.Second

// answeredFor bounds the attempt to open an account.
const answeredFor = 5 * time.Second

// limitJitter is the longest delay of the first request after the reset of a limit.
const limitJitter = time.Second

// meet returns how a run that met a limit of its provider is parked, nil if it cannot be continued, and the
// event for its account.
func (e *Engine) meet(t *signalbox.Task, o Outcome) (*signalbox.Parking, *signalbox.AccountEvent) {
	park, closed := accounts.Park(t, o.Account.Name, o.Limit, e.Now(), max(0, e.Jitter(limitJitter*5/2)-limitJitter*2))
	if closed != nil {
		closed.Of, closed.Login, closed.Windows = o.Account.Kind, o.Account.Login, o.Account.Windows
	}
	if signalbox.Isolated(t.Slot) { // it has no conversation to continue, and its caller waits
		return nil, closed
	}
	return park, closed
}

// ReportAccount records what an agent reports about its account.
func (e *Engine) ReportAccount(ctx context.Context, agent string, n accounts.News) error {
	if ev, ok := e.accounts.Report(agent, n, e.Now()); ok {
		_, err := e.ChangeAccount(ctx, ev)
		return err
	}
	return nil
}

// ChangeAccount applies an event to an account.
func (e *Engine) ChangeAccount(ctx context.Context, ev signalbox.AccountEvent) (signalbox.Account, error) {
	ev.Now = e.Now()
	c, err := e.store.ChangeAccount(ctx, ev)
	if err != nil {
		return c.Account, err
	}
	e.accounts.Note(c.Account)
	for _, t := range c.Unparked {
		e.Publish(Applied{From: signalbox.Parked, Task: t, Kind: signalbox.EventUnpark})
	}
	if c.Changed {
		e.accountChanged(c.Account.Name)
	}
	return c.Account, nil
}

// SetAccount applies an event by a person to a known account.
//
// Errors: CodeNotFound; CodeValidation.
func (e *Engine) SetAccount(ctx context.Context, ev signalbox.AccountEvent) (after, before signalbox.Account, err error) {
	before, err = e.knownAccount(ctx, ev.Account)
	if err != nil {
		return after, before, err
	}
	now := e.Now()
	err = cmp.Or(
		signalbox.InvalidIf(len(ev.Reason) > signalbox.MaxGateText || !signalbox.Printable(ev.Reason), "reason", "reason must be one printable line of at most %d bytes", signalbox.MaxGateText),
		signalbox.InvalidIf(!ev.Until.IsZero() && !ev.Until.After(now), "until", "until lies in the past"),
		signalbox.InvalidIf(ev.Until.After(now.AddDate(0, 0, 366)), "until", "until lies more than 366 days ahead: leave it out to close it until someone opens it"),
	)
	if err == nil {
		after, err = e.ChangeAccount(ctx, ev)
	}
	return after, before, err
}

func (e *Engine) knownAccount(ctx context.Context, name string) (signalbox.Account, error) {
	list, err := e.Accounts(ctx)
	if i := slices.IndexFunc(list, func(a signalbox.Account) bool { return a.Name == name }); i >= 0 {
		return list[i], nil
	}
	return signalbox.Account{}, cmp.Or(err, store.NoAccount(name))
}

// RemoveAccount forgets an account that no agent spends any more.
//
// Errors: CodeNotFound; CodeConflict while a known agent spends it, or tasks are parked at it.
func (e *Engine) RemoveAccount(ctx context.Context, name, by string) error {
	a, err := e.knownAccount(ctx, name)
	if err == nil {
		err = e.removeAccount(ctx, &a, by)
	}
	return err
}

func (e *Engine) removeAccount(ctx context.Context, a *signalbox.Account, by string) error {
	for _, live := range e.LiveAgents() {
		if live.Account == a.Name {
			return signalbox.Errorf(signalbox.CodeConflict, "agent %s spends account %q: it would come back; stop the agent and remove it first, or give it another account", live.Name, a.Name)
		}
	}
	err := e.store.RemoveAccount(ctx, *a, signalbox.Entry{At: e.Now(), Kind: signalbox.EventAccount, Account: a.Name, Message: "account " + a.Name + " is removed", By: by})
	if err == nil {
		e.accountStale(ctx, a.Name)
	}
	return err
}

// accountKept is how long an open account is kept without news about it.
const accountKept = 30 * 24 * time.Hour

// PruneAccounts removes accounts that are open, that no agent spends, that nothing waits for, and about which
// nothing was heard for 30 days.
func (e *Engine) PruneAccounts(ctx context.Context) error {
	list, err := e.Accounts(ctx)
	for i := range list {
		a, limit := &list[i], e.Now().Add(-accountKept)
		if a.State != signalbox.AccountOpen || a.HeardAt.After(limit) || a.Since.After(limit) {
			continue
		}
		if err := e.removeAccount(ctx, a, ""); err != nil && signalbox.CodeOf(err) != signalbox.CodeConflict && signalbox.CodeOf(err) != signalbox.CodeNotFound {
			return err
		}
	}
	return err
}

// answered opens an account that was being tried, after a run of it has completed. It is a change of its own, whatever
// else the commit of the run's end may contain.
func (e *Engine) answered(account string) {
	ctx, cancel := context.WithTimeout(context.Background(), answeredFor)
	defer cancel()
	if _, err := e.ChangeAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountAnswered, Account: account}); err != nil {
		e.log.Warn("an account is not opened: another run tries it", "account", account, "error", err)
	}
}

// accountStale re-reads an account that was changed together with a task.
func (e *Engine) accountStale(ctx context.Context, name string) {
	if _, err := e.Accounts(ctx); err == nil {
		e.accountChanged(name)
	}
}

// accountChanged notifies observers, so that agents whose claims found nothing try again.
func (e *Engine) accountChanged(name string) {
	e.hub.publish(&Applied{Kind: signalbox.EventAccount, Account: name})
}

// Accounts returns all accounts.
func (e *Engine) Accounts(ctx context.Context) ([]signalbox.Account, error) {
	return e.accounts.Refresh(ctx, e.store)
}

// KnownAccounts returns all accounts by name, as last read or changed here: at most about a second old.
func (e *Engine) KnownAccounts() []signalbox.Account { return e.accounts.All() }

// OpenGates starts to try accounts whose time is over, and requeues tasks whose parking time is over. It is
// called every second.
func (e *Engine) OpenGates(ctx context.Context) error {
	parked, err := e.store.Parked(ctx, "", "") // before the accounts, so that none of them was closed since
	if err != nil {
		return err
	}
	list, err := e.Accounts(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		switch a := &list[i]; {
		case a.Due(e.Now()):
			if _, err = e.ChangeAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountDue, Account: a.Name}); err != nil {
				return err
			}
		case a.State == signalbox.AccountTrying && a.Probe.Fence != 0 && !e.probing(ctx, a) && e.accounts.ProbeEnded(a.Name, a.Probe.Fence), // it ended without saying anything: another task probes the account
			a.Spreading(e.Now()), a.Spreading(e.Now().Add(-spreadOver)), a.Spreading(e.Now().Add(spreadOver)),
			e.accounts.ReserveChanged(a.Name, e.opts.Reserve[a.Name], e.Now()):
			e.accountChanged(a.Name)
		}
	}
	_, err = e.tryAll(ctx, e.accounts.Opens(parked, e.Now()), signalbox.Event{Kind: signalbox.EventUnpark})
	return err
}

// probing reports whether the claim that tries an account still has its slot.
func (e *Engine) probing(ctx context.Context, a *signalbox.Account) bool {
	slots, err := e.store.Slots(ctx)
	return err != nil || slices.ContainsFunc(slots, func(s signalbox.Slot) bool { return s.Agent == a.Probe.Agent && s.Fence == a.Probe.Fence })
}

// WaitsAt returns the gate of a task that is parked, or that waits because no connected agent that serves its
// queue may claim it: each agent, or its account, is closed. It is nil if the task waits for neither. Its
// Text is the whole sentence, with the current times.
func (e *Engine) WaitsAt(t *signalbox.Task) *signalbox.ClosedGate {
	if t.State == signalbox.Parked {
		g := signalbox.ClosedGate{Gate: t.Parking.Gate, Since: t.Parking.At}
		g.Text = g.String()
		if a := e.accounts.Blocked(g.Name); a != nil { // else this director does not know yet that it is blocked
			g.Text, g.Until = a.String(), a.Until
		}
		return &g
	}
	if _, bypass := signalbox.QueueBypass(t.Queue); t.State != signalbox.Pending || bypass {
		return nil
	}
	var first *signalbox.ClosedGate // the one that opens first
	for _, a := range e.LiveAgents() {
		if !a.Up || !a.Serves(t.Queue) {
			continue
		}
		g := e.keeps(t, &a)
		if g == nil {
			return nil
		}
		if first == nil || !g.Until.IsZero() && (first.Until.IsZero() || g.Until.Before(first.Until)) {
			first = g
		}
	}
	return first
}

// keeps returns the gate that keeps an agent from claiming a task; nil if there is none.
func (e *Engine) keeps(t *signalbox.Task, a *LiveAgent) *signalbox.ClosedGate {
	if g := e.budgets.HoldingGate(t, a.Name, a.Account, e.Now()); g != nil {
		return g
	}
	if !t.IgnoreGates {
		if g := e.accounts.HoldingGate(t, a.Account, e.opts.Reserve[a.Account], e.Now()); g != nil {
			return g
		}
	}
	if a.Closed == nil {
		return nil
	}
	g := *a.Closed
	g.Text = g.String()
	return &g
}

// QueueWaitsAt returns the gate at which people's tasks wait in a queue; zero if there is none.
func (e *Engine) QueueWaitsAt(queue string) (at signalbox.GateRef) {
	if w := e.WaitsAt(&signalbox.Task{State: signalbox.Pending, Queue: queue}); w != nil {
		at = w.Ref()
	}
	return at
}

// gateClosed is open unless the task waits because of its agents or their account.
func (e *Engine) gateClosed(t *signalbox.Task) Gate {
	w := e.WaitsAt(t)
	switch {
	case w == nil, w.Kind == signalbox.GateBudget:
		return Gate{Name: "account_open", OK: true, Text: "Its agents' account is open", Detail: "no limit of a provider keeps it"}
	case w.Kind == signalbox.GateAgent:
		return Gate{Name: "agent_open", Text: upperFirst(w.Text), Agent: w.Name, Cure: upperFirst(AgentCure) + ".",
			Detail: "an agent that fails through its own fault gets no tasks for a while, then one to try it"}
	}
	g := Gate{Name: "account_open", Text: upperFirst(w.Text), Cure: e.accounts.Cure(w.Name, t.ID)}
	if reason := e.accounts.Get(w.Name).Reason; !strings.Contains(g.Text, reason) {
		g.Detail = reason
	}
	return g
}

// AgentCure is what a person can do about a closed agent.
const AgentCure = "look at its host and its log; it opens again by itself once it takes a task"

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Unpark lets a task run although the account of its agent is not open or a budget is used up. The task is
// parked, or waits for one of these. It becomes the first of its queue.
//
// Errors: CodeNotFound; CodeConflict if it does not wait; CodeAlreadyEnded.
func (e *Engine) Unpark(ctx context.Context, id, by string) (signalbox.Task, error) {
	return e.apply(ctx, id, nil, signalbox.Event{Kind: signalbox.EventUnpark, IgnoreGates: true, By: by})
}

// withoutParked is the position of a task without the parked ones before it, which no agent claims.
func (e *Engine) withoutParked(ctx context.Context, t *signalbox.Task, pos store.Position) (store.Position, error) {
	parked, err := e.store.Parked(ctx, "", "")
	for i := range parked {
		if p := &parked[i]; p.Queue == t.Queue && pos.N > 1 && store.CursorOf(p).Before(store.CursorOf(t)) {
			pos.N--
		}
	}
	return pos, err
}

package sim

import (
	"context"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// What the runs of agents spend: logins at a provider, with limits that are met and reset.

// login is an account from the provider's side. Agents share it.
type login struct {
	name    string
	resets  time.Time // no requests are accepted before; by the provider's clock
	told    bool      // its answers report that time
	refused bool      // until a person logs in
}

// parking is how a run was parked, to compare how it continues.
type parking struct {
	agent, session string
	began          bool
}

// setUpLogins makes the agents' logins: a and c share one; b, of the seed, reports none.
func (w *world) setUpLogins() {
	w.logins = []*login{{name: "max"}, {name: "pro"}}
	for _, a := range w.agents {
		switch a.name {
		case "a", "c":
			a.login = w.logins[0]
		case "p":
			a.login = w.logins[w.rng.IntN(2)]
		}
	}
}

// providerEvent is something that happens at the provider, or an action of a person.
func (w *world) providerEvent() {
	l := w.logins[w.rng.IntN(len(w.logins))]
	switch {
	case l.refused && w.oneIn(2):
		w.note("login", l.name, "is accepted again")
		l.refused = false
		if w.oneIn(2) { // else the agent reports that it was answered
			w.setAccount(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: l.name})
		}
	case w.oneIn(6):
		w.onTask("unpark", func(ctx context.Context, d *director, id string) error {
			_, err := d.engine.Unpark(ctx, id, "tester")
			return err
		})
	case w.oneIn(6):
		w.note("login", l.name, "is refused")
		l.refused = true
		w.meetSoon(l)
	case w.oneIn(5):
		w.setAccount(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: l.name})
	case w.oneIn(5):
		ev := signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: l.name, Reason: "by hand"}
		if w.oneIn(2) {
			ev.Until = w.wall().Add(w.between(time.Second, time.Minute))
		}
		w.setAccount(ev)
	default:
		l.resets, l.told = w.now().Add(w.between(time.Second, 90*time.Second)), !w.oneIn(4)
		w.note("login", l.name, "is used up until", l.resets.Sub(w.begun).String())
		w.meetSoon(l)
	}
}

// meetSoon makes about half of the runs of a login send a request to the provider at once.
func (w *world) meetSoon(l *login) {
	for _, a := range w.agents {
		for _, e := range a.live() {
			if a.login == l && w.oneIn(2) {
				e.until = minTime(e.until, w.now().Add(w.between(time.Millisecond, time.Second)))
			}
		}
		a.change()
	}
}

// setAccount makes a person open or close an account. It may be unknown yet.
func (w *world) setAccount(ev signalbox.AccountEvent) {
	ev.Source = "tester"
	w.onDirector(string(ev.Kind)+" account "+ev.Account, func(ctx context.Context, d *director) { _, _, _ = d.engine.SetAccount(ctx, ev) })
}

// settleLogins ends states that only a person ends, or that last longer than a history.
func (w *world) settleLogins() {
	if w.users > 0 {
		return
	}
	for _, l := range w.logins {
		l.resets, l.refused = time.Time{}, false
	}
	list, err := w.store.Accounts(context.Background())
	if err != nil {
		w.fail("the accounts cannot be read: %v", err)
	}
	for _, a := range list {
		if a.State == signalbox.AccountSignedOut || a.State == signalbox.AccountClosed && (a.Until.IsZero() || a.Until.Sub(w.wall()) > 5*time.Minute) {
			w.setAccount(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: a.Name})
		}
	}
}

// meets returns the limit that a run meets if it sends a request now, and the type of its error.
func (a *agent) meets(e *execution) (kind string, l *api.AgentLimit) {
	w, login := a.w, a.login
	if login == nil {
		return "", nil
	}
	e.began = e.began || w.oneIn(2)
	l = &api.AgentLimit{Source: "event", Text: "limit reached", Window: "five_hour", Began: e.began}
	switch {
	case login.refused:
		l.Window, l.Source, l.Text = "", "text", "invalid login"
		return "login_refused", l
	case w.now().Before(login.resets):
		if at := login.resets; login.told {
			if w.oneIn(10) { // it is wrong
				at = at.Add(w.between(-time.Hour, 0))
			}
			l.ResetsAt = &at
		}
		return "usage_limit", l
	case w.faultsEnabled && w.oneIn(20):
		l.Window, l.Text = "", "overloaded"
		return "overloaded", l
	}
	answered := w.now()
	a.answered = &answered
	return "", nil
}

// account is what the agent reports about its account.
func (a *agent) account() *api.AgentAccount {
	if a.login == nil {
		return nil
	}
	used := 40.0
	if a.w.now().Before(a.login.resets) {
		used = 100
	}
	return &api.AgentAccount{
		Name: a.login.name, Login: "tester", AnsweredAt: a.answered, Windows: []api.AccountWindow{{Name: "five_hour", UsedPercent: used}},
	}
}

// admits reports whether an account lets a claim through, by the rows of the store.
func (w *world) admits(account string, slots []signalbox.Slot, now time.Time) bool {
	list, err := w.store.Accounts(context.Background())
	if err != nil {
		w.fail("the accounts cannot be read: %v", err)
	}
	for _, a := range list {
		if account == "" || a.Name != account {
			continue
		}
		switch a.State {
		case signalbox.AccountOpen: // at first two claims, and in each of the next ten seconds two more
			if open := now.Sub(a.Since); !a.Since.IsZero() && open >= 0 && open < 10*time.Second && a.Claims >= 2+2*int(open/time.Second) {
				return false
			}
		case signalbox.AccountTrying:
			for _, s := range slots {
				if s.Agent == a.Probe.Agent && s.Slot == a.Probe.Slot && s.Fence == a.Probe.Fence {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// checkAccounts: while an account is being tried, at most one claim made since holds a slot; while it is
// closed, none does.
func (w *world) checkAccounts(ctx context.Context) {
	list, err := w.store.Accounts(ctx)
	slots, err2 := w.store.Slots(ctx)
	if err != nil || err2 != nil {
		w.fail("the accounts cannot be read: %v, %v", err, err2)
		return
	}
	for _, account := range list {
		most := map[signalbox.AccountState]int{signalbox.AccountTrying: 1, signalbox.AccountClosed: 0, signalbox.AccountSignedOut: 0}
		n, limited := most[account.State]
		if !limited {
			continue
		}
		var since []signalbox.Slot
		for _, s := range slots {
			if a := w.agentNamed(s.Agent); a.login != nil && a.login.name == account.Name && !signalbox.Isolated(s.Slot) && !w.book.anyway[s.Fence] && s.Fence > w.book.shut[account.Name] {
				since = append(since, s)
			}
		}
		if len(since) > n {
			w.fail("account %s is %s since fence %d, and these slots were given since: %+v", account.Name, account.State, w.book.shut[account.Name], since)
		}
	}
}

func (w *world) agentNamed(name string) *agent {
	for _, a := range w.agents {
		if a.name == name {
			return a
		}
	}
	panic("there is no agent " + name)
}

// readAccount follows an account through the journal: claims made after its last change have a higher fence.
func (w *world) readAccount(e *signalbox.Entry) {
	w.book.shut[e.Account] = w.book.top
	if strings.Contains(e.Message, "is being tried") {
		w.fault("account tried")
	}
}

// checkPark checks a run that is parked: it ended at a limit, by its agent's state.
func (w *world) checkPark(c *signalbox.Change) {
	t := &c.Task
	if t.State != signalbox.Parked {
		return // it was to be stopped
	}
	w.fault("run parked")
	w.book.parked[t.ID] = parking{agent: t.Agent, session: t.SessionID, began: t.Parking.Began}
	for _, e := range w.agentNamed(t.Agent).runs {
		if e.QueueID == t.ID && e.Fence == t.Fence && !e.live() && e.limit != nil {
			return
		}
	}
	w.fail("task %s under fence %d was parked (%s), and its run at agent %s met no limit", t.ID, t.Fence, t.Parking.Text, t.Agent)
}

// checkResume checks a run that begins: if it was parked, it continues where it was, in its conversation if
// it had one.
func (w *world) checkResume(a *agent, e *execution) {
	if e.Isolated || a.plain {
		return
	}
	p, parked := w.book.parked[e.QueueID]
	switch {
	case !parked && e.Resume != nil:
		w.fail("agent %s is to go on with %s, which was never parked", a.name, e.QueueID)
	case !parked:
	case e.Resume == nil:
		w.fail("agent %s starts %s from its beginning, which was parked at %s", a.name, e.QueueID, p.agent)
	case e.Resume.Began != p.began:
		w.fail("agent %s is told that %s has begun: %v, it was parked as %v", a.name, e.QueueID, e.Resume.Began, p.began)
	case p.began && (a.name != p.agent || e.SessionID != p.session):
		w.fail("agent %s goes on with %s in session %q, which was parked at %s in session %q", a.name, e.QueueID, e.SessionID, p.agent, p.session)
	default:
		w.fault("run resumed")
	}
}

// accountOpen reports whether an account is open. An account that is being tried, or whose claims are spread,
// is checked every second, not at once.
func (w *world) accountOpen(name string) bool {
	list, err := w.store.Accounts(context.Background())
	if err != nil {
		w.fail("the accounts cannot be read: %v", err)
	}
	for _, a := range list {
		if a.Name == name {
			return a.State == signalbox.AccountOpen && !a.Spreading(w.wall()) && !a.Spreading(w.wall().Add(-backstop))
		}
	}
	return true
}

// Package accounts decides what reports about a provider's limits mean for the accounts that agents spend,
// and remembers which accounts are not open. It reads no clock.
package accounts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// LimitKind is the kind of a provider's limit.
type LimitKind string

// The limits.
const (
	Usage      LimitKind = "usage"      // the account is used up: it is closed until the limit resets
	Overloaded LimitKind = "overloaded" // the provider is overloaded: the run continues after a short while, the account stays open
	Refused    LimitKind = "refused"    // the login was refused: the account is signed out
)

// Limit describes a provider's limit at which a run ended.
type Limit struct {
	Kind     LimitKind
	Window   string
	ResetsAt time.Time // zero: not reported
	Source   string    // event, header, text or guess
	Text     string
	Began    bool // the model had answered: work may have been done
}

// News is what an agent reports about its account.
type News struct {
	Name, Kind, Login string
	Windows           []signalbox.AccountWindow
	AnsweredAt        time.Time // by the agent's clock; zero: not since it started
}

// Book holds the accounts as last read or changed here, and the last report of each agent. Its methods are
// safe for concurrent use.
type Book struct {
	mu       sync.Mutex
	accounts map[string]signalbox.Account
	answered map[string]time.Time // by agent: News.AnsweredAt
	ended    map[string]int64     // by account: the fence of the probe whose end was reported last
	reserved map[string]int       // by account: the number of reserved sources at the last call
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{accounts: map[string]signalbox.Account{}, answered: map[string]time.Time{}, reserved: map[string]int{}, ended: map[string]int64{}}
}

// Refresh reads all accounts.
func (b *Book) Refresh(ctx context.Context, from store.AgentReader) ([]signalbox.Account, error) {
	list, err := from.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.accounts)
	for _, a := range list {
		b.accounts[a.Name] = a
	}
	return list, nil
}

// All returns the accounts by name.
func (b *Book) All() []signalbox.Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.accounts), func(a, b signalbox.Account) int { return strings.Compare(a.Name, b.Name) })
}

// Note records an account as it was stored.
func (b *Book) Note(a signalbox.Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a.Name] = a
}

// Get returns an account; the zero Account if it is unknown.
func (b *Book) Get(name string) signalbox.Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts[name]
}

// Blocked returns an account that is not open; nil if it is open or unknown.
func (b *Book) Blocked(name string) *signalbox.Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.accounts[name].State; s == "" || s == signalbox.AccountOpen {
		return nil
	}
	a := b.accounts[name]
	return &a
}

// leastHeard is the minimum time between two changes of an account's windows if less than one percent more is
// used.
const leastHeard = time.Minute

// Report converts an agent's report to an event of its account; ok is false if it changes nothing.
func (b *Book) Report(agent string, n News, now time.Time) (ev signalbox.AccountEvent, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, known := b.answered[agent]
	b.answered[agent] = n.AnsweredAt
	a, stored := b.accounts[n.Name]
	ev = signalbox.AccountEvent{Kind: signalbox.AccountReported, Account: n.Name, Now: now, Of: n.Kind, Login: n.Login, Windows: n.Windows}
	switch {
	case !stored:
		return ev, true
	case a.State != signalbox.AccountOpen && a.State != signalbox.AccountClosed && known && n.AnsweredAt.After(was) && n.AnsweredAt.After(a.Since):
		// It is not an earlier answer that is reported late. If the clocks differ, a new answer may be taken
		// for an earlier one; that only costs a wait until its run ends.
		ev.Kind = signalbox.AccountAnswered
		return ev, true
	}
	return ev, news(&a, n.Windows, now) || n.Login != "" && n.Login != a.Login
}

func news(a *signalbox.Account, windows []signalbox.AccountWindow, now time.Time) bool {
	if len(windows) == 0 || slices.Equal(windows, a.Windows) {
		return false
	}
	if len(windows) != len(a.Windows) || now.Sub(a.HeardAt) >= leastHeard {
		return true
	}
	for i := range windows {
		w, old := &windows[i], &a.Windows[i]
		if w.Name != old.Name || int(w.UsedPercent) != int(old.UsedPercent) || !w.ResetsAt.Equal(old.ResetsAt) {
			return true
		}
	}
	return false
}

// Reserve says from which usage of an account's fullest window, in percent, tasks of some sources are no
// longer claimed; 0: never.
type Reserve struct {
	Schedules float64
	Agents    float64
}

// Reserved returns the sources whose tasks may not be claimed for an account now.
func (b *Book) Reserved(name string, r Reserve, now time.Time) (sources []signalbox.Source) {
	if r == (Reserve{}) {
		return nil
	}
	a := b.Get(name)
	used := a.Fullest(now).UsedPercent
	if r.Schedules > 0 && used >= r.Schedules {
		sources = append(sources, signalbox.SourceScheduler)
	}
	if r.Agents > 0 && used >= r.Agents {
		sources = append(sources, signalbox.SourceAgent)
	}
	return sources
}

// Backoffs for an overloaded provider, by how often the task was parked.
const (
	firstOverload = 15 * time.Second
	lastOverload  = 5 * time.Minute
)

// Park returns what a limit means: how the task is parked, and the event of its account. Both may be nil:
// without an account, the task cannot wait for a refused login. jitter is up to about a second.
func Park(t *signalbox.Task, account string, l *Limit, now time.Time, jitter time.Duration) (*signalbox.Parking, *signalbox.AccountEvent) {
	park := &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateAccount, Name: account, Text: l.Text}, Began: l.Began}
	ev := &signalbox.AccountEvent{Account: account, Now: now, Until: l.ResetsAt, Jitter: jitter, Window: l.Window, Reason: l.Text, Source: l.Source}
	switch {
	case l.Kind == Overloaded, l.Kind == Usage && account == "":
		park.Kind, park.Name, park.Until = signalbox.GateTime, "", now.Add(backoff(t, l, now, jitter))
		return park, nil
	case l.Kind == Usage:
		ev.Kind = signalbox.AccountLimit
		after, _ := signalbox.NextAccount(signalbox.Account{}, *ev)
		park.Until = after.Until
	case account == "":
		return nil, nil
	default:
		ev.Kind = signalbox.AccountRefused
	}
	return park, ev
}

func backoff(t *signalbox.Task, l *Limit, now time.Time, jitter time.Duration) time.Duration {
	parks := 0
	if t.Parking != nil {
		parks = t.Parking.Count
	}
	wait := min(firstOverload<<min(parks, 10), lastOverload)
	if l.ResetsAt.After(now) {
		wait = min(l.ResetsAt.Sub(now), signalbox.MaxAccountClosed)
	}
	return wait + jitter
}

// ProbeEnded reports whether the end of a probe, by its fence, is reported for the first time.
func (b *Book) ProbeEnded(name string, fence int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.ended[name]
	b.ended[name] = fence
	return was != fence
}

// ReserveChanged reports whether other sources are reserved than at the last call.
func (b *Book) ReserveChanged(name string, r Reserve, now time.Time) bool {
	n := len(b.Reserved(name, r, now))
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.reserved[name]
	b.reserved[name] = n
	return was != n
}

// Opens returns the parked tasks whose gate is open. There should be none at an account, since whatever opens
// an account unparks its tasks.
func (b *Book) Opens(parked []signalbox.Task, now time.Time) (open []signalbox.Task) {
	for i := range parked {
		p := parked[i].Parking
		if p.Kind == signalbox.GateTime && !p.Until.After(now) || p.Kind == signalbox.GateAccount && b.Blocked(p.Name) == nil {
			open = append(open, parked[i])
		}
	}
	return open
}

// HoldingGate returns the gate at which an account keeps a waiting task, with the whole sentence as its Text; nil
// if the account lets the task through.
func (b *Book) HoldingGate(t *signalbox.Task, name string, r Reserve, now time.Time) *signalbox.ClosedGate {
	g := &signalbox.ClosedGate{Gate: signalbox.Gate{Kind: signalbox.GateAccount, Name: name}}
	if a := b.Blocked(name); a != nil {
		g.Text, g.Until, g.Since = a.String(), a.Until, a.Since
		return g
	}
	if !slices.Contains(b.Reserved(name, r, now), t.Source) {
		return nil
	}
	a := b.Get(name)
	w, stop := a.Fullest(now), r.Schedules
	if t.Source == signalbox.SourceAgent {
		stop = r.Agents
	}
	g.Until, g.Since = w.ResetsAt, a.Since
	g.Text = fmt.Sprintf("account %s is kept for people: %.0f %% of %s is used, and tasks of %ss stop at %.0f %%", name, w.UsedPercent, w.Name, sourceNames[t.Source], stop)
	return g
}

var sourceNames = map[signalbox.Source]string{signalbox.SourceScheduler: "schedule", signalbox.SourceAgent: "agent"}

// Cure is what a person can do about a task that waits because of an account; "" if none keeps it.
func (b *Book) Cure(name, task string) string {
	now := "; signalbox unpark " + task + " lets it run now."
	switch a := b.Blocked(name); {
	case a == nil:
		return "It goes on by itself" + now
	case a.State == signalbox.AccountSignedOut:
		return "Log in again where the agent runs, then: signalbox accounts open " + a.Name
	case a.State == signalbox.AccountClosed && a.Until.IsZero():
		return "signalbox accounts open " + a.Name + now
	}
	return "It goes on by itself then; signalbox accounts open " + name + " tries at once" + now
}

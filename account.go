package signalbox

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// AccountState says which claims an account admits.
type AccountState string

// The states of an account.
//
//	open ─a run hits the limit─▶ closed ─its time is over─▶ trying ─the provider answers─▶ open
//	                               ▲                          │
//	                               └───── hits the limit ─────┘
//	any ─the login was refused─▶ signed_out ─someone opens it, or the provider answers─▶ open
const (
	AccountOpen      AccountState = "open"
	AccountClosed    AccountState = "closed"     // nothing is claimed until Account.Until
	AccountTrying    AccountState = "trying"     // one probe run starts; the others follow once the provider has answered it
	AccountSignedOut AccountState = "signed_out" // nothing is claimed: a person must log in
)

// AccountWindow is one limit of a provider.
type AccountWindow struct {
	Name        string  // as the provider calls it
	UsedPercent float64 // at least 0, rounded to 0.001; may exceed 100
	ResetsAt    time.Time
}

// Account is one login or key at one provider, which the runs of agents spend. Its row says
// whether it is open.
type Account struct {
	Name  string
	Kind  string // kind of the agents that use it; "" if someone closed it before any agent reported it
	Login string // shown to people; never the secret
	State AccountState
	// Reason says why it is not open. Source says who or what closed it: event, header, text,
	// guess or the name of a person.
	Reason string
	Window string // the provider's window that is used up; "": unknown
	Source string
	Since  time.Time // when it entered State
	Until  time.Time // closed: when it is tried again; zero: it stays closed until someone opens it
	// Failures counts how often in a row it was closed without a known reset time.
	Failures int
	Windows  []AccountWindow
	HeardAt  time.Time // when Windows were last reported
	// Probe is the first claim while the account is trying. Its Fence is 0 until there is one.
	Probe AccountProbe
	// Claims counts the claims since it reopened, while they are spread.
	Claims int
}

// AccountProbe identifies a claim.
type AccountProbe struct {
	Agent string
	Slot  int
	Fence int64
}

// AccountEventKind names what happens to an account.
type AccountEventKind string

// The events of an account.
const (
	AccountLimit          AccountEventKind = "limit"    // a run hit its limit
	AccountRefused        AccountEventKind = "refused"  // its login was refused
	AccountDue            AccountEventKind = "due"      // its time is over
	AccountAnswered       AccountEventKind = "answered" // the provider answered a request
	AccountOpened         AccountEventKind = "open"     // someone opened it
	AccountClosedByPerson AccountEventKind = "close"    // someone closed it
	AccountReported       AccountEventKind = "heard"    // its windows were reported
)

// AccountEvent is something that happened to an account.
type AccountEvent struct {
	Kind    AccountEventKind
	Account string
	Now     time.Time

	Until   time.Time       // limit: when it resets, zero if unknown; close: zero means until someone opens it
	Jitter  time.Duration   // limit: added to Until
	Window  string          // limit
	Reason  string          // limit, refused, close
	Source  string          // limit, refused; a person's name: open, close
	Of      string          // the kind of the agent; not set for due, open and close
	Login   string          // as Of
	Windows []AccountWindow // nil: not reported
}

// By returns the person who caused the event; "" for none.
func (ev *AccountEvent) By() string {
	if ev.Kind == AccountOpened || ev.Kind == AccountClosedByPerson {
		return ev.Source
	}
	return ""
}

// Bounds on how long a limit closes an account.
const (
	MaxAccountWindows = 16
	MaxAccountClosed  = 8 * 24 * time.Hour
	// PastReset is the wait when the reported reset is already past: clocks differ, or the
	// provider is wrong.
	PastReset = time.Minute
	// firstGuess is the wait when no reset time is known. It doubles up to lastGuess.
	firstGuess = time.Minute
	lastGuess  = time.Hour

	maxUsedPercent = 1e6
)

// NextAccount applies an event to an account; the zero Account is one that is not known yet.
// message is for the journal; "" if nothing changed that matters to waiting tasks.
func NextAccount(a Account, ev AccountEvent) (after Account, message string) {
	a.Name, a.Kind, a.Login = ev.Account, cmp.Or(ev.Of, a.Kind), cmp.Or(ev.Login, a.Login)
	a.State = cmp.Or(a.State, AccountOpen)
	if ev.Windows != nil {
		a.hear(ev)
	}
	was := a.String()
	switch ev.Kind {
	case AccountLimit:
		if a.State == AccountSignedOut {
			return a, ""
		}
		until := a.closedUntil(ev)
		if a.State == AccountClosed && (ev.Until.IsZero() || a.Until.IsZero() || a.Until.After(until)) {
			return a, "" // another run hit the same limit, or someone closed it for longer
		}
		a.close(ev, AccountClosed, until)
	case AccountRefused:
		a.close(ev, AccountSignedOut, time.Time{})
	case AccountClosedByPerson:
		a.close(ev, AccountClosed, ev.Until)
	case AccountDue:
		if !a.Due(ev.Now) {
			return a, ""
		}
		a.State, a.Since, a.Probe = AccountTrying, ev.Now, AccountProbe{}
	case AccountAnswered:
		// While it is closed, answers come from runs that were already in flight.
		if a.State == AccountOpen || a.State == AccountClosed {
			return a, ""
		}
		a.open(ev)
	case AccountOpened:
		a.open(ev)
	}
	if message = a.String(); message == was {
		return a, ""
	}
	return a, message
}

// hear stores the reported windows, rounded as they are stored.
func (a *Account) hear(ev AccountEvent) {
	a.Windows, a.HeardAt = slices.Clone(ev.Windows[:min(len(ev.Windows), MaxAccountWindows)]), ev.Now
	for i := range a.Windows {
		w := &a.Windows[i]
		w.ResetsAt = w.ResetsAt.UTC().Truncate(time.Millisecond)
		if w.UsedPercent = math.Round(w.UsedPercent*1000) / 1000; !(w.UsedPercent >= 0) {
			w.UsedPercent = 0
		}
		w.UsedPercent = min(w.UsedPercent, maxUsedPercent)
	}
}

func (a *Account) close(ev AccountEvent, state AccountState, until time.Time) {
	if a.State != state {
		a.Since = ev.Now
	}
	until = until.UTC().Truncate(time.Millisecond)
	a.State, a.Until, a.Reason, a.Source, a.Window, a.Probe = state, until, ev.Reason, ev.Source, ev.Window, AccountProbe{}
	if a.Failures++; !ev.Until.IsZero() {
		a.Failures = 0
	}
}

func (a *Account) open(ev AccountEvent) {
	a.State, a.Since, a.Until, a.Reason, a.Source, a.Window = AccountOpen, ev.Now, time.Time{}, "", ev.Source, ""
	a.Failures, a.Claims, a.Probe = 0, 0, AccountProbe{}
}

// closedUntil returns when an account that hit a limit is tried again.
func (a *Account) closedUntil(ev AccountEvent) time.Time {
	wait := ev.Until.Sub(ev.Now)
	switch {
	case ev.Until.IsZero():
		wait = min(firstGuess<<min(a.Failures, 10), lastGuess)
	case wait <= 0:
		wait = PastReset
	}
	return ev.Now.Add(min(wait+ev.Jitter, MaxAccountClosed))
}

// Due reports whether the account is closed and its time is over.
func (a *Account) Due(now time.Time) bool {
	return a.State == AccountClosed && !a.Until.IsZero() && !a.Until.After(now)
}

// After an account has reopened, its claims are spread over spreadFor: spreadRate at once, and
// spreadRate more each second.
const (
	spreadFor  = 10 * time.Second
	spreadRate = 2
)

// Spreading reports whether the claims of the account are spread.
func (a *Account) Spreading(now time.Time) bool {
	return a.State == AccountOpen && !a.Since.IsZero() && now.Sub(a.Since) < spreadFor && !now.Before(a.Since)
}

// Admit reports whether the account admits a claim, and returns the account after it.
// probing says that the probe's claim still holds its slot.
func (a *Account) Admit(c AccountProbe, probing bool, now time.Time) (after Account, ok bool) {
	after = *a
	switch {
	case a.State == AccountClosed, a.State == AccountSignedOut, a.State == AccountTrying && probing:
		return after, false
	case a.State == AccountTrying:
		after.Probe = c
	case a.Spreading(now):
		after.Claims++
		return after, a.Claims < spreadRate*(1+int(now.Sub(a.Since)/time.Second))
	}
	return after, true
}

// Opens reports whether a change of the account unblocks the tasks that are parked at it.
func (a *Account) Opens(after *Account) bool {
	blocked := func(s AccountState) bool { return s == AccountClosed || s == AccountSignedOut }
	return !blocked(after.State) && (a.State == "" || blocked(a.State))
}

// Fullest returns the window with the highest usage among those that have not reset since they
// were reported; the zero AccountWindow if none is known.
func (a *Account) Fullest(now time.Time) (w AccountWindow) {
	for _, one := range a.Windows {
		if one.UsedPercent >= w.UsedPercent && (one.ResetsAt.IsZero() || one.ResetsAt.After(now)) {
			w = one
		}
	}
	return w
}

// Clone copies an account.
func (a Account) Clone() Account {
	a.Windows = slices.Clone(a.Windows)
	return a
}

// String describes the state of the account, as shown to users.
func (a *Account) String() string {
	why := ""
	if about := cmp.Or(a.Window, a.Reason); about != "" {
		why = " (" + about + ")"
	}
	switch a.State {
	case AccountClosed:
		if a.Until.IsZero() {
			return fmt.Sprintf("account %s is closed until someone opens it%s", a.Name, why)
		}
		return fmt.Sprintf("account %s is closed until %s%s", a.Name, a.Until.UTC().Format(time.RFC3339), why)
	case AccountTrying:
		return fmt.Sprintf("account %s is being tried: one task goes first", a.Name)
	case AccountSignedOut:
		return fmt.Sprintf("account %s is signed out: a person must log in%s", a.Name, why)
	}
	return fmt.Sprintf("account %s is open", a.Name)
}

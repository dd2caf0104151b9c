package budget

import (
	"cmp"

	"github.com/signalbox-ai/signalbox"
)

// config adds lookups to signalbox.Budgets.
type config struct{ signalbox.Budgets }

// Scope is the kind of a budget's holder.
type Scope string

// The scopes of daily budgets.
const (
	ScopeDay     Scope = "day"
	ScopeUser    Scope = "user"
	ScopeAgent   Scope = "agent"
	ScopeAccount Scope = "account"
)

// Name identifies a daily budget.
type Name struct {
	Scope Scope
	Name  string // "" for ScopeDay
}

// String returns the name as shown to users.
func (n Name) String() string {
	if n.Scope == ScopeDay {
		return "the day"
	}
	return string(n.Scope) + " " + n.Name
}

// Who is what a run's budgets depend on.
type Who struct{ Agent, Account, Owner, Email string }

// names returns the budgets that a run counts towards.
func (c *config) names(w Who) []Name {
	names := make([]Name, 0, 4)
	if c.Day != (signalbox.Budget{}) {
		names = append(names, Name{Scope: ScopeDay})
	}
	if u := c.user(w.Owner, w.Email); u != "" {
		names = append(names, Name{ScopeUser, u})
	}
	if line(c.Agents, w.Agent) {
		names = append(names, Name{ScopeAgent, w.Agent})
	}
	if line(c.Accounts, w.Account) {
		names = append(names, Name{ScopeAccount, w.Account})
	}
	return names
}

func line(of map[string]signalbox.Budget, name string) bool {
	return name != "" && of[cmp.Or(lineOf(of, name), signalbox.AnyBudget)] != signalbox.Budget{}
}

// lineOf returns the name if a limit is configured for it, else "".
func lineOf(of map[string]signalbox.Budget, name string) string {
	if _, has := of[name]; has {
		return name
	}
	return ""
}

// user returns the name of the budget of an owner; "" if there is no owner.
func (c *config) user(owner, email string) string {
	name := cmp.Or(lineOf(c.Users, email), lineOf(c.Users, owner), email, owner)
	if !line(c.Users, name) {
		return ""
	}
	return name
}

// budget returns the limits of a name.
func (c *config) budget(n Name) signalbox.Budget {
	of := map[Scope]map[string]signalbox.Budget{ScopeUser: c.Users, ScopeAgent: c.Agents, ScopeAccount: c.Accounts}[n.Scope]
	if n.Scope == ScopeDay {
		return c.Day
	}
	return of[cmp.Or(lineOf(of, n.Name), signalbox.AnyBudget)]
}

package budget

import (
	"cmp"

	"github.com/signalbox-ai/signalbox"
)

// config is signalbox.Budgets with what a Book asks of them.
type config struct{ signalbox.Budgets }

// Scope says whose budget it is.
type Scope string

// The scopes of budgets of a day.
const (
	ScopeDay     Scope = "day"
	ScopeUser    Scope = "user"
	ScopeAgent   Scope = "agent"
	ScopeAccount Scope = "account"
)

// Name names a budget of a day.
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

// Who is on whose budget a run is.
type Who struct{ Agent, Account, Owner, Email string }

// names returns the budgets that a run is on.
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

// lineOf returns the name if it has a line, else "".
func lineOf(of map[string]signalbox.Budget, name string) string {
	if _, has := of[name]; has {
		return name
	}
	return ""
}

// user returns the name of the budget of an owner; "" for none. Nobody in particular has none.
func (c *config) user(owner, email string) string {
	name := cmp.Or(lineOf(c.Users, email), lineOf(c.Users, owner), email, owner)
	if !line(c.Users, name) {
		return ""
	}
	return name
}

// budget returns the bounds of a name.
func (c *config) budget(n Name) signalbox.Budget {
	of := map[Scope]map[string]signalbox.Budget{ScopeUser: c.Users, ScopeAgent: c.Agents, ScopeAccount: c.Accounts}[n.Scope]
	if n.Scope == ScopeDay {
		return c.Day
	}
	return of[cmp.Or(lineOf(of, n.Name), signalbox.AnyBudget)]
}

package signalbox

import (
	"fmt"
	"math"
	"strings"
)

// Budget limits what runs may spend. 0 means no limit.
type Budget struct {
	NanoUSD int64 // billionths of a US dollar
	Tokens  int64 // input and output together
}

// Budgets are the configured budgets of a director.
type Budgets struct {
	// Task applies to each task that sets no budget. Callers who are not admins may not set a
	// higher one.
	Task Budget
	Day  Budget // of all tasks together, each UTC day
	// By name, each UTC day; AnyBudget applies to names that are not listed. Users are listed by
	// the key of the owner (Task.Owner) or the e-mail address.
	Users, Agents, Accounts map[string]Budget
}

// AnyBudget names the budget of everyone who is not listed.
const AnyBudget = "*"

// Daily reports whether there is any daily budget.
func (b *Budgets) Daily() bool {
	return b.Day != (Budget{}) || len(b.Users)+len(b.Agents)+len(b.Accounts) > 0
}

// Most returns the highest task budget that a caller may set; the zero Budget for an admin.
func (b *Budgets) Most(by Principal) Budget {
	if by.Kind == "" || by.Has(ScopeAdmin) {
		return Budget{}
	}
	return b.Task
}

// Check refuses a task budget that is higher than its caller may set.
//
// Errors: CodeValidation.
func (b *Budgets) Check(of Budget, by Principal) error {
	if most := b.Most(by); of.Least(most) != of.Or(most) {
		return Invalid("budget", "budget must be at most %s (budgets.task of the director), not %s: an admin may set a higher one", most, of)
	}
	return nil
}

// The largest budget.
const (
	MaxBudgetUSD    = 1_000_000_000
	MaxBudgetTokens = 1_000_000_000_000_000
)

// ParseBudget makes a budget from US dollars and tokens; 0 means no limit. field names the
// budget in errors.
//
// Errors: CodeValidation for a value that is negative, not a number, less than a billionth of a
// dollar or above the maximum.
func ParseBudget(field string, usd float64, tokens int64) (Budget, error) {
	nano := math.Round(usd * nanoPerUSD)
	switch {
	case !(usd >= 0 && usd <= MaxBudgetUSD), usd > 0 && nano < 1:
		return Budget{}, Invalid(field+".usd", "%s.usd must be US dollars from 0.000000001 to %d, or 0 for no bound, not %g", field, MaxBudgetUSD, usd)
	case tokens < 0 || tokens > MaxBudgetTokens:
		return Budget{}, Invalid(field+".tokens", "%s.tokens must be from 1 to %d, or 0 for no bound, not %d", field, int64(MaxBudgetTokens), tokens)
	}
	return Budget{NanoUSD: int64(nano), Tokens: tokens}, nil
}

// USD returns the limit in US dollars, 0 for no limit.
func (b Budget) USD() float64 { return float64(b.NanoUSD) / nanoPerUSD }

// Over reports whether s uses the budget up.
func (b Budget) Over(s Spent) bool {
	return b.NanoUSD > 0 && s.NanoUSD >= b.NanoUSD || b.Tokens > 0 && s.Tokens() >= b.Tokens
}

// Left returns what s leaves of the budget: at least 1 of each limited figure, since 0 means no
// limit.
func (b Budget) Left(s Spent) Budget {
	if b.NanoUSD > 0 {
		b.NanoUSD = max(1, b.NanoUSD-s.NanoUSD)
	}
	if b.Tokens > 0 {
		b.Tokens = max(1, b.Tokens-s.Tokens())
	}
	return b
}

// Least returns the lower limit of two budgets, for each figure.
func (b Budget) Least(o Budget) Budget {
	return Budget{least(b.NanoUSD, o.NanoUSD), least(b.Tokens, o.Tokens)}
}

func least(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Or returns the budget, with the figures of o where it has no limit.
func (b Budget) Or(o Budget) Budget {
	if b.NanoUSD == 0 {
		b.NanoUSD = o.NanoUSD
	}
	if b.Tokens == 0 {
		b.Tokens = o.Tokens
	}
	return b
}

// Of says how much of the budget s is, as shown to users: "$20.04 of $20.00".
func (b Budget) Of(s Spent) string {
	var parts []string
	if b.NanoUSD > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", dollars(s.NanoUSD), dollars(b.NanoUSD)))
	}
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tokens", s.Tokens(), b.Tokens))
	}
	return strings.Join(parts, ", ")
}

// String returns the limits, as shown to users; "" for none.
func (b Budget) String() string {
	var parts []string
	if b.NanoUSD > 0 {
		parts = append(parts, dollars(b.NanoUSD))
	}
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", b.Tokens))
	}
	return strings.Join(parts, ", ")
}

// dollars formats an amount with two decimals, and more only where they are not 0.
func dollars(nano int64) string {
	whole, rest := nano/nanoPerUSD, fmt.Sprintf("%09d", nano%nanoPerUSD)
	return fmt.Sprintf("$%d.%s%s", whole, rest[:2], strings.TrimRight(rest[2:], "0"))
}

// OverBudget says that the runs of a task have used its budget up; "" if they have not.
func (t *Task) OverBudget(spent Spent) string {
	if !t.Budget.Over(spent) {
		return ""
	}
	return "the budget of the task is used up: " + t.Budget.Of(spent)
}

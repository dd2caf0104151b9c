package api

import "time"

// Budgets is the answer to GET /api/budgets.
type Budgets struct {
	Task    *Budget       `json:"task,omitempty"` // default of each task
	Budgets []BudgetState `json:"budgets"`        // today's budgets: the total of the day, then by user, agent and account
}

// BudgetState is a budget of today (a UTC day) and what has been spent of it.
type BudgetState struct {
	Scope  string      `json:"scope"`          // day, user, agent or account
	Name   string      `json:"name,omitempty"` // of the user (an e-mail address, or a key such as user:ann), agent or account
	Spent  BudgetSpent `json:"spent"`          // by runs that ended today, and by runs in flight as far as they have reported
	Budget Budget      `json:"budget"`
	State  string      `json:"state"`           // open, or used_up: only tasks that run anyway are started
	Text   string      `json:"text,omitempty"`  // used_up: the same in words
	Since  *time.Time  `json:"since,omitempty"` // used_up: when that was noticed
	Until  *time.Time  `json:"until,omitempty"` // used_up: when it opens
}

// BudgetSpent is what was spent of a budget.
type BudgetSpent struct {
	USD    float64 `json:"usd"`    // US dollars
	Tokens int64   `json:"tokens"` // input and output together
}

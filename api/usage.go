package api

// Usage is the answer to GET /api/usage: the usage of runs that ended on some days,
// as far as their agents reported tokens or costs. It is kept for 400 days, even
// if the tasks are pruned.
type Usage struct {
	From  string     `json:"from"` // first day, in UTC, such as 2026-01-31
	To    string     `json:"to"`   // last day
	By    string     `json:"by"`   // day, agent, schedule, user or model
	Rows  []UsageRow `json:"rows"` // days in order, without those that have no usage; otherwise the highest cost first
	Total UsageSums  `json:"total"`
}

// UsageRow is a sum of Usage.
type UsageRow struct {
	// Name is the day, agent, schedule, owner (such as user:ann) or model. It is empty for runs
	// without a schedule, an owner or a reported model, and "(other)" for runs without a row of
	// their own on a day with very many rows.
	Name  string `json:"name"`
	Email string `json:"email,omitempty"` // of a user
	UsageSums
}

// UsageSums are the figures of a row. A task that was run twice has two runs.
type UsageSums struct {
	Runs         int64   `json:"runs"`
	Failed       int64   `json:"failed"` // failed runs; a cancelled run has not failed
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
	RunSeconds   float64 `json:"run_seconds"` // total duration of the runs
}

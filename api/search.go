package api

// Search is the answer to GET /api/search: waiting and running tasks first, in the
// order of their lines, then ended ones, newest first; or in the requested order.
type Search struct {
	Query string     `json:"query"`          // in canonical form
	Sort  string     `json:"sort,omitempty"` // in canonical form
	Tasks []LiveTask `json:"tasks"`
	Next  string     `json:"next,omitempty"` // cursor: ask with ?after=
	// Total counts the matching tasks, exactly up to 10,000. Approximate says that
	// there are more; a requested order then covers only the counted tasks: the running and
	// waiting ones, and the newest of the ended ones.
	Total       int  `json:"total"`
	Approximate bool `json:"approximate,omitempty"`
}

// SearchCountsRequest is the body of POST /api/search/counts.
type SearchCountsRequest struct {
	Queries []string `json:"queries"` // at most 40
}

// SearchCounts is the answer to POST /api/search/counts, in the order of the
// queries.
type SearchCounts struct {
	Counts []SearchCount `json:"counts"`
}

// SearchCount is how many tasks match a query. At most 10,000 tasks are examined
// for all queries together; Approximate says that more may match.
type SearchCount struct {
	Query       string `json:"query"` // in canonical form
	Total       int    `json:"total"`
	Approximate bool   `json:"approximate,omitempty"`
}

// SearchKeys is the answer to GET /api/search/keys: the keys of the query language.
type SearchKeys struct {
	Keys  []SearchKey `json:"keys"`
	Sorts []string    `json:"sorts"` // values of ?sort=, with a minus before them for the largest first
}

// SearchKey is a key of the query language.
type SearchKey struct {
	Key      string   `json:"key"`
	Text     string   `json:"text"`               // what its value says about a task
	Values   []string `json:"values,omitempty"`   // all valid values, if there are few
	Examples []string `json:"examples,omitempty"` // example values, if there are many
}

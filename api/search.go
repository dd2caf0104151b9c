package api

// Search is the answer to GET /api/search: waiting and running tasks first, in
// the order of their lines, then ended ones, newest first, or by the order that
// was asked for.
type Search struct {
	Query string     `json:"query"`          // as it was understood
	Sort  string     `json:"sort,omitempty"` // likewise
	Tasks []LiveTask `json:"tasks"`
	Next  string     `json:"next,omitempty"` // cursor: ask with ?after=
	// Total counts all that match, exactly to 10,000; Approximate says that
	// there are more. An order that was asked for is then that of the counted
	// ones alone: what runs and waits, and the newest of those that ended.
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

// SearchCount is how many tasks match a query. At most 10,000 tasks are looked at
// for all queries together; Approximate says that there may be more that match.
type SearchCount struct {
	Query       string `json:"query"` // as it was understood
	Total       int    `json:"total"`
	Approximate bool   `json:"approximate,omitempty"`
}

// SearchKeys is the answer to GET /api/search/keys: what a query may be made of.
type SearchKeys struct {
	Keys  []SearchKey `json:"keys"`
	Sorts []string    `json:"sorts"` // what ?sort= takes, with a minus before it for the largest first
}

// SearchKey is a key of the query language.
type SearchKey struct {
	Key      string   `json:"key"`
	Text     string   `json:"text"`               // what its value says of a task
	Values   []string `json:"values,omitempty"`   // all that it takes, where they are few
	Examples []string `json:"examples,omitempty"` // of its values, where they are many
}

package client

import (
	"context"

	"github.com/signalbox-ai/signalbox/api"
)

// SearchOptions say which page of a search is wanted.
type SearchOptions struct {
	Limit int    // of the page, 1 to 1000; 0: 100
	After string // cursor: Next of the page before
}

// Search returns the tasks that match a query such as
//
//	agent:coder state:failed since:2h "billing"
//
// waiting and running ones first, then ended ones, newest first.
func (c *Client) Search(ctx context.Context, query string, opts SearchOptions) (api.Search, error) {
	var out api.Search
	return out, c.do(ctx, get("/api/search", values("q", query, "limit", number(opts.Limit), "after", opts.After)), &out)
}

// Bulk cancels or retries all tasks that match a query. Without Expect it only
// counts them. A Bulk whose reply is lost is not sent again: count anew.
func (c *Client) Bulk(ctx context.Context, body api.BulkRequest) (api.Bulk, error) {
	var out api.Bulk
	req, err := post("/api/queue/bulk", body)
	if err != nil {
		return out, err
	}
	req.long = true
	return out, c.do(ctx, req, &out)
}

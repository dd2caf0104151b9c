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
	return ask[api.Search](ctx, c, get("/api/search", values("q", query, "limit", number(opts.Limit), "after", opts.After)))
}

// Bulk cancels or retries all tasks that match a query. Without Expect it only
// counts them. A Bulk whose reply is lost is not sent again: count anew.
func (c *Client) Bulk(ctx context.Context, body api.BulkRequest) (api.Bulk, error) {
	req := post("/api/queue/bulk", body)
	req.long = true
	return ask[api.Bulk](ctx, c, req)
}

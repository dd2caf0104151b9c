package client

import (
	"context"

	"github.com/signalbox-ai/signalbox/api"
)

// Export returns a page of all tasks as they are, for Import at another
// director; after is the Next of the page before. It needs the scope admin.
func (c *Client) Export(ctx context.Context, limit int, after string) (api.Export, error) {
	req := get("/api/export", values("limit", number(limit), "after", after))
	req.long = true
	return ask[api.Export](ctx, c, req)
}

// Import stores tasks as another director had them. What is known already is
// left alone, so an import whose reply was lost is simply sent again. It needs
// the scope admin.
func (c *Client) Import(ctx context.Context, body api.ImportRequest) (api.Imported, error) {
	req := post("/api/import", body)
	req.long = true
	return ask[api.Imported](ctx, c, req)
}

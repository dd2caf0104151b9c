package client

import (
	"context"
	"encoding/json"

	"github.com/signalbox-ai/signalbox/api"
)

// Status returns the director and its queue in figures.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	var out api.Status
	return out, c.do(ctx, get("/status", nil), &out)
}

// Directors returns the directors over the store, by instance.
func (c *Client) Directors(ctx context.Context) ([]api.Director, error) {
	var out api.Directors
	return out.Directors, c.do(ctx, get("/api/directors", nil), &out)
}

// Health returns nil-error "ok" while the director's process lives.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var out api.Health
	return out, c.do(ctx, get("/healthz", nil), &out)
}

// Ready returns "ok" when the director takes work; otherwise the error is an
// *Error with status 503 whose message says what is wrong.
func (c *Client) Ready(ctx context.Context) (api.Health, error) {
	var out api.Health
	return out, c.do(ctx, get("/readyz", nil), &out)
}

// OpenAPI returns the director's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	return out, c.do(ctx, get("/openapi.json", nil), &out)
}

// Metrics returns the director's metrics in the Prometheus text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	req := get("/metrics", nil)
	req.accept = "text/plain"
	data, err := c.raw(ctx, req)
	return string(data), err
}

package client

import (
	"context"
	"encoding/json"

	"github.com/signalbox-ai/signalbox/api"
)

// Status returns the director and its queue in figures.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return ask[api.Status](ctx, c, get("/status", nil))
}

// Directors returns the directors over the store, by instance.
func (c *Client) Directors(ctx context.Context) ([]api.Director, error) {
	out, err := ask[api.Directors](ctx, c, get("/api/directors", nil))
	return out.Directors, err
}

// Health returns nil-error "ok" while the director's process lives.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, get("/healthz", nil))
}

// Ready returns "ok" when the director takes work; otherwise the error is an
// *Error with status 503 whose message says what is wrong.
func (c *Client) Ready(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, get("/readyz", nil))
}

// OpenAPI returns the director's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, c, get("/openapi.json", nil))
}

// Metrics returns the director's metrics in the Prometheus text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	req := get("/metrics", nil)
	req.accept = "text/plain"
	data, err := c.raw(ctx, req)
	return string(data), err
}

package director

import (
	"context"
	"net/http"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// Traces knows of which trace an execution is a part; *telemetry.Traces does.
type Traces interface {
	// Context puts the trace of an execution into ctx, unless it has one.
	Context(ctx context.Context, queueID string) context.Context
}

// traced takes over the trace of the caller, for what the request makes.
func traced(r *http.Request) *http.Request {
	if r.Header.Get("Traceparent") == "" {
		return r
	}
	return r.WithContext(gateway.WithTrace(r.Context(), r.Header))
}

// within makes what is called in an execution a part of its trace, where the
// caller names no trace itself.
func (d *Director) within(ctx context.Context, who gateway.Caller) context.Context {
	if d.cfg.Traces == nil {
		return ctx
	}
	return d.cfg.Traces.Context(ctx, who.Execution)
}

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const tracerName = "github.com/signalbox-ai/signalbox/internal/gateway"

// w3c propagates traces as traceparent and tracestate, in HTTP headers or in _meta.
var w3c propagation.TraceContext

// WithTrace takes the trace of a caller's HTTP request. A trace in the _meta of a call has
// precedence.
func WithTrace(ctx context.Context, h http.Header) context.Context {
	return w3c.Extract(ctx, propagation.HeaderCarrier(h))
}

// WithMetaTrace takes the trace in the _meta of a call, for work done before the call.
func WithMetaTrace(ctx context.Context, meta json.RawMessage) context.Context {
	return w3c.Extract(ctx, metaCarrier(meta))
}

// MetaTrace sets the trace of ctx in a _meta object. Without a trace, _meta stays
// unchanged.
func MetaTrace(ctx context.Context, meta json.RawMessage) json.RawMessage {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return meta
	}
	return setMeta(ctx, meta, true)
}

// SetTrace sets the trace of ctx in the headers of a request to an HTTP
// upstream.
func SetTrace(ctx context.Context, h http.Header) { w3c.Inject(ctx, propagation.HeaderCarrier(h)) }

// span is the span of a call; nil: none.
type span struct {
	tracer trace.Tracer
	span   trace.Span
	wait   trace.Span // nil: the call has not waited
}

// startSpan starts the span of a call, named by the MCP conventions of OpenTelemetry, and puts
// the trace into the _meta for the upstream.
func (g *Gateway) startSpan(ctx context.Context, e *entry, c *Call) (context.Context, *span) {
	ctx = WithMetaTrace(ctx, c.Meta)
	if g.tracer == nil {
		if trace.SpanContextFromContext(ctx).IsValid() {
			c.Meta = setMeta(ctx, c.Meta, false)
		}
		return ctx, nil
	}
	attrs := []attribute.KeyValue{
		attribute.String("mcp.method.name", "tools/call"),
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", e.tool.Name),
		attribute.String("signalbox.tool.server", e.tool.Server),
		attribute.String("signalbox.tool.kind", string(e.tool.Kind)),
	}
	if e.tool.Queue != "" {
		attrs = append(attrs, attribute.String("signalbox.tool.queue", e.tool.Queue))
	}
	if c.Caller.Agent != "" {
		attrs = append(attrs, attribute.String("gen_ai.agent.name", c.Caller.Agent))
	}
	if c.Caller.Execution != "" {
		attrs = append(attrs, attribute.String("signalbox.queue_id", c.Caller.Execution))
	}
	if c.Caller.Session != "" {
		attrs = append(attrs, attribute.String("signalbox.session", SessionLabel(c.Caller.Session)))
	}
	ctx, s := g.tracer.Start(ctx, "tools/call "+e.tool.Name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
	c.Meta = setMeta(ctx, c.Meta, true)
	return ctx, &span{tracer: g.tracer, span: s}
}

// waits starts the span for the wait.
func (s *span) waits(ctx context.Context, queue string, since time.Time) {
	if s != nil {
		_, s.wait = s.tracer.Start(ctx, "tool queue wait", trace.WithTimestamp(since), trace.WithAttributes(attribute.String("signalbox.tool.queue", queue)))
	}
}

func (s *span) waitOver(err error) {
	if s == nil || s.wait == nil {
		return
	}
	if err != nil {
		s.wait.RecordError(err)
		s.wait.SetStatus(codes.Error, "no slot")
	}
	s.wait.End()
}

func (s *span) end(r Result, err error, outcome string) {
	if s == nil {
		return
	}
	switch {
	case err != nil:
		s.span.RecordError(err)
		s.span.SetStatus(codes.Error, outcome)
		s.span.SetAttributes(attribute.String("error.type", outcome))
	case r.IsError:
		s.span.SetStatus(codes.Error, "the tool failed")
		s.span.SetAttributes(attribute.String("error.type", "tool_error")) // the value that the conventions name
	}
	s.span.End()
}

// setMeta sets the trace of ctx in a _meta object; replace: even if it has a trace.
// Everything else stays unchanged.
func setMeta(ctx context.Context, meta json.RawMessage, replace bool) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if len(meta) > 0 && (json.Unmarshal(meta, &fields) != nil || fields == nil) {
		return meta // not an object: left as it is
	}
	if _, there := fields["traceparent"]; there && !replace {
		return meta
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	for _, k := range w3c.Fields() {
		if v := carrier.Get(k); v != "" {
			fields[k], _ = json.Marshal(v) // a string always marshals
		} else if replace {
			delete(fields, k)
		}
	}
	out, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 {
		return meta
	}
	return out
}

// metaCarrier reads the trace from a _meta object.
func metaCarrier(meta json.RawMessage) propagation.TextMapCarrier {
	carrier := propagation.MapCarrier{}
	if !bytes.Contains(meta, []byte(`"traceparent"`)) {
		return carrier
	}
	var fields struct {
		Parent string `json:"traceparent"`
		State  string `json:"tracestate"`
	}
	if json.Unmarshal(meta, &fields) == nil {
		carrier.Set("traceparent", fields.Parent)
		carrier.Set("tracestate", fields.State)
	}
	return carrier
}

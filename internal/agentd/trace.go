package agentd

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const tracerName = "github.com/signalbox-ai/signalbox/internal/agentd"

var w3c propagation.TraceContext

// withTrace takes over the trace of a request.
func withTrace(req *http.Request) context.Context {
	return w3c.Extract(req.Context(), propagation.HeaderCarrier(req.Header))
}

// runTrace is the trace of a run. Its span has neither prompt nor message.
type runTrace struct {
	caller trace.SpanContext // of who gave the task
	span   trace.Span        // nil: none is made
}

// begin starts the span of a run, before anything of it is.
func (t *runTrace) begin(r *run) {
	if r.d.tracer == nil {
		return
	}
	rec := r.record()
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), t.caller)
	_, t.span = r.d.tracer.Start(ctx, "execution", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.agent.name", r.d.cfg.Name),
		attribute.String("signalbox.agent.kind", r.d.cfg.Kind),
		attribute.String("signalbox.queue_id", rec.QueueID),
		attribute.String("signalbox.task_id", rec.TaskID),
		attribute.Int64("signalbox.fence", rec.Fence),
		attribute.Int("signalbox.slot", rec.Slot),
		attribute.Bool("signalbox.isolated", rec.Isolated),
	))
}

func (t *runTrace) end(r *run, v *verdict) {
	if t.span == nil {
		return
	}
	t.span.SetAttributes(attribute.String("signalbox.state", v.state))
	if m := r.job.model; m != "" {
		t.span.SetAttributes(attribute.String("gen_ai.request.model", m))
	}
	if v.out.ExitCode != nil {
		t.span.SetAttributes(attribute.Int("process.exit.code", *v.out.ExitCode))
	}
	if u := v.out.Usage; u != nil {
		t.span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", u.Input), attribute.Int64("gen_ai.usage.output_tokens", u.Output))
	}
	if v.errType != "" && v.state != stateCancelled {
		t.span.SetStatus(codes.Error, v.errType)
		t.span.SetAttributes(attribute.String("error.type", v.errType))
	}
	t.span.End()
}

// parent is what a run's program goes on with: its traceparent, "" for none.
func (t *runTrace) parent() string {
	sc := t.caller
	if t.span != nil {
		sc = t.span.SpanContext()
	}
	if !sc.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}

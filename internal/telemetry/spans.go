package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox"
)

// spanData is a finished span.
type spanData struct {
	name       string
	kind       trace.SpanKind
	parent     trace.SpanContext
	id         trace.SpanID // zero: any
	start, end time.Time
	attrs      []attribute.KeyValue
	fault      string             // "": success
	parked     *signalbox.Parking // nil: it did not end at a gate
	after      trace.SpanID       // the run that it continues, of the same trace; zero: none
}

func (t *Traces) emit(s spanData) {
	if !s.parent.IsValid() {
		return
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), s.parent)
	if s.id.IsValid() {
		ctx = context.WithValue(ctx, spanIDKey{}, s.id)
	}
	options := []trace.SpanStartOption{trace.WithTimestamp(s.start), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attrs...)}
	if s.after.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: s.parent.WithSpanID(s.after)}))
	}
	_, span := t.tracer.Start(ctx, s.name, options...)
	if s.fault != "" {
		span.SetStatus(codes.Error, s.fault)
		span.SetAttributes(attribute.String("error.type", s.fault))
	}
	end := s.end
	if end.Before(s.start) {
		end = s.start
	}
	if p := s.parked; p != nil {
		attrs := []attribute.KeyValue{attribute.String("signalbox.gate", string(p.Kind))}
		if p.Name != "" {
			attrs = append(attrs, attribute.String("signalbox.account", p.Name))
		}
		if !p.Until.IsZero() {
			attrs = append(attrs, attribute.String("signalbox.until", p.Until.UTC().Format(time.RFC3339)))
		}
		span.AddEvent("parked", trace.WithTimestamp(end), trace.WithAttributes(attrs...))
	}
	span.End(trace.WithTimestamp(end))
}

// emitWait creates the span of a wait that ended, by a claim or by the end of the task.
func (t *Traces) emitWait(parent trace.SpanContext, task *signalbox.Task, since, until time.Time) {
	if since.IsZero() {
		since = task.CreatedAt
	}
	s := spanData{name: "wait", kind: trace.SpanKindInternal, parent: parent, start: since, end: until, attrs: taskAttributes(task)}
	if task.State.Terminal() {
		s.attrs, s.fault = append(s.attrs, stateAttributes(task)...), faultOf(task)
	}
	t.emit(s)
}

// emitAttempt creates the span of an attempt that ended at end. task is the row after it, kind the event.
func (t *Traces) emitAttempt(f *flight, task *signalbox.Task, kind signalbox.EventKind, end time.Time) {
	attrs := append(taskAttributes(task), stateAttributes(task)...)
	attrs = append(attrs,
		attribute.String("signalbox.agent", f.task.Agent),
		attribute.Int64("signalbox.fence", f.task.Fence),
		attribute.Int("signalbox.slot", f.task.Slot),
		attribute.Int("signalbox.claim", f.task.Claims),
	)
	if f.adopted {
		attrs = append(attrs, attribute.Bool("signalbox.adopted", true))
	}
	attempt := spanData{
		name: "attempt", kind: trace.SpanKindInternal, parent: f.parent, id: spanID("attempt", &f.task),
		start: f.task.DispatchedAt, end: end, attrs: attrs, fault: faultOf(task),
	}
	switch {
	case task.State == signalbox.Parked:
		attempt.parked = task.Parking
	case !task.State.Terminal():
		attempt.fault = string(kind) // it is retried
	}
	t.emit(attempt)
	if f.task.StartedAt.IsZero() {
		return
	}
	run := attempt
	run.name, run.kind, run.id, run.start = "run", trace.SpanKindClient, spanID("run", &f.task), f.task.StartedAt
	run.parent, run.after = f.parent.WithSpanID(attempt.id), f.after
	t.emit(run)
}

// faultOf is the failure of an ended task, in a word; "" if it was completed or cancelled.
func faultOf(task *signalbox.Task) string {
	if task.State == signalbox.Failed || task.State == signalbox.Timeout {
		return string(task.Reason)
	}
	return ""
}

func taskAttributes(t *signalbox.Task) []attribute.KeyValue {
	mode := cmp.Or(string(t.Mode), "queue")
	attrs := []attribute.KeyValue{
		attribute.String("signalbox.queue_id", t.ID),
		attribute.String("signalbox.queue", t.Queue),
		attribute.String("signalbox.mode", mode),
		attribute.String("signalbox.source", string(t.Source)),
	}
	for _, a := range []struct{ key, value string }{
		{"signalbox.source_job", t.SourceJob}, {"signalbox.parent_id", t.ParentID}, {"signalbox.retry_of", t.RetryOf}, {"gen_ai.tool.name", t.Tool},
	} {
		if a.value != "" {
			attrs = append(attrs, attribute.String(a.key, a.value))
		}
	}
	return attrs
}

func stateAttributes(t *signalbox.Task) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("signalbox.state", string(t.State)), attribute.Int("signalbox.attempts", t.Attempts)}
	if t.Reason != "" {
		attrs = append(attrs, attribute.String("signalbox.reason", string(t.Reason)))
	}
	return attrs
}

// spanID is the id of a span of an execution. It is derived from the row, so any director that follows the
// execution derives the same.
func spanID(name string, t *signalbox.Task) (id trace.SpanID) {
	h := sha256.New()
	h.Write([]byte(name + "\x00" + t.ID + "\x00"))
	var fence [8]byte
	binary.BigEndian.PutUint64(fence[:], uint64(t.Fence))
	h.Write(fence[:])
	copy(id[:], h.Sum(nil))
	if !id.IsValid() {
		id[7] = 1
	}
	return id
}

type spanIDKey struct{}

// idGenerator generates random ids, and uses the given id of a span that has one.
type idGenerator struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g idGenerator) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // it never fails
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	id, _ = ctx.Value(spanIDKey{}).(trace.SpanID)
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}

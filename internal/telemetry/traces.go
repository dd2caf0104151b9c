package telemetry

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

const tracerName = "github.com/signalbox-ai/signalbox/internal/telemetry"

var w3c propagation.TraceContext

// Traces creates the spans of a task, from its submit to its end:
//
//	submit                       child of the caller's span, or a new trace; its traceparent is stored with the task
//	├─ wait                      from the submit, or the end of the previous attempt, to the claim
//	└─ attempt                   from the claim to the end of the attempt
//	   └─ run                    from the acceptance; what the agent does is part of it; it links to the
//	      │                      previous run, if that was parked
//	      └─ execution, tools/call …
//
// Spans are created from the rows once these are durable, and their ids from the queue_id and the fence: a
// director that takes over an execution creates the same span, with its full duration. Spans contain neither
// prompts nor messages.
type Traces struct {
	engine *engine.Engine
	tracer trace.Tracer // nil: traces are passed on, and no spans created

	mu      sync.Mutex
	flights map[string]*flight // in flight, by task id
	back    map[string]before  // of tasks that wait again

	unclaimed chan signalbox.Task // ended tasks whose trace must be read from the store
	ended     chan struct{}       // closed when no more come
	cancel    context.CancelFunc
}

// flight is an execution.
type flight struct {
	parent  trace.SpanContext // of the submit; invalid: it is not traced
	task    signalbox.Task
	adopted bool
	after   trace.SpanID // the previous run, which was parked; zero: none
}

// before is the previous attempt of a task that waits again.
type before struct {
	ended time.Time    // zero: unknown
	run   trace.SpanID // the run that was parked; zero: it was not
}

// Bounds of what is kept. Beyond them spans are omitted.
const (
	maxFlights   = 100_000
	maxUnclaimed = 1000
)

// NewTraces creates the spans of an engine's tasks. If tp is nil, none are created, and the traces of callers
// are passed to the agents. Call it before the engine is used.
func NewTraces(e *engine.Engine, tp trace.TracerProvider) *Traces {
	t := &Traces{engine: e, cancel: func() {}, ended: make(chan struct{})}
	e.TraceSubmits(t.submit)
	if tp == nil {
		close(t.ended)
		return t
	}
	t.tracer = tp.Tracer(tracerName)
	t.flights, t.back = map[string]*flight{}, map[string]before{}
	t.unclaimed = make(chan signalbox.Task, maxUnclaimed)
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(context.Background())
	go t.emitUnclaimed(ctx)
	e.Observe(t.observe)
	return t
}

// Close ends the goroutine of Traces.
func (t *Traces) Close() {
	t.cancel()
	<-t.ended
}

// submit is engine.SubmitTrace.
func (t *Traces) submit(ctx context.Context, parent string) (string, func(engine.Receipt, error)) {
	ctx = t.Context(ctx, parent)
	if t.tracer == nil {
		return traceparent(trace.SpanContextFromContext(ctx)), func(engine.Receipt, error) {}
	}
	_, span := t.tracer.Start(ctx, "submit", trace.WithSpanKind(trace.SpanKindProducer))
	return traceparent(span.SpanContext()), func(r engine.Receipt, err error) {
		if err != nil {
			code := string(signalbox.CodeOf(err))
			span.SetStatus(codes.Error, code)
			span.SetAttributes(attribute.String("error.type", code))
		} else if span.IsRecording() {
			span.SetAttributes(taskAttributes(&r.Task)...)
			span.SetAttributes(attribute.Bool("signalbox.replayed", r.Replayed))
		}
		span.End()
	}
}

// Context adds the trace of an execution to ctx, unless ctx has one. A queueID "" is ignored.
func (t *Traces) Context(ctx context.Context, queueID string) context.Context {
	if t == nil || t.tracer == nil || queueID == "" || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	t.mu.Lock()
	f := t.flights[queueID]
	t.mu.Unlock()
	if f == nil || !f.parent.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, f.parent.WithSpanID(spanID("run", &f.task)))
}

// Execution implements push.Traces: what an agent does for the task is part of the run.
func (t *Traces) Execution(task *signalbox.Task, stored string, adopted bool) string {
	parent := parseTraceparent(stored)
	if !parent.IsValid() {
		return ""
	}
	if t.tracer == nil {
		return stored
	}
	if adopted {
		t.keep(task, parent, true)
	}
	return traceparent(parent.WithSpanID(spanID("run", task)))
}

// keep records an execution. It returns when the previous attempt ended.
func (t *Traces) keep(task *signalbox.Task, parent trace.SpanContext, adopted bool) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.back[task.ID]
	delete(t.back, task.ID)
	if len(t.flights) < maxFlights {
		t.flights[task.ID] = &flight{parent: parent, task: *task, adopted: adopted, after: was.run}
	}
	return was.ended
}

// observe records a durable change, on the goroutine that made it.
func (t *Traces) observe(a *engine.Applied) {
	switch {
	case a.Task.ID == "":
	case a.Kind == signalbox.EventUnpark: // another director, or this one before a restart, may have parked the run
		t.unparked(&a.Task)
	case a.Foreign: // the director that made the change creates the span
		if a.From.InFlight() && !a.Task.State.InFlight() {
			t.forget(&a.Task)
		}
	case a.Kind == signalbox.EventClaim:
		parent := parseTraceparent(a.Trace)
		since := t.keep(&a.Task, parent, false)
		t.emitWait(parent, &a.Task, since, a.Task.DispatchedAt)
	case a.From.InFlight() && !a.Task.State.InFlight():
		t.attemptEnded(a)
	case a.From.InFlight():
		t.mu.Lock()
		if f := t.flights[a.Task.ID]; f != nil && f.task.Fence == a.Task.Fence {
			f.task = a.Task
		}
		t.mu.Unlock()
	case a.Task.State.Terminal():
		t.readLater(a.Task)
	}
}

// forget drops an execution that another director ended or took over.
func (t *Traces) forget(task *signalbox.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.flights[task.ID]; f != nil && f.task.Fence == task.Fence {
		delete(t.flights, task.ID)
	}
	if task.State.Terminal() {
		delete(t.back, task.ID)
	}
}

// unparked records the run of a task that continues: the row still has the run's fence.
func (t *Traces) unparked(task *signalbox.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.back[task.ID]; !known && len(t.back) < maxFlights {
		was := before{run: spanID("run", task)}
		if task.Parking != nil {
			was.ended = task.Parking.At
		}
		t.back[task.ID] = was
	}
}

// attemptEnded creates the spans of an attempt that ended.
func (t *Traces) attemptEnded(a *engine.Applied) {
	end := cmp.Or(a.Task.EndedAt, t.engine.Now())
	if a.Task.State == signalbox.Parked {
		end = a.Task.Parking.At
	}
	t.mu.Lock()
	f := t.flights[a.Task.ID]
	delete(t.flights, a.Task.ID)
	if !a.Task.State.Terminal() && len(t.back) < maxFlights {
		was := before{ended: end}
		if a.Task.State == signalbox.Parked && f != nil && !f.task.StartedAt.IsZero() {
			was.run = spanID("run", &f.task)
		}
		t.back[a.Task.ID] = was
	}
	t.mu.Unlock()
	if f != nil {
		t.emitAttempt(f, &a.Task, a.Kind, end)
	} else if a.Task.State.Terminal() {
		t.readLater(a.Task)
	}
}

// readLater passes an ended task to a goroutine that may read the store.
func (t *Traces) readLater(task signalbox.Task) {
	select {
	case t.unclaimed <- task:
	default:
	}
}

// emitUnclaimed creates spans of tasks that ended without an execution here.
func (t *Traces) emitUnclaimed(ctx context.Context) {
	defer close(t.ended)
	for {
		select {
		case task := <-t.unclaimed:
			t.emitEnd(task)
		case <-ctx.Done():
			for range len(t.unclaimed) {
				t.emitEnd(<-t.unclaimed)
			}
			return
		}
	}
}

func (t *Traces) emitEnd(task signalbox.Task) {
	t.mu.Lock()
	since := t.back[task.ID].ended
	delete(t.back, task.ID)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	r, err := t.engine.Read().Request(ctx, task.ID)
	if err != nil {
		return // pruned, or the store does not answer: omit the trace
	}
	parent := parseTraceparent(r.Trace)
	if task.StartedAt.IsZero() {
		t.emitWait(parent, &task, since, task.EndedAt)
		return
	}
	t.emitAttempt(&flight{parent: parent, task: task}, &task, "", task.EndedAt)
}

func parseTraceparent(s string) trace.SpanContext {
	if s == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": s}))
}

func traceparent(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}

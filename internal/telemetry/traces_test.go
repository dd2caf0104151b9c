package telemetry_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// traced is an engine whose tasks are traced to a receiver.
type traced struct {
	*engine.Engine
	t        *testing.T
	receiver *receiver
	otel     *telemetry.OTel
	traces   *telemetry.Traces
	agent    signalbox.Agent
	stored   string // traceparent of the last submit
}

func newTraced(t *testing.T) *traced {
	t.Helper()
	x := &traced{t: t, receiver: newReceiver(t)}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", x.receiver.URL)
	x.Engine, _, x.agent = newEngine(t)
	x.trace()
	return x
}

// trace starts to trace the engine's tasks.
func (x *traced) trace() {
	x.otel = telemetry.StartOTel(x.t.Context(), telemetry.OTelOptions{})
	x.traces = x.otel.Tasks(x.Engine)
	x.Observe(func(a *engine.Applied) {
		if a.Kind == signalbox.EventSubmit {
			x.stored = a.Trace
		}
	})
}

func (x *traced) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// submit submits as a caller with that traceparent, "" for none.
func (x *traced) submit(parent string, n engine.NewTask) signalbox.Task {
	x.t.Helper()
	if n.Prompt == "" && n.Mode != signalbox.ModeTool {
		n.Prompt = "the prompt is a secret"
	}
	got, err := x.Submit(under(parent), n)
	x.must(err)
	return got.Task
}

func under(parent string) context.Context {
	if parent == "" {
		return context.Background()
	}
	return gateway.WithMetaTrace(context.Background(), []byte(`{"traceparent":"`+parent+`"}`))
}

// claim gives the next task to the agent, like the dispatcher, and returns the agent's traceparent.
func (x *traced) claim() (c engine.Claimed, traceparent string) {
	x.t.Helper()
	c = claim(x.t, x.Engine, x.agent)
	return c, x.traces.Execution(&c.Task, c.Request.Trace, false)
}

func (x *traced) accept(c engine.Claimed) signalbox.Task {
	x.t.Helper()
	t, err := x.Accept(x.t.Context(), c.Task, "task-1", "")
	x.must(err)
	return t
}

func (x *traced) finish(t signalbox.Task, reason signalbox.Reason) {
	x.t.Helper()
	_, err := x.Finish(x.t.Context(), t, engine.Outcome{Reason: reason, Message: "the message is a secret"})
	x.must(err)
}

// spans ends the tracing and returns the received spans, by name, in the order of their ends.
func (x *traced) spans() map[string][]*spanpb.Span {
	x.t.Helper()
	x.must(x.otel.Close())
	x.receiver.mu.Lock()
	defer x.receiver.mu.Unlock()
	out := map[string][]*spanpb.Span{}
	for _, s := range x.receiver.spans {
		out[s.Name] = append(out[s.Name], s)
		if strings.Contains(s.String(), "secret") {
			x.t.Errorf("a span tells a secret: %v", s)
		}
	}
	return out
}

// one returns the only span of a name.
func one(t *testing.T, spans map[string][]*spanpb.Span, name string) *spanpb.Span {
	t.Helper()
	if len(spans[name]) != 1 {
		t.Fatalf("%d spans %s: %v", len(spans[name]), name, spans)
	}
	return spans[name][0]
}

func wantParent(t *testing.T, s *spanpb.Span, trace, parent string) {
	t.Helper()
	if hexOf(s.TraceId) != trace || hexOf(s.ParentSpanId) != parent {
		t.Errorf("%s: trace %s parent %s, want %s and %s", s.Name, hexOf(s.TraceId), hexOf(s.ParentSpanId), trace, parent)
	}
}

func attr(s *spanpb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			v := a.Value
			if v.GetStringValue() != "" {
				return v.GetStringValue()
			}
			return strings.Trim(strings.SplitN(v.String(), ":", 2)[1], `"`)
		}
	}
	return ""
}

// From the caller's span to the end of the run there is one trace, each span is a child of the previous one,
// and the agent gets the run's span.
func TestATaskIsOneTraceFromSubmitToResult(t *testing.T) {
	x := newTraced(t)
	task := x.submit(callersParent, engine.NewTask{Source: signalbox.SourceScheduler, SourceJob: "nightly", Env: map[string]string{"KEY": "a secret"}})
	c, told := x.claim()
	x.finish(x.accept(c), signalbox.ReasonCompleted)
	spans := x.spans()
	submit, wait, attempt, run := one(t, spans, "submit"), one(t, spans, "wait"), one(t, spans, "attempt"), one(t, spans, "run")
	wantParent(t, submit, callersTrace, callersSpan)
	wantParent(t, wait, callersTrace, hexOf(submit.SpanId))
	wantParent(t, attempt, callersTrace, hexOf(submit.SpanId))
	wantParent(t, run, callersTrace, hexOf(attempt.SpanId))
	if want := "00-" + callersTrace + "-" + hexOf(run.SpanId) + "-01"; told != want {
		t.Errorf("the agent is told of %s, want %s", told, want)
	}
	if want := "00-" + callersTrace + "-" + hexOf(submit.SpanId) + "-01"; x.stored != want || c.Request.Trace != want {
		t.Errorf("stored %s and %s, want %s", x.stored, c.Request.Trace, want)
	}
	for key, want := range map[string]string{
		"signalbox.queue_id": task.ID, "signalbox.queue": "work", "signalbox.agent": "coder", "signalbox.fence": "1",
		"signalbox.state": "completed", "signalbox.reason": "completed", "signalbox.source": "scheduler", "signalbox.source_job": "nightly",
	} {
		if got := attr(run, key); got != want {
			t.Errorf("run: %s is %q, want %q", key, got, want)
		}
	}
	if run.Status.GetCode() != spanpb.Status_STATUS_CODE_UNSET || run.StartTimeUnixNano < attempt.StartTimeUnixNano || run.EndTimeUnixNano != attempt.EndTimeUnixNano {
		t.Errorf("attempt %v, run %v", attempt, run)
	}
}

// An attempt that did not lead to a run is a span with its failure, and the next attempt has its own wait and
// span, from the moment at which the previous one ended.
func TestEachAttemptIsASpan(t *testing.T) {
	x := newTraced(t)
	x.spans()
	var readings atomic.Int64
	now := time.Now()
	x.Engine = engine.New(storeOf(x), engine.Options{Sealer: sealer(t), Now: func() time.Time {
		return now.Add(time.Duration(readings.Add(1)) * time.Millisecond) // two readings are two moments
	}})
	x.SetLive(fleet{x.agent})
	x.trace()
	x.submit("", engine.NewTask{})
	c, first := x.claim()
	_, err := x.Busy(t.Context(), c.Task, "agent busy")
	x.must(err)
	c, second := x.claim()
	x.finish(x.accept(c), signalbox.ReasonAgentError)
	if first == second {
		t.Error("two executions are told of one span")
	}
	spans := x.spans()
	submit := one(t, spans, "submit")
	if len(submit.ParentSpanId) != 0 || len(spans["wait"]) != 2 || len(spans["attempt"]) != 2 || len(spans["run"]) != 1 {
		t.Fatalf("%v", spans)
	}
	busy, failed := spans["attempt"][0], spans["attempt"][1]
	if busy.Status.GetMessage() != "busy" || attr(busy, "signalbox.state") != "pending" {
		t.Errorf("%v", busy)
	}
	if failed.Status.GetMessage() != "agent_error" || attr(failed, "signalbox.claim") != "2" {
		t.Errorf("%v", failed)
	}
	if again := spans["wait"][1]; again.StartTimeUnixNano != busy.EndTimeUnixNano {
		t.Errorf("the second wait does not begin as the first attempt ends: %v, %v", again, busy)
	}
}

// A director that takes over an execution creates the same span as the previous director would have: the
// agent's spans keep their parent.
func TestARestartedDirectorTellsTheSameSpan(t *testing.T) {
	x := newTraced(t)
	x.submit("", engine.NewTask{})
	c, told := x.claim()
	x.accept(c)
	first := x.spans() // the first director is gone, with the run in flight
	if len(first["attempt"])+len(first["run"]) != 0 {
		t.Fatalf("a run that goes on has ended: %v", first)
	}
	x.Engine = engine.New(storeOf(x), engine.Options{Sealer: sealer(t)})
	x.trace()
	again, err := x.Load(t.Context(), c.Task.ID)
	x.must(err)
	if got := x.traces.Execution(&again.Task, again.Request.Trace, true); got != told {
		t.Errorf("now %s, before %s", got, told)
	}
	x.finish(again.Task, signalbox.ReasonCompleted)
	spans := x.spans()
	submit, attempt, run := one(t, spans, "submit"), one(t, spans, "attempt"), one(t, spans, "run")
	wantParent(t, attempt, hexOf(submit.TraceId), hexOf(submit.SpanId))
	wantParent(t, run, hexOf(submit.TraceId), hexOf(attempt.SpanId))
	if !strings.Contains(told, hexOf(run.SpanId)) || attr(run, "signalbox.adopted") == "" {
		t.Errorf("told %s, run %v", told, run)
	}
}

// A parked run has not failed, and the run that continues it links to it, even if the director was restarted
// meanwhile.
func TestAParkedRunIsLinkedToTheNext(t *testing.T) {
	for _, restart := range []bool{false, true} {
		x := newTraced(t)
		x.agent.Account = "claude-1"
		x.SetLive(fleet{x.agent})
		x.submit("", engine.NewTask{})
		parked := park(t, x.Engine, x.agent, accounts.Usage)
		if restart {
			x.spans()
			x.Engine = engine.New(storeOf(x), engine.Options{Sealer: sealer(t)})
			x.SetLive(fleet{x.agent})
			x.trace()
		}
		_, err := x.Unpark(t.Context(), parked.ID, "me")
		x.must(err)
		c, _ := x.claim()
		x.finish(x.accept(c), signalbox.ReasonCompleted)
		spans := x.spans()
		if len(spans["run"]) != 2 || len(spans["attempt"]) != 2 || len(spans["wait"]) != 2 {
			t.Fatalf("restart %v: %v", restart, spans)
		}
		first, second := spans["run"][0], spans["run"][1]
		if first.Status.GetMessage() != "" || attr(first, "error.type") != "" || attr(first, "signalbox.state") != "parked" || len(first.Links) != 0 {
			t.Errorf("restart %v: %v", restart, first)
		}
		if len(first.Events) != 1 || first.Events[0].Name != "parked" || !strings.Contains(first.Events[0].String(), "claude-1") {
			t.Errorf("restart %v: %v", restart, first.Events)
		}
		if len(second.Links) != 1 || hexOf(second.Links[0].SpanId) != hexOf(first.SpanId) || hexOf(second.Links[0].TraceId) != hexOf(first.TraceId) {
			t.Errorf("restart %v: %v", restart, second.Links)
		}
		if gap := int64(spans["wait"][1].StartTimeUnixNano) - int64(first.EndTimeUnixNano); gap < -int64(time.Millisecond) || gap > int64(time.Second) {
			t.Errorf("restart %v: the wait begins %d ns after the park", restart, gap)
		}
	}
}

// If a task ends while it waits, its wait span says so.
func TestWaitWithoutClaimIsASpan(t *testing.T) {
	x := newTraced(t)
	task := x.submit(callersParent, engine.NewTask{})
	_, err := x.Cancel(t.Context(), task.ID, "me")
	x.must(err)
	spans := x.spans()
	wait := one(t, spans, "wait")
	wantParent(t, wait, callersTrace, hexOf(one(t, spans, "submit").SpanId))
	if attr(wait, "signalbox.state") != "cancelled" {
		t.Errorf("%v", wait)
	}
}

// A refused submit is a span with the code; calls made in an execution are part of its trace.
func TestCallsOfAnExecutionAreOfItsTrace(t *testing.T) {
	x := newTraced(t)
	task := x.submit(callersParent, engine.NewTask{})
	c, told := x.claim()
	x.accept(c)
	by := signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: "coder"}
	_, err := x.Submit(t.Context(), engine.NewTask{Prompt: "p", By: by, CallerID: task.ID})
	x.must(err)
	if _, err := x.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: "nobody"}); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Fatal(err)
	}
	if got := gateway.MetaTrace(x.traces.Context(t.Context(), task.ID), nil); !strings.Contains(string(got), told) {
		t.Errorf("a tool is called under %s, want %s", got, told)
	}
	if ctx := under(callersParent); x.traces.Context(ctx, task.ID) != ctx {
		t.Error("the caller's own trace gave way")
	}
	spans := x.spans()["submit"]
	if len(spans) != 3 || spans[2].Status.GetMessage() != "not_found" {
		t.Fatalf("%v", spans)
	}
	if hexOf(spans[1].TraceId) != callersTrace || !strings.Contains(told, hexOf(spans[1].ParentSpanId)) {
		t.Errorf("the submit of an execution is elsewhere: %v", spans[1])
	}
}

// Without a receiver no span is created, and the caller's trace is passed to the agent unchanged. A caller's
// decision not to sample is respected.
func TestTraceIsPropagatedWithoutReceiver(t *testing.T) {
	e, _, a := newEngine(t)
	traces := telemetry.NewTraces(e, nil)
	defer traces.Close()
	for _, parent := range []string{callersParent, ""} {
		if _, err := e.Submit(under(parent), engine.NewTask{Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
		c := claim(t, e, a)
		if got := traces.Execution(&c.Task, c.Request.Trace, false); got != parent || c.Request.Trace != parent {
			t.Errorf("stored %q, told %q, want %q", c.Request.Trace, got, parent)
		}
	}
	x := newTraced(t)
	unsampled := strings.TrimSuffix(callersParent, "1") + "0"
	x.submit(unsampled, engine.NewTask{})
	c, told := x.claim()
	x.finish(x.accept(c), signalbox.ReasonCompleted)
	if !strings.HasSuffix(told, "-00") || len(x.spans()) != 0 {
		t.Errorf("told %s, spans %v", told, x.receiver.spans)
	}
}

func storeOf(x *traced) *memory.Store { return x.Read().(*memory.Store) }

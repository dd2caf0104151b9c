package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	parent  = "00-" + traceID + "-b7ad6b7169203331-01"
)

// traced returns a tracer provider and the recorder of its spans.
func traced(t *testing.T) (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p, r
}

// TestCallAndWaitSpans: the call's span is a child of the caller's span, and the wait's span
// a child of the call's. The upstream gets the call's span.
func TestCallAndWaitSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans, got := traced(t)
		p, letGo, _ := holder("s", tool("s__hold", "browser"), tool("s__click", "browser"))
		var meta string
		inner := p.onCall
		p.onCall = func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
			meta = string(c.Meta)
			return inner(ctx, c)
		}
		b := open(t, one("browser"), gateway.Options{Traces: spans}, p)
		b.call(t.Context(), gateway.Call{Tool: "s__hold"})
		synctest.Wait()
		done := b.call(t.Context(), gateway.Call{
			Tool: "s__click", Meta: json.RawMessage(`{"traceparent":"` + parent + `","tracestate":"a=b","n":12345678901234567890}`),
			Caller: gateway.Caller{Session: "secret-session", Agent: "coder", Execution: "queue-1"},
		})
		time.Sleep(2 * time.Second)
		letGo <- struct{}{}
		letGo <- struct{}{}
		if a := <-done; a.err != nil {
			t.Fatal(a.err)
		}
		synctest.Wait()
		var call, wait sdktrace.ReadOnlySpan
		for _, s := range got.Ended() {
			switch s.Name() {
			case "tools/call s__click":
				call = s
			case "tool queue wait":
				wait = s
			}
		}
		if call == nil || wait == nil || len(got.Ended()) != 3 {
			t.Fatalf("%d spans", len(got.Ended()))
		}
		if call.Parent().TraceID().String() != traceID || !call.Parent().IsRemote() || wait.Parent().SpanID() != call.SpanContext().SpanID() {
			t.Error("the spans are not connected")
		}
		if d := wait.EndTime().Sub(wait.StartTime()); d != 2*time.Second {
			t.Errorf("the wait is %v", d)
		}
		attrs := attribute.NewSet(call.Attributes()...)
		for k, want := range map[attribute.Key]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "s__click", "gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": "coder",
			"signalbox.tool.server": "s", "signalbox.tool.queue": "browser", "signalbox.queue_id": "queue-1", "signalbox.session": gateway.SessionLabel("secret-session"),
		} {
			if v, _ := attrs.Value(k); v.AsString() != want {
				t.Errorf("%s is %q, not %q", k, v.AsString(), want)
			}
		}
		if want := "00-" + traceID + "-" + call.SpanContext().SpanID().String() + "-01"; !strings.Contains(meta, want) || !strings.Contains(meta, `"n":12345678901234567890`) || !strings.Contains(meta, `"tracestate":"a=b"`) {
			t.Errorf("the upstream got %s", meta)
		}
	})
}

func TestSpanRecordsError(t *testing.T) {
	spans, got := traced(t)
	var r gateway.Result
	var err error
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__x", "browser")}, onCall: func(context.Context, gateway.Call) (gateway.Result, error) { return r, err }}
	b := open(t, one("browser"), gateway.Options{Traces: spans}, p)
	for _, c := range []struct {
		r    gateway.Result
		err  error
		kind string
	}{
		{gateway.Result{Content: text}, nil, ""},
		{gateway.Result{Content: text, IsError: true}, nil, "tool_error"},
		{gateway.Result{}, errors.New("EOF"), "tool_failed"},
	} {
		r, err = c.r, c.err
		_, _ = b.Call(t.Context(), gateway.Call{Tool: "s__x"})
		s := got.Ended()[len(got.Ended())-1]
		attrs := attribute.NewSet(s.Attributes()...)
		v, _ := attrs.Value("error.type")
		if v.AsString() != c.kind || (s.Status().Code == codes.Error) != (c.kind != "") {
			t.Errorf("error.type %q, status %v; want %q", v.AsString(), s.Status(), c.kind)
		}
	}
}

func TestWaitSpanRecordsError(t *testing.T) {
	spans, got := traced(t)
	b := open(t, one("browser"), gateway.Options{Traces: spans}, &scripted{name: "s", tools: []gateway.Tool{tool("s__x", "browser")}})
	held, err := takeAll(t, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer held[0].Release()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = b.Call(ctx, gateway.Call{Tool: "s__x", Progress: func(gateway.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, s := range got.Ended() {
		if s.Name() == "tool queue wait" && s.Status().Code == codes.Error && len(s.Events()) == 1 {
			return
		}
	}
	t.Errorf("no span of the wait with its error: %v", got.Ended())
}

// TestTraceIsPropagated: the upstream gets the trace even if the gateway
// records no spans.
func TestTraceIsPropagated(t *testing.T) {
	var meta, header string
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__x", "browser")}, onCall: func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		h := http.Header{}
		gateway.SetTrace(ctx, h)
		meta, header = string(c.Meta), h.Get("traceparent")
		return gateway.Result{}, nil
	}}
	b := open(t, one("browser"), gateway.Options{}, p)
	other := strings.Replace(parent, "b7ad", "0000", 1)
	byHeader := gateway.WithTrace(t.Context(), http.Header{"Traceparent": {parent}})
	for name, c := range map[string]struct {
		ctx                    context.Context
		meta, wantMeta, header string
	}{
		"none":          {t.Context(), ``, ``, ""},
		"in the header": {byHeader, `{"a":1}`, `{"a":1,"traceparent":"` + parent + `"}`, parent},
		"only there":    {byHeader, ``, `{"traceparent":"` + parent + `"}`, parent},
		"in both":       {byHeader, `{"traceparent":"` + other + `"}`, `{"traceparent":"` + other + `"}`, other},
		"in _meta":      {t.Context(), `{"traceparent":"` + other + `"}`, `{"traceparent":"` + other + `"}`, other},
		"nonsense":      {gateway.WithTrace(t.Context(), http.Header{"Traceparent": {"x"}}), `{"traceparent":7}`, `{"traceparent":7}`, ""},
		"no object":     {byHeader, `[1]`, `[1]`, parent},
	} {
		if _, err := b.Call(c.ctx, gateway.Call{Tool: "s__x", Meta: json.RawMessage(c.meta)}); err != nil {
			t.Fatal(err)
		}
		if meta != c.wantMeta || header != c.header {
			t.Errorf("%s: _meta %s, header %s", name, meta, header)
		}
	}
}

package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// receiver is an OTLP receiver that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*spanpb.Span
	metrics map[string]bool
	service string
	headers http.Header
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{metrics: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		data, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
			return
		}
		r.take(t, req, data)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(t *testing.T, req *http.Request, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = req.Header
	switch req.URL.Path {
	case "/v1/traces":
		var got tracepb.ExportTraceServiceRequest
		if err := proto.Unmarshal(data, &got); err != nil {
			t.Error(err)
		}
		for _, rs := range got.ResourceSpans {
			for _, a := range rs.Resource.Attributes {
				if a.Key == "service.name" {
					r.service = a.Value.GetStringValue()
				}
			}
			for _, ss := range rs.ScopeSpans {
				r.spans = append(r.spans, ss.Spans...)
			}
		}
	case "/v1/metrics":
		var got metricspb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(data, &got); err != nil {
			t.Error(err)
		}
		for _, rm := range got.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					r.metrics[m.Name] = true
				}
			}
		}
	default:
		t.Errorf("POST %s", req.URL.Path)
	}
}

// A queued call arrives at the receiver as a tree of spans, and the metrics with their usual names.
func TestSpansAndMetricsReachAReceiver(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
	reg := prometheus.NewRegistry()
	m := telemetry.NewToolMetrics(reg, false)
	o := telemetry.StartOTel(t.Context(), telemetry.OTelOptions{Gatherer: reg, Version: "1.0.0"})
	s := newTools(t, m, gateway.Options{Traces: o.Traces()})
	first := s.call(t.Context())
	<-s.begun
	done := make(chan error, 1)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	go func() {
		_, err := s.Gateway.Call(t.Context(), gateway.Call{Tool: "s__x", Meta: json.RawMessage(`{"traceparent":"00-` + trace + `-b7ad6b7169203331-01"}`)})
		done <- err
	}()
	<-s.queued
	s.letGo <- struct{}{}
	s.letGo <- struct{}{}
	if a, b := <-first, <-done; a != nil || b != nil {
		t.Fatal(a, b)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	byName := map[string]*spanpb.Span{}
	for _, span := range r.spans {
		if hexOf(span.TraceId) == trace {
			byName[span.Name] = span
		}
	}
	call, wait := byName["tools/call s__x"], byName["tool queue wait"]
	if call == nil || wait == nil || hexOf(call.ParentSpanId) != "b7ad6b7169203331" || !bytes.Equal(wait.ParentSpanId, call.SpanId) {
		t.Errorf("spans: %v", r.spans)
	}
	for _, name := range []string{"signalbox_tool_queue_depth", "signalbox_tool_queue_in_use", "signalbox_tool_queue_capacity", "signalbox_tool_queue_last_wait_ms",
		"signalbox_tool_queue_wait_duration_ms", "signalbox_tool_queue_refusals_total", "signalbox_tool_calls_total", "signalbox_tool_call_duration_seconds"} {
		if !r.metrics[name] && !r.metrics[strings.TrimSuffix(name, "_total")] {
			t.Errorf("no metric %s in %v", name, r.metrics)
		}
	}
	if r.service != "signalbox" || r.headers.Get("X-Key") != "secret" {
		t.Errorf("service %q, headers %v", r.service, r.headers)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// Nothing is set up without a configuration, or for an unsupported one.
func TestNothingIsSentUnlessAskedFor(t *testing.T) {
	const somewhere = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		env  map[string]string
		says string
	}{
		"no endpoint": {map[string]string{}, ""},
		"disabled":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": somewhere, "OTEL_SDK_DISABLED": "true"}, ""},
		"none":        {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": somewhere, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, ""},
		"no URL":      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "must be a URL such as http://localhost:4318"},
		"no protobuf": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": somewhere, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "only http/protobuf is spoken here"},
	} {
		var out syncBuffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		o := telemetry.StartOTel(t.Context(), telemetry.OTelOptions{Gatherer: prometheus.NewRegistry(), Log: log, Getenv: func(k string) string { return c.env[k] }})
		if o.Traces() != nil || c.says == "" && out.String() != "" || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %v, log: %s", name, o.Traces(), out.String())
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// With a receiver that accepts connections and never answers, or is not there, calls are as fast as ever, and
// Close is bounded.
func TestADeadReceiverStopsNothing(t *testing.T) {
	hang := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer silent.Close()
	defer close(hang)
	for name, url := range map[string]string{"silent": silent.URL, "not there": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			defer nothingLeft(t, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
			var out syncBuffer
			log := slog.New(slog.NewTextHandler(&out, nil))
			reg := prometheus.NewRegistry()
			m := telemetry.NewToolMetrics(reg, false)
			o := telemetry.StartOTel(t.Context(), telemetry.OTelOptions{Gatherer: reg, Log: log})
			s := newTools(t, m, gateway.Options{Traces: o.Traces()})
			close(s.letGo)
			begin := time.Now()
			for range 5000 { // more than the exporter buffers
				if err := quick(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("5,000 calls took %v", took)
			}
			begin = time.Now()
			_ = o.Close() // it reports that not all was sent
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("the end took %v", took)
			}
			if n := strings.Count(out.String(), "could not send"); n > 1 {
				t.Errorf("%d complaints within a minute: %s", n, out.String())
			}
		})
	}
}

// nothingLeft wants all goroutines to end. On a busy machine, the exporter's last ones take longer than
// goleak waits by default.
func nothingLeft(t *testing.T, options ...goleak.Option) {
	t.Helper()
	var err error
	for range 20 {
		if err = goleak.Find(options...); err == nil {
			return
		}
	}
	t.Error(err)
}

func quick(ctx context.Context, s *tools) error {
	_, err := s.Gateway.Call(ctx, gateway.Call{Tool: "s__x"})
	<-s.begun
	return err
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

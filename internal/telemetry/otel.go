package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	prombridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

const (
	// flushTimeout bounds the flush at the end of the program.
	flushTimeout = 2 * time.Second
	// complainEvery is the minimum time between log lines about a receiver that does not answer.
	complainEvery = time.Minute
	protocol      = "http/protobuf"
)

// OTelOptions configures StartOTel.
type OTelOptions struct {
	Service  string              // service.name, unless OTEL_SERVICE_NAME is set; "" is signalbox
	Gatherer prometheus.Gatherer // the metrics to send, each defined once; nil: none
	Version  string
	Log      *slog.Logger
	Getenv   func(string) string // nil: os.Getenv; decides what is enabled, while the exporters read the environment themselves
}

// OTel sends spans and metrics to an OpenTelemetry receiver.
type OTel struct {
	traces *sdktrace.TracerProvider
	tasks  *Traces // nil: there is no engine
	ends   []func(context.Context) error
}

// StartOTel sends spans and metrics over OTLP (HTTP, protobuf) if the environment names a receiver:
// OTEL_EXPORTER_OTLP_ENDPOINT, or the separate variables of traces and metrics. Otherwise it sets up nothing,
// at no cost.
//
// It never prevents a start, and a receiver that does not answer delays no call: an error in the environment
// is logged, and what cannot be sent is dropped, with an occasional log line.
func StartOTel(ctx context.Context, o OTelOptions) *OTel {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	warn := func(what string, err error) {
		if err != nil {
			o.Log.Warn(what, "error", err.Error())
		}
	}
	traces, err := wanted(o.Getenv, "TRACES")
	warn("no OpenTelemetry traces", err)
	metrics, err := wanted(o.Getenv, "METRICS")
	warn("no OpenTelemetry metrics", err)
	metrics = metrics && o.Gatherer != nil
	out := &OTel{}
	if !traces && !metrics {
		return out
	}
	otel.SetErrorHandler(&complaints{log: o.Log})
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", cmp.Or(o.Service, "signalbox")), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	warn("OpenTelemetry resource attributes", err) // valid attributes were accepted
	if traces {
		warn("no OpenTelemetry traces", out.startTraces(ctx, res))
	}
	if metrics {
		warn("no OpenTelemetry metrics", out.startMetrics(ctx, res, o.Gatherer))
	}
	o.Log.Info("OpenTelemetry is on", "traces", traces, "metrics", metrics)
	return out
}

// wanted reports whether the environment names a receiver of a signal. A receiver with an unsupported
// protocol is an error.
func wanted(getenv func(string) string, signal string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return false, nil
	}
	const general = "OTEL_EXPORTER_OTLP_"
	own := general + signal + "_"
	endpoint := cmp.Or(getenv(own+"ENDPOINT"), getenv(general+"ENDPOINT"))
	if endpoint == "" {
		return false, nil
	}
	if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false, fmt.Errorf("%sENDPOINT or %sENDPOINT must be a URL such as http://localhost:4318", own, general)
	}
	if p := cmp.Or(getenv(own+"PROTOCOL"), getenv(general+"PROTOCOL"), protocol); p != protocol {
		return false, fmt.Errorf("%sPROTOCOL or %sPROTOCOL is %q: only %s is spoken here; set it, with the receiver's port for it, often 4318", own, general, p, protocol)
	}
	return true, nil
}

func (t *OTel) startTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	t.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res), sdktrace.WithIDGenerator(idGenerator{}))
	t.ends = append(t.ends, func(ctx context.Context) error {
		err := t.traces.Shutdown(ctx)
		_ = exporter.Shutdown(ctx) // cancels a request in flight
		return err
	})
	return nil
}

func (t *OTel) startMetrics(ctx context.Context, res *resource.Resource, g prometheus.Gatherer) error {
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return err
	}
	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(prombridge.NewMetricProducer(prombridge.WithGatherer(g))))
	t.ends = append(t.ends, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res)).Shutdown)
	return nil
}

// Traces receives spans; nil if none are sent. It is gateway.Options.Traces.
func (t *OTel) Traces() trace.TracerProvider {
	if t.traces == nil {
		return nil
	}
	return t.traces
}

// Tasks creates the spans of an engine's tasks; see NewTraces. Call it once. Call Close after the last change
// of a task.
func (t *OTel) Tasks(e *engine.Engine) *Traces {
	t.tasks = NewTraces(e, t.Traces())
	return t.tasks
}

// Close flushes, for at most flushTimeout.
func (t *OTel) Close() error {
	if t.tasks != nil {
		t.tasks.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	errs := make([]error, len(t.ends))
	var group sync.WaitGroup
	for i, end := range t.ends {
		group.Go(func() { errs[i] = end(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// complaints logs errors of the exporters, at most one line a minute, since an unreachable receiver fails
// every batch.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle logs an error of an exporter.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complainEvery {
		c.last = now
		c.log.Warn("OpenTelemetry could not send", "error", err.Error())
	}
}

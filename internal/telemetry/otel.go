package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
)

const (
	// flushTimeout bounds what the end of the program waits for a receiver.
	flushTimeout = 2 * time.Second
	// complainEvery bounds the lines about a receiver that does not answer.
	complainEvery = time.Minute
)

// OTelOptions are what StartOTel needs.
type OTelOptions struct {
	Gatherer prometheus.Gatherer // the metrics to send, each defined there once; nil: none
	Version  string
	Log      *slog.Logger
	Getenv   func(string) string // nil: os.Getenv; decides what is on, while the exporters read the environment themselves
}

// OTel sends spans and metrics to an OpenTelemetry receiver.
type OTel struct {
	traces *sdktrace.TracerProvider
	ends   []func(context.Context) error
}

// StartOTel sends spans and metrics over OTLP (HTTP, protobuf) where the
// environment names a receiver: OTEL_EXPORTER_OTLP_ENDPOINT, or the variable of
// its own that traces and metrics each have. Without one nothing is set up and
// nothing is spent. A receiver that does not answer costs no call anything:
// what cannot be sent is dropped, with a line in the log now and then.
func StartOTel(ctx context.Context, o OTelOptions) (*OTel, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	traces, metrics := wanted(o.Getenv, "TRACES"), wanted(o.Getenv, "METRICS") && o.Gatherer != nil
	out := &OTel{}
	if !traces && !metrics {
		return out, nil
	}
	otel.SetErrorHandler(&complaints{log: o.Log})
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "signalbox"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return out, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if traces {
		err = out.startTraces(ctx, res)
	}
	if metrics && err == nil {
		err = out.startMetrics(ctx, res, o.Gatherer)
	}
	if err != nil {
		return out, errors.Join(fmt.Errorf("OpenTelemetry: %w", err), out.Close())
	}
	o.Log.Info("OpenTelemetry is on", "traces", traces, "metrics", metrics)
	return out, nil
}

// wanted reports whether the environment names a receiver of a signal that we
// can speak to.
func wanted(getenv func(string) string, signal string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return false
	}
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}

func (t *OTel) startTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	t.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	t.ends = append(t.ends, t.traces.Shutdown)
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

// Traces takes spans; nil when none are sent. It is gateway.Options.Traces.
func (t *OTel) Traces() trace.TracerProvider {
	if t.traces == nil {
		return nil
	}
	return t.traces
}

// Close sends what is left, within a bound.
func (t *OTel) Close() error {
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

// complaints are what the exporters report: one line a minute, for a receiver
// that is away is away for every batch.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle takes an error of an exporter.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complainEvery {
		c.last = now
		c.log.Warn("OpenTelemetry could not send", "error", err.Error())
	}
}

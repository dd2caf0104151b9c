// Package telemetry turns events into log lines, Prometheus metrics and OpenTelemetry spans.
//
// The engine writes its log lines through slog; NewLogger formats them like the seed. Metrics observes the
// engine's durable changes and reads the store's counts when it is scraped, so that a gauge cannot drift from
// the rows. Labels come from fixed sets, or are capped: no caller can make the number of series grow.
// docs/metrics.md lists all metrics, and a test compares it with the code.
//
// Traces creates the spans of a task from its row, once they are durable (docs/tracing.md).
package telemetry

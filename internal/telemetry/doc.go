// Package telemetry turns what happens into log lines, Prometheus metrics and
// OpenTelemetry spans.
//
// The engine writes its log lines through slog; NewLogger gives them the
// seed's shape. Metrics watches the engine's durable changes and reads the
// store's counts when it is scraped, so that a gauge cannot drift from the
// rows it stands for. Labels come from fixed sets, or are capped: no caller
// can make the number of series grow. docs/metrics.md has all of them, and a
// test compares it with what is there.
//
// Traces makes the spans of a task of its row, once what they tell is durable
// (docs/tracing.md).
package telemetry

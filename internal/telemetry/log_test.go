package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// line logs one record at a fixed time and returns the output.
func line(t *testing.T, format string, level slog.Level, msg string, args ...any) string {
	t.Helper()
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, format, slog.LevelDebug)
	if err != nil {
		t.Fatal(err)
	}
	r := slog.NewRecord(time.Date(2025, 1, 17, 10, 0, 0, 123e6, time.UTC), level, msg, 0)
	r.Add(args...)
	if err := log.Handler().Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The lines of the seed (work-queue, Observability).
func TestTextHasTheSeedsFormat(t *testing.T) {
	for _, c := range []struct {
		want  string
		level slog.Level
		args  []any
	}{
		{`2025-01-17T10:00:00Z INFO queue=task_added queue_id=queue-abc12345 depth=5 source=scheduler`, slog.LevelInfo,
			[]any{"queue", "task_added", "queue_id", "queue-abc12345", "depth", 5, "source", "scheduler"}},
		{`2025-01-17T10:00:00Z INFO queue=dispatch queue_id=queue-abc12345 agent=http://localhost:9000`, slog.LevelInfo,
			[]any{"queue", "dispatch", "queue_id", "queue-abc12345", "agent", "http://localhost:9000"}},
		{`2025-01-17T10:00:00Z INFO queue=dispatch_success queue_id=queue-abc12345 task_id=task-xyz789`, slog.LevelInfo,
			[]any{"queue", "dispatch_success", "queue_id", "queue-abc12345", "task_id", "task-xyz789"}},
		{`2025-01-17T10:00:00Z WARN queue=dispatch_failed queue_id=queue-def67890 error="agent busy" attempt=1/3`, slog.LevelWarn,
			[]any{"queue", "dispatch_failed", "queue_id", "queue-def67890", "error", "agent busy", "attempt", "1/3"}},
		{`2025-01-17T10:00:00Z WARN queue=dispatch_failed queue_id=queue-def67890 error="timeout" attempt=3/3 final=true`, slog.LevelWarn,
			[]any{"queue", "dispatch_failed", "queue_id", "queue-def67890", "error", "timeout", "attempt", "3/3", "final", true}},
		{`2025-01-17T10:00:00Z WARN queue=submit_rejected reason=queue_full depth=50`, slog.LevelWarn,
			[]any{"queue", "submit_rejected", "reason", "queue_full", "depth", 50}},
	} {
		if got := line(t, "text", c.level, "", c.args...); got != c.want+"\n" {
			t.Errorf("got  %swant %s", got, c.want)
		}
	}
}

func TestAForgedLineStaysInItsField(t *testing.T) {
	forged := "x\n2025-01-17T10:00:00Z INFO queue=task_added \x1b[31m\u2028 \"q\" a=b"
	for _, got := range []string{
		line(t, "text", slog.LevelInfo, "", "error", forged),
		line(t, "text", slog.LevelInfo, "", "path", forged),
		line(t, "text", slog.LevelInfo, forged),
		line(t, "text", slog.LevelInfo, "", forged, "v"),
		line(t, "text", slog.LevelInfo, "", slog.Group(forged, slog.String(forged, "v"))),
		line(t, "text", slog.LevelInfo, "", "error", errors.New(forged)),
		line(t, "json", slog.LevelInfo, "", "error", forged),
	} {
		if strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\u2028") {
			t.Errorf("a value broke out of its field: %q", got)
		}
	}
	if got := line(t, "text", slog.LevelInfo, "", "path", "a queue=task_added"); !strings.Contains(got, `path="a queue=task_added"`) {
		t.Errorf("a value could be taken for a field: %s", got)
	}
}

func TestGroupsAndAttributesKeepTheirPlace(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("not at this level")
	log.With("role", "director").WithGroup("http").Info("hello there", "status", 200, slog.Group("in", "ms", 1.5), "empty", "")
	_, rest, _ := strings.Cut(out.String(), " ")
	if want := "INFO hello there role=director http.status=200 http.in.ms=1.5 http.empty=\"\"\n"; rest != want {
		t.Errorf("got %q, want %q", rest, want)
	}
}

func TestJSONIsOneObjectALine(t *testing.T) {
	got := line(t, "json", slog.LevelWarn, "", "queue", "submit_rejected", "depth", 50)
	var fields map[string]any
	if err := json.Unmarshal([]byte(got), &fields); err != nil {
		t.Fatal(err)
	}
	if _, there := fields["msg"]; there || fields["time"] != "2025-01-17T10:00:00Z" || fields["level"] != "WARN" || fields["depth"] != 50.0 {
		t.Errorf("%s", got)
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	if _, err := telemetry.NewLogger(nil, "xml", nil); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Fatalf("%v", err)
	}
}

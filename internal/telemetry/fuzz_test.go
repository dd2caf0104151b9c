package telemetry

import (
	"strings"
	"testing"
)

// FuzzTraceparent: an accepted traceparent has a trace and a span, and a damaged stored one traces nothing,
// but does not make a task fail.
func FuzzTraceparent(f *testing.F) {
	for _, s := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "", "00-0-0-00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", strings.Repeat("0", 55), "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := parseTraceparent(s)
		if !got.IsValid() {
			return
		}
		if !strings.Contains(s, got.TraceID().String()) || !strings.Contains(s, got.SpanID().String()) {
			t.Fatalf("%q is read as %s of %s", s, got.SpanID(), got.TraceID())
		}
	})
}

// FuzzLevel: the name of a level is known, or refused with the list of names.
func FuzzLevel(f *testing.F) {
	for _, s := range []string{"debug", "INFO", "", "verbose", "5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := ParseLevel(s); err != nil && !strings.Contains(err.Error(), "info") {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

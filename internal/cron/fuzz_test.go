package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/cron"
)

// FuzzParse asserts that any text is refused with a message, or is due at increasing instants
// in whole minutes, and parses the same after String.
func FuzzParse(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, int64(1_774_746_000), "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, text string, unix int64, name string) {
		e, err := cron.Parse(text)
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 1000 {
				t.Fatalf("%q: the error has %d bytes", text, len(err.Error()))
			}
			return
		}
		again, err := cron.Parse(e.String())
		if err != nil || again != e {
			t.Fatalf("%q is read as %q, and that not again: %v", text, e, err)
		}
		if w := e.Describe(); w == "" || strings.Contains(w, "  ") || len(w) > 2000 {
			t.Fatalf("%q: words %q", text, w)
		}
		z, err := cron.Zone(name)
		if err != nil {
			z = time.UTC
		}
		at := time.Unix(unix%8_000_000_000, 0)
		for range 5 {
			next := e.Next(at, z)
			if next.IsZero() || !next.After(at) {
				t.Fatalf("%q in %s after %s: %s", text, z, at, next)
			}
			if between := e.Next(next.Add(-time.Second), z); !between.Equal(next) {
				t.Fatalf("%q in %s: %s, but a second before it %s", text, z, next, between)
			}
			at = next
		}
	})
}

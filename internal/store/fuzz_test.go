package store_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// FuzzSessionSpot: the cursor of a page of sessions is parsed as it was written, or refused with a short
// message.
func FuzzSessionSpot(f *testing.F) {
	for _, s := range []string{"", "1737108000000_abc", "_", "1_", "x_y", "99999999999999999999_a", "-1_a_b", strings.Repeat("x", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := store.ParseSessionCursor(s)
		if err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeValidation || len(err.Error()) > 1000 {
				t.Fatalf("%d bytes of cursor are refused with %d: %v", len(s), len(err.Error()), err)
			}
			return
		}
		if again, err := store.ParseSessionCursor(at.Cursor()); s != "" && (err != nil || again != at) {
			t.Fatalf("%q is read as %+v, and that as %+v, %v", s, at, again, err)
		}
	})
}

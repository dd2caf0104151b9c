package store_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// FuzzParseCursor: the cursor of a page of history is parsed or refused with a short message.
func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{"", "1737108000000-5", "-1--1", "1-2x", "1", "-", "99999999999999999999-1", "1-2 3", strings.Repeat("x", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _, err := store.ParseCursor(s)
		if err != nil && (signalbox.CodeOf(err) != signalbox.CodeValidation || len(err.Error()) > 1000) {
			t.Fatalf("%d bytes are refused with %d: %.2000s", len(s), len(err.Error()), err)
		}
	})
}

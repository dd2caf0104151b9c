package store_test

import (
	"slices"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// FuzzPlace: a cursor is one of a scan over these queues, or refused.
func FuzzPlace(f *testing.F) {
	queues := []string{"commands", "calls"}
	for _, p := range []store.ScanCursor{{}, {Phase: "running", Fence: 1}, {Phase: "waiting", Queue: "calls", N: 1, Key: -1, Place: 2}, {Phase: "waiting", Queue: "work"}, {Phase: "waiting", Queue: "calls", N: -1}, {Phase: "ended", Before: "x"}, {Phase: "gone"}} {
		f.Add(p.String())
	}
	f.Add("commands:1:2:3")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := store.ParseScanCursor(s, queues...)
		if ok && s != "" && (p.String() != s || p.N < 0 || (p.Phase == store.PhaseWaiting && !slices.Contains(queues, p.Queue))) {
			t.Fatalf("%q is read as %+v", s, p)
		}
	})
}

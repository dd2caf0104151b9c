// Package soak tells tests which form they run in: the short one of make test,
// or the long one of make soak, which SIGNALBOX_SOAK=1 asks for.
package soak

import (
	"os"
	"testing"
)

// On reports whether long forms were asked for.
func On() bool { return os.Getenv("SIGNALBOX_SOAK") != "" }

// Pick is short in make test, long in make soak.
func Pick[T any](short, long T) T {
	if On() {
		return long
	}
	return short
}

// Only leaves a test, or the rest of one, to make soak. catches names the
// faults that nothing in make test would find.
func Only(t testing.TB, catches string) {
	t.Helper()
	if !On() {
		t.Skipf("left to make soak, which finds by it: %s", catches)
	}
}

// Package soak tells tests which form they run in: the short one of make test,
// or the long one of make soak, which SIGNALBOX_SOAK=1 asks for.
package soak

import (
	"flag"
	"os"
	"strconv"
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

// Histories is how many random values or histories each check of package rapid
// tries in a test, unless -rapid.checks says so.
func Histories(t testing.TB, short, long int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks == nil || checks.Value.String() != checks.DefValue {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(Pick(short, long))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", checks.DefValue) })
}

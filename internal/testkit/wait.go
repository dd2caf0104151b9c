// Package testkit has the waits that tests of several packages use.
package testkit

import (
	"os"
	"time"
)

// patience bounds every wait. No successful wait takes that long, even on a
// busy machine. SIGNALBOX_TEST_PATIENCE shortens it, in tests that must fail.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SIGNALBOX_TEST_PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Minute
}()

// T is the part of a test, or of a property test, that a wait needs.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Wait polls a condition that has no signal, with increasing intervals. If
// there is a signal, wait for that instead.
func Wait(t T, what string, met func() bool) {
	t.Helper()
	if !Within(patience, met) {
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// Within is Wait with a given bound, for callers without a test: it reports
// whether the condition was met.
func Within(d time.Duration, met func() bool) bool {
	const first, longest = time.Millisecond, 50 * time.Millisecond
	for began := time.Now(); !met(); {
		waited := time.Since(began)
		if waited > d {
			return false
		}
		time.Sleep(min(max(first, waited/8), longest)) // an answer may cost a process of its own
	}
	return true
}

// Receive returns the next value of a channel.
func Receive[V any](t T, what string, c <-chan V) V {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
		panic("unreachable")
	}
}

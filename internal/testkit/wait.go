// Package testkit has what the tests of several packages wait with.
package testkit

import "time"

// patience bounds every wait. No good run takes that long, on a busy machine
// either.
const patience = 3 * time.Minute

// T is the part of a test, or of one with random values, that a wait needs.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Wait waits for a condition that nothing announces: it asks again and again,
// ever less often. Whatever has a signal is to be waited for by that.
func Wait(t T, what string, met func() bool) {
	t.Helper()
	if !Within(patience, met) {
		t.Fatalf("not within %s: %s", patience, what)
	}
}

// Within is Wait with a bound of its own, for callers that have no test to
// fail: it reports whether the condition was met.
func Within(d time.Duration, met func() bool) bool {
	const first, longest = time.Millisecond, 50 * time.Millisecond
	for began := time.Now(); !met(); {
		waited := time.Since(began)
		if waited > d {
			return false
		}
		time.Sleep(min(max(first, waited/16), longest)) // an answer may cost a process of its own
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

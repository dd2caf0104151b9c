package storetest

import (
	"flag"
	"strings"
	"sync/atomic"
	"testing"
)

// tally counts cases, so that a suite which ran on nothing does not pass: a
// case counts when it came to its end. One that was skipped did not.
type tally struct {
	cases int
	ran   atomic.Int64
}

func (c *tally) add() { c.cases++ }

func (c *tally) done() { c.ran.Add(1) }

// check wants all cases to have run, unless some were asked for by name.
func (c *tally) check(t *testing.T) {
	t.Helper()
	ran := int(c.ran.Load())
	t.Logf("%d of %d cases ran", ran, c.cases)
	if t.Failed() || chosen() {
		return
	}
	if c.cases == 0 || ran < c.cases {
		t.Fatalf("%d of %d cases ran", ran, c.cases)
	}
}

// chosen reports whether go test was told which cases to run, as in
// -run TestStore/rules/submit, or which to leave out.
func chosen() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") {
			return true
		}
	}
	return false
}

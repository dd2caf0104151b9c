package storetest

import (
	"context"
	"flag"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// rule is one case: what must hold, and its proof on an empty store.
type rule struct {
	name string
	test func(b *fixture)
}

// chapter is the rules about one verb.
type chapter struct {
	name  string
	rules []rule
}

func chapters() []chapter {
	return []chapter{
		{"submit", submitRules()},
		{"limit", limitRules()},
		{"room", roomRules()},
		{"drained", drainedRules()},
		{"accounts", accountRules()},
		{"holds", holdRules()},
		{"idempotency", idempotencyRules()},
		{"restore", restoreRules()},
		{"order", orderRules()},
		{"claim", claimRules()},
		{"slots", slotRules()},
		{"isolated", isolatedRules()},
		{"fence", fenceRules()},
		{"apply", applyRules()},
		{"parking", parkingRules()},
		{"landings", landingRules()},
		{"session", sessionRules()},
		{"bind", bindRules()},
		{"talk", chatRules()},
		{"sessions", sessionsRules()},
		{"wake", wakeRules()},
		{"lease", leaseRules()},
		{"agents", agentRules()},
		{"pause", pauseRules()},
		{"identity", identityRules()},
		{"audit", auditRules()},
		{"stale", staleRules()},
		{"usage", usageRules()},
		{"beat", beatRules()},
		{"tickets", ticketRules()},
		{"schedules", scheduleRules()},
		{"runs", scheduleRunRules()},
		{"read", readRules()},
		{"snapshot", snapshotRules()},
		{"position", positionRules()},
		{"waiting", waitingRules()},
		{"history", historyRules()},
		{"journal", journalRules()},
		{"prune", pruneRules()},
		{"values", valueRules()},
		{"errors", errorRules()},
	}
}

// Run checks a store against the contract. open returns a new, empty store for each case; the suite closes
// it. Cases run in parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	var count tally
	t.Run("rules", func(t *testing.T) {
		for _, c := range chapters() {
			for _, r := range c.rules {
				count.add()
				t.Run(c.name+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					r.test(newFixture(t, open(t)))
					count.done()
				})
			}
		}
	})
	count.check(t)
}

// Invariants checks what must hold in every store between two verbs. The checks are a separate package, so
// that a program can run them without the testing package.
func Invariants(ctx context.Context, r store.Reader) error { return invariant.Check(ctx, r) }

// tally counts cases that ran to their end, so that a suite that ran nothing does not pass. Skipped cases do
// not count.
type tally struct {
	cases int
	ran   atomic.Int64
}

func (c *tally) add() { c.cases++ }

func (c *tally) done() { c.ran.Add(1) }

// check wants all cases to have run, unless -run or -skip selected some.
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

// chosen reports whether go test was told which cases to run, as in -run TestStore/rules/submit, or to skip.
func chosen() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") {
			return true
		}
	}
	return false
}

package storetest

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// rule is one case: what must hold, and the proof on an empty store.
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
		{"idempotency", idempotencyRules()},
		{"restore", restoreRules()},
		{"order", orderRules()},
		{"claim", claimRules()},
		{"slots", slotRules()},
		{"isolated", isolatedRules()},
		{"fence", fenceRules()},
		{"apply", applyRules()},
		{"session", sessionRules()},
		{"bind", bindRules()},
		{"talk", talkRules()},
		{"sessions", sessionsRules()},
		{"wake", wakeRules()},
		{"lease", leaseRules()},
		{"agents", agentRules()},
		{"pause", pauseRules()},
		{"identity", identityRules()},
		{"audit", auditRules()},
		{"stale", staleRules()},
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

// Run checks a store against the contract. open returns a new, empty store
// for each case; the suite closes it. Cases run in parallel.
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

package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/signalbox-ai/signalbox/internal/soak"
)

const (
	linKills = 3
	linLimit = 60 * time.Second // for one check; none should take that long
)

// linCrowds are the clients of each queue of one director. The last queue is
// for the controls: proving that no order fits needs all orders, which are few
// if few clients are concurrent.
var linCrowds = []struct{ submitters, agents, rounds int }{{3, 2, 1}, {3, 2, 1}, {1, 1, 2}}

// A director is killed and restarted while clients submit, repeat, cancel, read,
// claim, report and park concurrently. The answers must be those of a queue that
// executes one request after another: no task is lost, doubled, claimed twice, out
// of order, or alive after its end.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	rounds := soak.Pick(1, 60)
	first := seedOf(t)
	for n := range uint64(rounds) {
		t.Run(fmt.Sprint(first+n), func(t *testing.T) {
			histories := recordHistories(t, first+n)
			for _, h := range histories {
				wantLinearizable(t, h)
			}
			if t.Failed() {
				t.Logf("SIGNALBOX_SEED=%d plays the same clients again", first+n)
				return
			}
			began := time.Now()
			wantEachControlIllegal(t, histories[len(histories)-1])
			t.Logf("controls after %s", time.Since(began).Round(time.Millisecond))
		})
	}
}

// recordHistories runs clients against a director, and returns the requests
// and answers of each queue.
func recordHistories(t *testing.T, seed uint64) (histories [][]porcupine.Operation) {
	r := newLinRun(t)
	var lines []*linLine
	var submitters, agents sync.WaitGroup
	var over atomic.Bool
	seeded := func(n int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n))) }
	for n, crowd := range linCrowds {
		l := &linLine{linRun: r, kind: fmt.Sprintf("line-%d", n), found: map[string]bool{}}
		lines = append(lines, l)
		for i := range crowd.agents {
			a := l.agent(i, seeded(100*n+i))
			agents.Go(func() { a.work(&over) })
		}
		for i := range crowd.submitters {
			who := l.reader()
			submitters.Go(func() { l.submits(who, seeded(100*n+10+i), crowd.rounds) })
		}
	}
	done := make(chan struct{})
	go func() { submitters.Wait(); over.Store(true); agents.Wait(); close(done) }()
	r.wreck(seeded(1000), linKills, done)
	<-done
	for _, l := range lines {
		for _, id := range l.ids { // the final states
			l.about(0, "read", id)
		}
		histories = append(histories, l.history())
	}
	wantColourful(t, r, histories)
	return histories
}

// wantColourful expects that the histories contain the events under test.
func wantColourful(t *testing.T, r *linRun, histories [][]porcupine.Operation) {
	t.Helper()
	seen := map[string]int{}
	for _, op := range slices.Concat(histories...) {
		in, out := op.Input.(linIn), op.Output.(linOut)
		seen["operations"]++
		switch {
		case out.lost:
			seen["lost"]++
		case out.code != "":
			seen[out.code]++
		case out.replayed:
			seen["replayed"]++
		case in.verb == "claim" && out.id != "":
			seen["claimed"]++
		case in.verb == "unpark":
			seen["unparked"]++
		}
	}
	t.Logf("%d deaths, %v", len(r.deaths), seen)
	for _, what := range []string{"lost", "claimed", "replayed", "idempotency_conflict", "stale_fence", "unparked"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s: the history tries too little", what)
		}
	}
	if len(r.deaths) == 0 {
		t.Error("no director was killed")
	}
}

// wantLinearizable checks a history, and shows where it fails.
func wantLinearizable(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	began := time.Now()
	result, info := porcupine.CheckOperationsVerbose(linModel(), foretold(history), linLimit)
	t.Logf("%d operations: %s after %s", len(history), result, time.Since(began).Round(time.Millisecond))
	switch result {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		t.Errorf("not checked within %s: the history is too large, or has gone wrong early", linLimit)
	default:
		t.Error("no order of these requests explains the queue's answers")
	}
	path := filepath.Join(cmp.Or(os.Getenv("SIGNALBOX_KEEP"), t.TempDir()), "history.html")
	if err := porcupine.VisualizePath(linModel(), info, path); err != nil {
		t.Error(err)
	}
	t.Logf("drawn in %s (SIGNALBOX_KEEP names a folder that stays); the longest order that fits, and what is left:\n%s", path, longestOrder(history, &info))
}

// longestOrder is the longest prefix of an order that fits the model, and the
// first requests after it that do not fit.
func longestOrder(history []porcupine.Operation, info *porcupine.LinearizationInfo) string {
	var best []int
	for _, order := range slices.Concat(info.PartialLinearizations()...) {
		if len(order) > len(best) {
			best = order
		}
	}
	var text strings.Builder
	placed := map[int]bool{}
	line := func(mark string, op porcupine.Operation) {
		fmt.Fprintf(&text, "%s %d-%d client %d: %+v → %+v\n", mark, op.Call/1000, op.Return/1000, op.ClientId, op.Input, op.Output)
	}
	for _, id := range best {
		placed[id] = true
		line(" ", history[id])
	}
	var left []porcupine.Operation
	for id, op := range history {
		if !placed[id] {
			left = append(left, op)
		}
	}
	slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range left[:min(len(left), 10)] {
		line("?", op)
	}
	return text.String()
}

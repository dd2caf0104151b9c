//go:build !race

// The runtime of the race detector sometimes crashes in a synctest bubble (golang/go#78156), and it makes a
// history twenty times slower. The suites of the engine and the dispatcher run with the race detector.

package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/stores"
	"github.com/signalbox-ai/signalbox/sim"
)

var (
	seeds = flag.Int("seeds", 0, "how many histories to play; 0: fewHistories, or in a long run as many as the budget allows")
	first = flag.Uint64("seed", 0, "the first seed; 0: 1, or, in a long run, one by the clock")
	kind  = flag.String("store", "memory", "the store: memory, sqlite, postgres or redis")
	keep  = flag.Int("keep", 0, "how many of the last steps of a failing history to print; 0: 60")
)

// fewHistories is the minimum number of histories in make test, on any machine.
const fewHistories = 300

// budget returns how many histories to play, and for how long, from -seeds or SIGNALBOX_SIM_BUDGET, else by
// the form of the run. 0: no limit.
func budget(t *testing.T) (histories int, length time.Duration) {
	text := os.Getenv("SIGNALBOX_SIM_BUDGET")
	switch {
	case *seeds > 0:
		return *seeds, 0
	case text == "" && soak.On():
		return 0, time.Hour
	case text == "":
		return fewHistories, 0
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SIGNALBOX_SIM_BUDGET is %q: give a length of time such as 40s or 5m", text)
	}
	return 0, length
}

// inMemory are the stores opened within the bubble.
var inMemory = map[string]func() store.Store{
	"model":  func() store.Store { return model.New(model.Options{}) },
	"memory": func() store.Store { return memory.New(memory.Options{}) },
}

// play plays one history over a store of that kind.
func play(t *testing.T, seed uint64, kind string) (r sim.Result) {
	o := sim.Options{Seed: seed, Keep: *keep}
	inside, ok := inMemory[kind]
	if !ok {
		s := stores.Open(t, kind)
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		out, stop := sim.Outside(s)
		defer stop()
		o.Store = out
	}
	synctest.Test(t, func(*testing.T) {
		if ok {
			o.Store = inside()
		}
		r = sim.Play(o)
	})
	return r
}

// report prints what is wrong with a history, and how to replay it.
func report(t *testing.T, seed uint64, kind string, r sim.Result) {
	t.Errorf("seed %d: %s\nthe last steps:\n  %s\nplay it again: go test ./sim -run TestHistories -store %s -seed %d -seeds 1",
		seed, strings.Join(r.Wrong, "\n"), strings.Join(r.Last, "\n  "), kind, seed)
}

// totals counts what was played.
type totals struct {
	mu                           sync.Mutex
	histories, steps, tasks, bad int
	replayed                     int // histories played twice
	faults                       map[string]int
}

func (y *totals) add(r sim.Result) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.histories++
	y.steps += r.Steps
	y.tasks += r.Tasks
	if len(r.Wrong) > 0 {
		y.bad++
	}
	for name, n := range r.Faults {
		y.faults[name] += n
	}
}

// replayed is how often a history is played twice, to compare the hash.
const replayed = 20

// common are faults that must occur in a hundred histories; otherwise the histories prove nothing about them.
var common = []string{
	"account tried", "agent hangs", "agent lies", "agent restarts", "agent restarts and has forgotten", "answer lost", "broken", "clock jumps",
	"crash after Claim", "crash before Claim", "crash after Submit", "crash before Submit", "director stands still", "failing", "garbled",
	"conversation gone", "kill", "late", "login_refused", "lost", "overloaded", "read fails", "refused", "reset", "run parked", "run resumed", "slot withheld", "slow", "store fails", "task pulled", "twice", "unheard", "usage_limit", "word of a void execution",
}

// TestHistories plays histories. Invariants hold after every step, every task ends, and a replayed history is
// equal.
func TestHistories(t *testing.T) {
	y := &totals{faults: map[string]int{}}
	begun, from := time.Now(), *first
	many, length := budget(t)
	if from == 0 {
		from = 1
		if soak.On() {
			from = uint64(begun.UnixNano())
		}
	}
	var next atomic.Uint64
	t.Run("play", func(t *testing.T) {
		for n := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				for !t.Failed() {
					i := next.Add(1) - 1
					if many > 0 && i >= uint64(many) || length > 0 && time.Since(begun) > length {
						return
					}
					one(t, y, from+i)
				}
			})
		}
	})
	took := time.Since(begun)
	t.Logf("%d histories from seed %d on %s in %s: %.0f a second; %d steps, %d tasks, %d played twice", y.histories, from, *kind,
		took.Round(time.Millisecond), float64(y.histories)/took.Seconds(), y.steps, y.tasks, y.replayed)
	for _, name := range slices.Sorted(maps.Keys(y.faults)) {
		t.Logf("%7d %s", y.faults[name], name)
	}
	for _, name := range common {
		if *kind == "memory" && y.histories >= 100 && y.faults[name] == 0 {
			t.Errorf("%d histories, and none of them has the fault %q", y.histories, name)
		}
	}
	if y.histories == 0 {
		t.Error("there was no time for a single history: SIGNALBOX_SIM_BUDGET is too short")
	}
}

func one(t *testing.T, y *totals, seed uint64) {
	r := play(t, seed, *kind)
	y.add(r)
	if len(r.Wrong) > 0 {
		report(t, seed, *kind, r)
	}
	if seed%replayed != 0 && *seeds != 1 {
		return
	}
	y.mu.Lock()
	y.replayed++
	y.mu.Unlock()
	if twin := play(t, seed, *kind); twin.Hash != r.Hash {
		t.Errorf("seed %d went another way when it was played again: %s", seed, firstDifference(r, twin))
	}
}

// firstDifference finds where two histories differ.
func firstDifference(a, b sim.Result) string {
	for i := range min(len(a.Last), len(b.Last)) {
		if a.Last[i] != b.Last[i] {
			return fmt.Sprintf("%d and %d steps, hashes %s and %s; first\n  %s\nthen\n  %s\nafter\n  %s", a.Steps, b.Steps, a.Hash, b.Hash, a.Last[i], b.Last[i],
				strings.Join(a.Last[max(0, i-5):i], "\n  "))
		}
	}
	return fmt.Sprintf("%d and %d steps, hashes %s and %s; more of it with -keep 100000", a.Steps, b.Steps, a.Hash, b.Hash)
}

// TestStoresPlayTheSameHistory: on each store a seed gives the same hash as on the model.
func TestStoresPlayTheSameHistory(t *testing.T) {
	for _, kind := range stores.Kinds {
		t.Run(kind, func(t *testing.T) {
			n, begun := soak.Pick[uint64](3, 300), time.Now()
			steps, several, resumed := 0, 0, 0
			for seed := uint64(1); seed < 1+n; seed++ { // seed 1 has two directors, one of which is paused, and a parked run that continues
				want := play(t, seed, "model")
				several += want.Directors - 1
				resumed += min(want.Faults["account tried"], want.Faults["run resumed"])
				got := play(t, seed, kind)
				steps += got.Steps
				if len(got.Wrong) > 0 {
					report(t, seed, kind, got)
				}
				if got.Hash != want.Hash {
					t.Errorf("seed %d went another way than on the model: %s", seed, firstDifference(want, got))
				}
			}
			if several == 0 || resumed == 0 {
				t.Error("none of these histories has two directors, or none tries an account with a run that was parked: choose other seeds")
			}
			t.Logf("%d histories, %d of two directors, %d steps in %s", n, several, steps, time.Since(begun).Round(time.Millisecond))
		})
	}
}

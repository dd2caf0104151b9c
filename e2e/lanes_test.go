package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// The hammer: many callers chat with few agents while director and agents are
// killed, stopped for longer than the slot lease, and have their lanes
// released. The agents record the start and the end of each execution;
// lanes_check_test.go compares that with the director's answers.

// hammering is the configuration of a run.
type hammering struct {
	chats   int // at least: they go on until each of hammerFaults has happened
	callers int
	agents  []string // fenced, plain or daemon
	length  time.Duration
	pace    int // about this many ended chats per fault
}

// hammer is a run.
type hammer struct {
	*box
	hammering
	url      string
	c        *client.Client
	rng      *rand.Rand
	director *role
	lanes    []*role
	j        *journal

	ended   atomic.Int64
	wrecked atomic.Bool   // each of hammerFaults has happened
	over    chan struct{} // closed when every caller has its answers
	refused sync.Map      // error that kept a chat from being stored → *atomic.Int64

	mu    sync.Mutex
	chats map[string]*chatted // by key
}

func newHammer(t *testing.T, how hammering) *hammer {
	seed := seedOf(t)
	h := &hammer{box: newBox(t), hammering: how, rng: rand.New(rand.NewPCG(seed, 2)), over: make(chan struct{}), chats: map[string]*chatted{}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	config.WriteString("execution_ttl: 1s\ndiscover: off\nqueue:\n  max_size: 100000\n  chat_max_size: 6\n  max_attempts: 1000\nagents:\n")
	addr := freePort(t)
	h.url = "http://" + addr
	for n, kind := range how.agents {
		r := &role{b: h.box, name: fmt.Sprintf("%s-%d", kind, n), died: deaths{}}
		at := freePort(t)
		if kind == "daemon" {
			r.args = h.agentLine(r.name, h.url, []string{"--addr", at})
			r.env = []string{"SIGNALBOX_EXEC_LOG=" + h.logOf(r)}
		} else {
			r.program = self
			r.env = []string{laneAgentEnv + "=" + at + " " + h.logOf(r) + " " + kind}
			fmt.Fprintf(&config, "  - {name: %s, kind: fake, url: \"http://%s\"}\n", r.name, at)
		}
		h.lanes = append(h.lanes, r)
	}
	file := h.file("lanes.yaml", strings.TrimSuffix(config.String(), "agents:\n"), 0o600)
	h.director = &role{b: h.box, name: "director", args: h.server("director", []string{"--addr", addr, "--config", file}), died: deaths{}}
	h.director.start()
	h.director.p.prints("http://")
	for _, r := range h.lanes {
		r.start()
	}
	h.c = h.client(h.url)
	h.until("all agents are up", func() bool {
		agents, err := h.c.Agents(h.ctx())
		up := 0
		if err == nil {
			for _, a := range agents {
				if a.State == "idle" {
					up++
				}
			}
		}
		return up == len(h.lanes)
	})
	h.j = h.journal(h.c)
	return h
}

func (h *hammer) logOf(r *role) string { return filepath.Join(h.root, "lane-"+r.name+".jsonl") }

// run runs the callers and the faults, and returns how many of each fault
// there were.
func (h *hammer) run() map[string]int {
	h.t.Helper()
	var callers sync.WaitGroup
	for who := range h.callers {
		callers.Go(func() {
			more := who%5 == 0 // few go on until all faults have happened
			for n := who; n < h.hammering.chats || more && !h.wrecked.Load() && !h.t.Failed(); n += h.callers {
				h.chat(n)
			}
		})
	}
	faults := make(chan map[string]int)
	go func() { faults <- h.wreck() }()
	callers.Wait()
	close(h.over)
	return <-faults
}

// The faults, in proportion to their frequency.
var hammerFaults = []string{
	"kill director", "kill agent", "kill agent", "stop agent", "stop agent", "release", "release", "release", "release", "clear",
}

// wreck causes one fault after another, in turn, each time some more chats
// have ended, so that they hit all phases on fast and slow machines.
func (h *hammer) wreck() map[string]int {
	did := map[string]int{}
	var deck []string
	for {
		next := h.ended.Load() + 1 + h.rng.Int64N(int64(2*h.pace))
		for h.ended.Load() < next {
			select {
			case <-h.over:
				return did
			case <-time.After(2 * time.Millisecond):
			}
		}
		if len(deck) == 0 {
			deck = append(deck, hammerFaults...)
			h.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		if h.fault(deck[0], h.lanes[h.rng.IntN(len(h.lanes))]) {
			did[deck[0]]++
			deck = deck[1:]
			if len(deck) == 0 {
				h.wrecked.Store(true)
			}
		}
	}
}

// fault causes a fault, and reports whether that was possible.
func (h *hammer) fault(what string, lane *role) bool {
	switch what {
	case "kill director", "kill agent":
		victim := lane
		if what == "kill director" {
			victim = h.director
		}
		victim.kill()
		time.Sleep(time.Duration(h.rng.IntN(100)) * time.Millisecond)
		victim.start()
	case "stop agent":
		if strings.HasPrefix(lane.name, "plain") {
			// An agent that cannot distinguish old offers from new ones may find an old
			// one in its socket when it continues. That cannot be prevented.
			return false
		}
		lane.p.freeze()
		time.Sleep(1500*time.Millisecond + time.Duration(h.rng.IntN(1000))*time.Millisecond)
		lane.p.thaw()
	case "release", "clear":
		code, _, err := h.post("/api/agents/"+lane.name+"/queue/"+what, "")
		return err == nil && code == 200
	}
	return true
}

// settle waits until nothing runs or waits and the test's journal contains
// everything that has happened.
func (h *hammer) settle() {
	h.t.Helper()
	for _, r := range h.lanes {
		h.until(r.name+" is idle", func() bool {
			lane, err := h.c.Lane(h.ctx(), r.name)
			return err == nil && !lane.IsBusy && lane.QueueLength == 0
		})
	}
	want := len(h.chats)
	if !h.j.await(long, func(events []api.Event) bool { return ends(events) >= want }) {
		h.t.Fatalf("%d ends in the journal, %d chats", ends(h.j.all()), want)
	}
}

// check makes all checks.
func (h *hammer) check(faults map[string]int) {
	h.t.Helper()
	h.settle()
	h.wantAllAnswered()
	h.wantOneClaimAtATime()
	runs := h.wantOneExecutionAtATime()
	h.wantDoublesWithReason(runs)
	h.wantOnlyTheirOwnResults(runs)
	refused := map[string]int64{}
	h.refused.Range(func(k, v any) bool { refused[k.(string)] = v.(*atomic.Int64).Load(); return true })
	executions := 0
	for _, list := range runs {
		executions += len(list)
	}
	h.t.Logf("%d chats from %d callers, %d executions by %d agents; faults %v; refused and tried again %v; ended as %v; overlaps=0",
		len(h.chats), h.callers, executions, len(h.lanes), faults, refused, h.endings())
	for _, r := range append(h.lanes, h.director) {
		if r.program == "" {
			r.stop()
		}
	}
}

func (h *hammer) endings() map[string]int {
	n := map[string]int{}
	for _, c := range h.chats {
		n[cmp.Or(c.reason, c.state)]++
	}
	return n
}

// At most one execution at a time in each lane, whatever happens.
func TestOneExecutionAtATime(t *testing.T) {
	h := newHammer(t, hammering{
		chats: soak.Pick(250, 10_000), callers: 50, pace: soak.Pick(8, 25),
		agents: []string{"fenced", "fenced", "fenced", "plain", "plain"}, length: 15 * time.Millisecond,
	})
	h.check(h.run())
}

// The same with the agent daemon.
func TestOneExecutionAtATimeInTheDaemon(t *testing.T) {
	h := newHammer(t, hammering{chats: soak.Pick(60, 2000), callers: 12, agents: []string{"daemon", "daemon", "daemon"}, length: 30 * time.Millisecond, pace: 8})
	h.check(h.run())
}

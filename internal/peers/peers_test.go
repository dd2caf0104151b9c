package peers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/peers"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// cluster is a store with directors over it, in a synctest bubble: time advances when all goroutines are
// blocked.
type cluster struct {
	*testing.T
	world  *peerstest.World
	agents []string

	mu     sync.Mutex
	holder map[string]string // who follows each agent, according to Gained and Lost
}

func inCluster(t *testing.T, agents int, f func(cl *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cl := &cluster{T: t, world: peerstest.New(memory.New(memory.Options{})), holder: map[string]string{}}
		for i := range agents {
			cl.agents = append(cl.agents, fmt.Sprintf("agent-%d", i))
		}
		f(cl)
	})
}

// member is one director.
type member struct {
	cl    *cluster
	id    string
	view  *peerstest.View
	clock *peers.Clock
	peers *peers.Peers

	mu           sync.Mutex
	behind       time.Duration // time that its own clock did not count
	lost         int           // number of calls of Lost
	holdingsLost int
	slow         time.Duration // duration of Lost
	killed       bool
	gained       []time.Time
	lapses       []bool
	dead         []string
	superseded   error
}

// director makes a director; change may modify its row.
func (cl *cluster) director(id string, change ...func(*store.Director)) *member {
	cl.Helper()
	s := &member{cl: cl, id: id, view: cl.world.View()}
	var err error
	if s.clock, err = peers.NewClock(cl.Context(), s.view, s.now); err != nil {
		cl.Fatal(err)
	}
	d := store.Director{ID: id, Run: id + "-run", URL: "http://" + id, Version: "v1.2.3", Key: "key"}
	for _, c := range change {
		c(&d)
	}
	s.peers = peers.New(s.view, peers.Options{
		Director: d, Agents: func() []string { return cl.agents }, Gained: s.gain, Lost: s.lose, Now: s.clock.Now,
		Lapse:        func(over bool) { s.note(func() { s.lapses = append(s.lapses, over) }) },
		Dead:         func(ids []string) { s.note(func() { s.dead = append(s.dead, ids...) }) },
		Superseded:   func(err error) { s.note(func() { s.superseded = err }) },
		HoldingsLost: func() { s.note(func() { s.holdingsLost++ }) }, Monotonic: s.now,
	})
	return s
}

// now is its own clock.
func (s *member) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(-s.behind)
}

func (s *member) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// gain checks that no other director follows the agents.
func (s *member) gain(agents []string) {
	s.note(func() { s.gained = append(s.gained, time.Now()) })
	s.cl.mu.Lock()
	defer s.cl.mu.Unlock()
	if s.killed {
		return
	}
	for _, a := range agents {
		if other := s.cl.holder[a]; other != "" {
			s.cl.Errorf("%s gained %s, which %s holds", s.id, a, other)
		}
		s.cl.holder[a] = s.id
	}
}

func (s *member) lose(agents []string) {
	time.Sleep(s.slow)
	s.note(func() { s.lost++ })
	s.cl.mu.Lock()
	defer s.cl.mu.Unlock()
	if s.killed {
		return
	}
	for _, a := range agents {
		if s.cl.holder[a] != s.id {
			s.cl.Errorf("%s lost %s, which %q holds", s.id, a, s.cl.holder[a])
		}
		delete(s.cl.holder, a)
	}
}

func (s *member) start() *member {
	s.cl.Helper()
	if err := s.peers.Start(s.cl.Context()); err != nil {
		s.cl.Fatal(err)
	}
	s.cl.Cleanup(func() { s.peers.Leave(context.Background()) })
	return s
}

// freeze pauses a process, as others see it. Whether it holds agents can still be asked, by its own clock.
func (s *member) freeze() (resume func()) { return s.view.Hang() }

// kill ends it like a crash: nothing that it does later counts.
func (s *member) kill() (resume func()) {
	resume = s.freeze()
	s.cl.mu.Lock()
	defer s.cl.mu.Unlock()
	s.killed = true
	for x, who := range s.cl.holder {
		if who == s.id {
			delete(s.cl.holder, x)
		}
	}
	return resume
}

func (cl *cluster) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// heldCounts counts what each director holds, and fails if an agent is held twice.
func (cl *cluster) heldCounts(all ...*member) []int {
	cl.Helper()
	n := make([]int, len(all))
	for _, a := range cl.agents {
		var holders []string
		for i, s := range all {
			if s.peers.Holds(a) {
				holders = append(holders, s.id)
				n[i]++
			}
		}
		if len(holders) > 1 {
			cl.Fatalf("agent %s is held by %v", a, holders)
		}
	}
	return n
}

// allHeld fails unless each agent is held.
func (cl *cluster) allHeld(all ...*member) []int {
	cl.Helper()
	n, sum := cl.heldCounts(all...), 0
	for _, k := range n {
		sum += k
	}
	if sum != len(cl.agents) {
		cl.Fatalf("%d of %d agents are held: %v", sum, len(cl.agents), n)
	}
	return n
}

func TestOneDirectorHoldsAllAtOnce(t *testing.T) {
	inCluster(t, 20, func(cl *cluster) {
		a := cl.director("a").start()
		cl.allHeld(a)
		if !a.peers.Alone() || !a.peers.First("x") || a.peers.Gone("a") || !a.peers.Gone("nobody") {
			cl.Error("a director that is alone does not know it")
		}
	})
}

// A director that joins gets its share and no more, and no agent is held twice.
func TestADirectorThatJoinsMovesOnlyItsShare(t *testing.T) {
	inCluster(t, 300, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(6 * time.Second)
		before := map[string]bool{}
		n := cl.allHeld(a, b)
		if n[0] < 90 || n[1] < 90 {
			cl.Errorf("shares of two: %v", n)
		}
		for _, x := range cl.agents {
			before[x] = a.peers.Holds(x)
		}
		c := cl.director("c").start()
		for range 60 {
			cl.pass(100 * time.Millisecond)
			cl.heldCounts(a, b, c)
		}
		if n = cl.allHeld(a, b, c); n[2] < 60 || n[2] > 140 {
			cl.Errorf("shares of three: %v", n)
		}
		for _, x := range cl.agents {
			if !c.peers.Holds(x) && a.peers.Holds(x) != before[x] {
				cl.Errorf("%s went from one that stays to another that was there", x)
			}
		}
	})
}

func TestADeadDirectorsAgentsAreTakenWithinItsLeaseAndASecond(t *testing.T) {
	inCluster(t, 60, func(cl *cluster) {
		a, b, c := cl.director("a").start(), cl.director("b").start(), cl.director("c").start()
		cl.pass(7*time.Second + 300*time.Millisecond)
		cl.allHeld(a, b, c)
		a.kill()
		died := time.Now()
		for sum := 0; sum < len(cl.agents); {
			if time.Since(died) > 11*time.Second {
				cl.Fatalf("%d of %d agents are held after 11 s", sum, len(cl.agents))
			}
			cl.pass(10 * time.Millisecond)
			n := cl.heldCounts(b, c)
			sum = n[0] + n[1]
		}
		if took := time.Since(died); took < peers.Safe {
			cl.Errorf("taken after %s, while the dead one could have held on to them", took)
		}
		if !slices.Equal(b.dead, []string{"a"}) || !b.peers.Gone("a") {
			cl.Errorf("told of the dead: %v", b.dead)
		}
	})
}

// TestIncidentPausedDirectorHoldsNothing: a process that was paused (SIGSTOP, a long pause of its machine)
// and resumes must not continue with what others have taken meanwhile.
func TestIncidentPausedDirectorHoldsNothing(t *testing.T) {
	inCluster(t, 40, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(5 * time.Second)
		cl.allHeld(a, b)
		resume := a.freeze()
		for range 300 {
			cl.pass(100 * time.Millisecond)
			cl.heldCounts(a, b) // never twice, at any moment
		}
		if n := cl.heldCounts(a, b); n[0] != 0 || n[1] != 40 {
			cl.Fatalf("after 30 s: %v", n)
		}
		resume()
		cl.pass(8 * time.Second)
		if n := cl.allHeld(a, b); n[0] < 8 {
			cl.Errorf("after it came back: %v", n)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if !slices.Equal(a.lapses, []bool{true, false}) || a.superseded != nil {
			cl.Errorf("lapses %v, superseded: %v", a.lapses, a.superseded)
		}
	})
}

func TestAShortOutageOfTheStoreMovesNothing(t *testing.T) {
	inCluster(t, 30, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(5 * time.Second)
		before := cl.allHeld(a, b)
		a.view.Away(true)
		b.view.Away(true)
		cl.pass(5 * time.Second)
		cl.allHeld(a, b)
		a.view.Away(false)
		b.view.Away(false)
		cl.pass(5 * time.Second)
		if after := cl.allHeld(a, b); !slices.Equal(before, after) || len(a.lapses)+len(b.lapses) > 0 || len(a.gained) != 1 {
			cl.Errorf("shares %v, then %v; lapses %v %v; gained at %v", before, after, a.lapses, b.lapses, a.gained)
		}
	})
}

func TestLongStoreOutageStopsAllAndEnds(t *testing.T) {
	inCluster(t, 30, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(5 * time.Second)
		a.view.Away(true)
		b.view.Away(true)
		cl.pass(peers.Safe)
		if n := cl.heldCounts(a, b); n[0]+n[1] != 0 {
			cl.Fatalf("held while the store was away for longer than is safe: %v", n)
		}
		cl.pass(20 * time.Second)
		a.view.Away(false)
		b.view.Away(false)
		cl.pass(5 * time.Second)
		cl.allHeld(a, b)
	})
}

func TestAgentsOfLeavingDirectorAreTakenAtOnce(t *testing.T) {
	inCluster(t, 40, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(5 * time.Second)
		a.peers.Leave(cl.Context())
		cl.pass(peers.Every + 100*time.Millisecond)
		if n := cl.allHeld(a, b); n[1] != 40 || !b.peers.Alone() {
			cl.Errorf("after it left: %v", n)
		}
	})
}

// A director that drains gives its agents away while it still sends beats.
func TestYieldGivesAllToTheOthers(t *testing.T) {
	inCluster(t, 40, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(5 * time.Second)
		a.slow = 300 * time.Millisecond
		begun := time.Now()
		a.peers.Yield(cl.Context())
		if took := time.Since(begun); took > time.Second {
			cl.Errorf("it took %s", took)
		}
		cl.pass(peers.Every + 100*time.Millisecond)
		if n := cl.allHeld(a, b); n[1] != 40 || len(b.peers.Others()) != 1 {
			cl.Errorf("after it yielded: %v, others of b: %v", n, b.peers.Others())
		}
	})
}

// An agent that was removed and added again is taken by the director that should hold it, although its
// holding in the store was deleted.
func TestAnAgentThatWasRemovedAndAddedIsTakenAnew(t *testing.T) {
	inCluster(t, 10, func(cl *cluster) {
		a := cl.director("a").start()
		ctx := cl.Context()
		must := func(err error) {
			cl.Helper()
			if err != nil {
				cl.Fatal(err)
			}
		}
		must(a.view.PutAgent(ctx, signalbox.Agent{Name: "agent-3", Kind: "demo", Slots: 1}, signalbox.Entry{}))
		must(a.view.RemoveAgent(ctx, "agent-3", signalbox.Entry{}))
		must(a.view.PutAgent(ctx, signalbox.Agent{Name: "agent-3", Kind: "demo", Slots: 1}, signalbox.Entry{}))
		a.peers.Soon()
		cl.pass(100 * time.Millisecond)
		holders, err := a.view.Holders(ctx)
		if err != nil || holders["agent-3"] != "a" {
			cl.Errorf("holders %v, %v", holders, err)
		}
	})
}

func TestHolderOf(t *testing.T) {
	inCluster(t, 10, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(5 * time.Second)
		for _, x := range cl.agents {
			want := "a"
			if b.peers.Holds(x) {
				want = "b"
			}
			for _, s := range []*member{a, b} {
				if d, ok := s.peers.HolderOf(cl.Context(), x); !ok || d.ID != want {
					cl.Errorf("%s is held by %s, says %s: %s %v", x, want, s.id, d.ID, ok)
				}
			}
		}
		if d, ok := a.peers.HolderOf(cl.Context(), "commands@b"); !ok || d.URL != "http://b" {
			cl.Errorf("the executor of b: %v %v", d, ok)
		}
		if _, ok := a.peers.HolderOf(cl.Context(), "stranger"); ok {
			cl.Error("a stranger has a holder")
		}
		b.view.Away(true)
		cl.pass(11 * time.Second)
		if d, ok := a.peers.HolderOf(cl.Context(), "commands@b"); ok {
			cl.Errorf("the executor of a dead director: %v", d)
		}
	})
}

func TestAStoreThatIsAwayAtTheStartIsAnError(t *testing.T) {
	inCluster(t, 1, func(cl *cluster) {
		a := cl.director("a")
		a.view.Away(true)
		if err := a.peers.Start(cl.Context()); err == nil || errors.Is(err, context.Canceled) {
			cl.Errorf("started with %v", err)
		}
		if _, err := peers.NewClock(cl.Context(), a.view, nil); err == nil {
			cl.Error("a clock of a store that is away")
		}
	})
}

// A director that has just started, or come back, is not removed by those that have not seen it yet.
func TestIncidentADirectorThatJustBeganIsNotGone(t *testing.T) {
	inCluster(t, 4, func(cl *cluster) {
		a := cl.director("a").start()
		cl.pass(5*time.Second + 100*time.Millisecond)
		b := cl.director("b").start()
		if a.peers.ConfirmGone(cl.Context(), "b") {
			cl.Error("b began a moment ago, and a says that it is gone")
		}
		cl.pass(5 * time.Second)
		b.kill()
		cl.pass(12 * time.Second)
		if !a.peers.ConfirmGone(cl.Context(), "b") {
			cl.Error("b is dead, and a does not say so")
		}
		cl.director("b", func(d *store.Director) { d.Run = "another" }).start()
		if a.peers.ConfirmGone(cl.Context(), "b") {
			cl.Error("b is back, and a says that it is gone")
		}
	})
}

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

// town is a store with directors over it, in a synctest bubble: time advances when all goroutines are
// blocked.
type town struct {
	*testing.T
	world  *peerstest.World
	agents []string

	mu     sync.Mutex
	holder map[string]string // who follows each agent, according to Gained and Lost
}

func inTown(t *testing.T, agents int, f func(tn *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tn := &town{T: t, world: peerstest.New(memory.New(memory.Options{})), holder: map[string]string{}}
		for i := range agents {
			tn.agents = append(tn.agents, fmt.Sprintf("agent-%d", i))
		}
		f(tn)
	})
}

// someone is one director.
type someone struct {
	tn    *town
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
func (tn *town) director(id string, change ...func(*store.Director)) *someone {
	tn.Helper()
	s := &someone{tn: tn, id: id, view: tn.world.View()}
	var err error
	if s.clock, err = peers.NewClock(tn.Context(), s.view, s.now); err != nil {
		tn.Fatal(err)
	}
	d := store.Director{ID: id, Run: id + "-run", URL: "http://" + id, Version: "v1.2.3", Key: "key"}
	for _, c := range change {
		c(&d)
	}
	s.peers = peers.New(s.view, peers.Options{
		Director: d, Agents: func() []string { return tn.agents }, Gained: s.gain, Lost: s.lose, Now: s.clock.Now,
		Lapse:        func(over bool) { s.note(func() { s.lapses = append(s.lapses, over) }) },
		Dead:         func(ids []string) { s.note(func() { s.dead = append(s.dead, ids...) }) },
		Superseded:   func(err error) { s.note(func() { s.superseded = err }) },
		HoldingsLost: func() { s.note(func() { s.holdingsLost++ }) }, Monotonic: s.now,
	})
	return s
}

// now is its own clock.
func (s *someone) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(-s.behind)
}

func (s *someone) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// gain checks that no other director follows the agents.
func (s *someone) gain(agents []string) {
	s.note(func() { s.gained = append(s.gained, time.Now()) })
	s.tn.mu.Lock()
	defer s.tn.mu.Unlock()
	if s.killed {
		return
	}
	for _, a := range agents {
		if other := s.tn.holder[a]; other != "" {
			s.tn.Errorf("%s gained %s, which %s holds", s.id, a, other)
		}
		s.tn.holder[a] = s.id
	}
}

func (s *someone) lose(agents []string) {
	time.Sleep(s.slow)
	s.note(func() { s.lost++ })
	s.tn.mu.Lock()
	defer s.tn.mu.Unlock()
	if s.killed {
		return
	}
	for _, a := range agents {
		if s.tn.holder[a] != s.id {
			s.tn.Errorf("%s lost %s, which %q holds", s.id, a, s.tn.holder[a])
		}
		delete(s.tn.holder, a)
	}
}

func (s *someone) start() *someone {
	s.tn.Helper()
	if err := s.peers.Start(s.tn.Context()); err != nil {
		s.tn.Fatal(err)
	}
	s.tn.Cleanup(func() { s.peers.Leave(context.Background()) })
	return s
}

// freeze pauses a process, as others see it. Whether it holds agents can still be asked, by its own clock.
func (s *someone) freeze() (goOn func()) { return s.view.Hang() }

// kill ends it like a crash: nothing that it does later counts.
func (s *someone) kill() (goOn func()) {
	goOn = s.freeze()
	s.tn.mu.Lock()
	defer s.tn.mu.Unlock()
	s.killed = true
	for x, who := range s.tn.holder {
		if who == s.id {
			delete(s.tn.holder, x)
		}
	}
	return goOn
}

func (tn *town) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// share counts what each director holds, and fails if an agent is held twice.
func (tn *town) share(all ...*someone) []int {
	tn.Helper()
	n := make([]int, len(all))
	for _, a := range tn.agents {
		var holders []string
		for i, s := range all {
			if s.peers.Holds(a) {
				holders = append(holders, s.id)
				n[i]++
			}
		}
		if len(holders) > 1 {
			tn.Fatalf("agent %s is held by %v", a, holders)
		}
	}
	return n
}

// whole fails unless each agent is held.
func (tn *town) whole(all ...*someone) []int {
	tn.Helper()
	n, sum := tn.share(all...), 0
	for _, k := range n {
		sum += k
	}
	if sum != len(tn.agents) {
		tn.Fatalf("%d of %d agents are held: %v", sum, len(tn.agents), n)
	}
	return n
}

func TestOneDirectorHoldsAllAtOnce(t *testing.T) {
	inTown(t, 20, func(tn *town) {
		a := tn.director("a").start()
		tn.whole(a)
		if !a.peers.Alone() || !a.peers.First("x") || a.peers.Gone("a") || !a.peers.Gone("nobody") {
			tn.Error("a director that is alone does not know it")
		}
	})
}

// A director that joins gets its share and no more, and no agent is held twice.
func TestADirectorThatJoinsMovesOnlyItsShare(t *testing.T) {
	inTown(t, 300, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(6 * time.Second)
		before := map[string]bool{}
		n := tn.whole(a, b)
		if n[0] < 90 || n[1] < 90 {
			tn.Errorf("shares of two: %v", n)
		}
		for _, x := range tn.agents {
			before[x] = a.peers.Holds(x)
		}
		c := tn.director("c").start()
		for range 60 {
			tn.pass(100 * time.Millisecond)
			tn.share(a, b, c)
		}
		if n = tn.whole(a, b, c); n[2] < 60 || n[2] > 140 {
			tn.Errorf("shares of three: %v", n)
		}
		for _, x := range tn.agents {
			if !c.peers.Holds(x) && a.peers.Holds(x) != before[x] {
				tn.Errorf("%s went from one that stays to another that was there", x)
			}
		}
	})
}

func TestADeadDirectorsAgentsAreTakenWithinItsLeaseAndASecond(t *testing.T) {
	inTown(t, 60, func(tn *town) {
		a, b, c := tn.director("a").start(), tn.director("b").start(), tn.director("c").start()
		tn.pass(7*time.Second + 300*time.Millisecond)
		tn.whole(a, b, c)
		a.kill()
		died := time.Now()
		for sum := 0; sum < len(tn.agents); {
			if time.Since(died) > 11*time.Second {
				tn.Fatalf("%d of %d agents are held after 11 s", sum, len(tn.agents))
			}
			tn.pass(10 * time.Millisecond)
			n := tn.share(b, c)
			sum = n[0] + n[1]
		}
		if took := time.Since(died); took < peers.Safe {
			tn.Errorf("taken after %s, while the dead one could have held on to them", took)
		}
		if !slices.Equal(b.dead, []string{"a"}) || !b.peers.Gone("a") {
			tn.Errorf("told of the dead: %v", b.dead)
		}
	})
}

// TestIncidentPausedDirectorHoldsNothing: a process that was paused (SIGSTOP, a long pause of its machine)
// and resumes must not continue with what others have taken meanwhile.
func TestIncidentPausedDirectorHoldsNothing(t *testing.T) {
	inTown(t, 40, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(5 * time.Second)
		tn.whole(a, b)
		goOn := a.freeze()
		for range 300 {
			tn.pass(100 * time.Millisecond)
			tn.share(a, b) // never twice, at any moment
		}
		if n := tn.share(a, b); n[0] != 0 || n[1] != 40 {
			tn.Fatalf("after 30 s: %v", n)
		}
		goOn()
		tn.pass(8 * time.Second)
		if n := tn.whole(a, b); n[0] < 8 {
			tn.Errorf("after it came back: %v", n)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if !slices.Equal(a.lapses, []bool{true, false}) || a.superseded != nil {
			tn.Errorf("lapses %v, superseded: %v", a.lapses, a.superseded)
		}
	})
}

func TestAShortOutageOfTheStoreMovesNothing(t *testing.T) {
	inTown(t, 30, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(5 * time.Second)
		before := tn.whole(a, b)
		a.view.Away(true)
		b.view.Away(true)
		tn.pass(5 * time.Second)
		tn.whole(a, b)
		a.view.Away(false)
		b.view.Away(false)
		tn.pass(5 * time.Second)
		if after := tn.whole(a, b); !slices.Equal(before, after) || len(a.lapses)+len(b.lapses) > 0 || len(a.gained) != 1 {
			tn.Errorf("shares %v, then %v; lapses %v %v; gained at %v", before, after, a.lapses, b.lapses, a.gained)
		}
	})
}

func TestLongStoreOutageStopsAllAndEnds(t *testing.T) {
	inTown(t, 30, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(5 * time.Second)
		a.view.Away(true)
		b.view.Away(true)
		tn.pass(peers.Safe)
		if n := tn.share(a, b); n[0]+n[1] != 0 {
			tn.Fatalf("held while the store was away for longer than is safe: %v", n)
		}
		tn.pass(20 * time.Second)
		a.view.Away(false)
		b.view.Away(false)
		tn.pass(5 * time.Second)
		tn.whole(a, b)
	})
}

func TestAgentsOfLeavingDirectorAreTakenAtOnce(t *testing.T) {
	inTown(t, 40, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(5 * time.Second)
		a.peers.Leave(tn.Context())
		tn.pass(peers.Every + 100*time.Millisecond)
		if n := tn.whole(a, b); n[1] != 40 || !b.peers.Alone() {
			tn.Errorf("after it left: %v", n)
		}
	})
}

// A director that drains gives its agents away while it still sends beats.
func TestYieldGivesAllToTheOthers(t *testing.T) {
	inTown(t, 40, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(5 * time.Second)
		a.slow = 300 * time.Millisecond
		begun := time.Now()
		a.peers.Yield(tn.Context())
		if took := time.Since(begun); took > time.Second {
			tn.Errorf("it took %s", took)
		}
		tn.pass(peers.Every + 100*time.Millisecond)
		if n := tn.whole(a, b); n[1] != 40 || len(b.peers.Others()) != 1 {
			tn.Errorf("after it yielded: %v, others of b: %v", n, b.peers.Others())
		}
	})
}

// An agent that was removed and added again is taken by the director that should hold it, although its
// holding in the store was deleted.
func TestAnAgentThatWasRemovedAndAddedIsTakenAnew(t *testing.T) {
	inTown(t, 10, func(tn *town) {
		a := tn.director("a").start()
		ctx := tn.Context()
		must := func(err error) {
			tn.Helper()
			if err != nil {
				tn.Fatal(err)
			}
		}
		must(a.view.PutAgent(ctx, signalbox.Agent{Name: "agent-3", Kind: "demo", Slots: 1}, signalbox.Entry{}))
		must(a.view.RemoveAgent(ctx, "agent-3", signalbox.Entry{}))
		must(a.view.PutAgent(ctx, signalbox.Agent{Name: "agent-3", Kind: "demo", Slots: 1}, signalbox.Entry{}))
		a.peers.Soon()
		tn.pass(100 * time.Millisecond)
		holders, err := a.view.Holders(ctx)
		if err != nil || holders["agent-3"] != "a" {
			tn.Errorf("holders %v, %v", holders, err)
		}
	})
}

func TestHolderOf(t *testing.T) {
	inTown(t, 10, func(tn *town) {
		a, b := tn.director("a").start(), tn.director("b").start()
		tn.pass(5 * time.Second)
		for _, x := range tn.agents {
			want := "a"
			if b.peers.Holds(x) {
				want = "b"
			}
			for _, s := range []*someone{a, b} {
				if d, ok := s.peers.HolderOf(tn.Context(), x); !ok || d.ID != want {
					tn.Errorf("%s is held by %s, says %s: %s %v", x, want, s.id, d.ID, ok)
				}
			}
		}
		if d, ok := a.peers.HolderOf(tn.Context(), "commands@b"); !ok || d.URL != "http://b" {
			tn.Errorf("the executor of b: %v %v", d, ok)
		}
		if _, ok := a.peers.HolderOf(tn.Context(), "stranger"); ok {
			tn.Error("a stranger has a holder")
		}
		b.view.Away(true)
		tn.pass(11 * time.Second)
		if d, ok := a.peers.HolderOf(tn.Context(), "commands@b"); ok {
			tn.Errorf("the executor of a dead director: %v", d)
		}
	})
}

func TestAStoreThatIsAwayAtTheStartIsAnError(t *testing.T) {
	inTown(t, 1, func(tn *town) {
		a := tn.director("a")
		a.view.Away(true)
		if err := a.peers.Start(tn.Context()); err == nil || errors.Is(err, context.Canceled) {
			tn.Errorf("started with %v", err)
		}
		if _, err := peers.NewClock(tn.Context(), a.view, nil); err == nil {
			tn.Error("a clock of a store that is away")
		}
	})
}

// A director that has just started, or come back, is not removed by those that have not seen it yet.
func TestIncidentADirectorThatJustBeganIsNotGone(t *testing.T) {
	inTown(t, 4, func(tn *town) {
		a := tn.director("a").start()
		tn.pass(5*time.Second + 100*time.Millisecond)
		b := tn.director("b").start()
		if a.peers.ConfirmGone(tn.Context(), "b") {
			tn.Error("b began a moment ago, and a says that it is gone")
		}
		tn.pass(5 * time.Second)
		b.kill()
		tn.pass(12 * time.Second)
		if !a.peers.ConfirmGone(tn.Context(), "b") {
			tn.Error("b is dead, and a does not say so")
		}
		tn.director("b", func(d *store.Director) { d.Run = "another" }).start()
		if a.peers.ConfirmGone(tn.Context(), "b") {
			tn.Error("b is back, and a says that it is gone")
		}
	})
}

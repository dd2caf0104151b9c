package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// The slots of a process that dies become free when they expire. Its calls are told before that, in case it
// is still alive.
func TestIncidentADeadProcessGivesItsSlotsBack(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, a, b *process) {
		held := a.take(t, Tool("holder"))
		a.start(t, Tool("dies in line"), 0)
		c := b.start(t, Tool("next"), 0)
		time.Sleep(time.Minute)
		if lost(held) || !c.Waits() {
			t.Fatal("a slot that is kept was lost")
		}
		a.wire.sever()
		began := time.Now()
		<-held.Lost()
		if told := time.Since(began); told > lease*4/5 || !c.Waits() {
			t.Fatalf("told after %s", told)
		}
		next := c.Has()
		if took := time.Since(began); took > lease+time.Second {
			t.Fatalf("the slot was free after %s", took)
		}
		held.Release()
		a.wire.mend()
		time.Sleep(time.Minute) // late steps have no effect
		b.counts(t, 1, 0)
		next.Release()
		b.counts(t, 0, 0)
	})
}

func TestAShortAbsenceLosesNothing(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Hour}}, func(t *testing.T, a, b *process) {
		held := a.take(t, Tool("holder"))
		first, second := b.start(t, Tool("first"), 0), a.start(t, Tool("second"), 0)
		for range 5 {
			a.wire.sever()
			b.wire.sever()
			time.Sleep(5 * time.Second)
			a.wire.mend()
			b.wire.mend()
			time.Sleep(10 * time.Second)
		}
		if lost(held) || !first.Waits() || !second.Waits() {
			t.Fatal("something was lost")
		}
		a.wire.sever()
		held.Release() // while the store is out of reach
		time.Sleep(3 * time.Second)
		a.wire.mend()
		first.Has().Release()
		second.Has().Release()
	})
}

// Without an answer no call waits for longer than a ticket lasts.
func TestCallsAreRefusedWhereTheStoreIsOutOfReach(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, a, b *process) {
		held := b.take(t, Tool("holder"))
		defer held.Release()
		waits := a.start(t, Tool("in line"), 0)
		a.wire.sever()
		began := time.Now()
		_, err := a.Acquire(context.Background(), "q", Tool("new"))
		var e *toolqueue.Error
		if !errors.As(err, &e) || e.Reason != toolqueue.ReasonUnavailable || !errors.Is(err, toolqueue.ErrUnavailable) || !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if err := waits.End(); !errors.Is(err, toolqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		if took := time.Since(began); took != lease*4/5 {
			t.Fatalf("refused after %s", took)
		}
		if _, err := a.AcquireWithin(context.Background(), "q", Tool("impatient"), time.Second); !errors.Is(err, toolqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		a.wire.mend()
		time.Sleep(time.Minute)
		b.counts(t, 1, 0)
	})
}

// A call with no time to wait asks once, and leaves no ticket in line.
func TestNoTimeToWaitInASharedQueue(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, a, b *process) {
		held := b.take(t, Tool("holder"))
		if _, err := a.AcquireWithin(context.Background(), "q", Tool("late"), -time.Second); !errors.Is(err, toolqueue.ErrTimeout) {
			t.Errorf("beside a slot that another process holds: %v", err)
		}
		held.Release()
		time.Sleep(time.Minute)
		b.counts(t, 0, 0)
		p, ok := a.TryAcquire("q", Tool("next"))
		if !ok {
			t.Error("a free slot was not taken")
		}
		p.Release()
		time.Sleep(time.Minute)
		b.counts(t, 0, 0)
	})
}

// A process that was paused for longer than its tickets last (a machine that slept, a debugger) finds that
// they are gone.
func TestIncidentAProcessThatStoodStillHasLostItsSlots(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Hour}}, func(t *testing.T, a, b *process) {
		held := a.take(t, In("s", "holder"))
		a.wire.set(func() { a.wire.slow, a.wire.rand = time.Hour, rand.New(rand.NewPCG(1, 2)) }) // a slow step, as if its process were paused
		c := b.start(t, Tool("next"), 0)
		next := c.Has()
		if !lost(held) {
			t.Fatal("two have the slot, and neither knows")
		}
		a.wire.set(func() { a.wire.slow = 0 })
		time.Sleep(2 * time.Hour)
		held.Release()
		next.Release()
		a.counts(t, 0, 0)
	})
}

// The server's clock jumps, forward and back, and one process notices before the other: no call in progress
// loses its slot, none its place in line, and the slots of a dead process are free in time all the same.
func TestIncidentAClockThatJumpsTakesNoSlot(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 20 * time.Second, -20 * time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			together(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, a, b *process) {
				held := a.take(t, Tool("holder"))
				first, second := a.start(t, Tool("first"), 0), b.start(t, Tool("second"), 0)
				for _, ahead := range []time.Duration{jump, 0} {
					for _, p := range []*process{b, a} {
						p.wire.set(func() { p.wire.ahead = ahead })
						time.Sleep(time.Minute)
						if lost(held) || !first.Waits() || !second.Waits() {
							t.Fatalf("%s hears that the clock is %s ahead: a slot or a place was lost", p.name, ahead)
						}
					}
				}
				held.Release()
				_ = first.Has() // of a process that dies as the clock jumps
				time.Sleep(time.Second)
				a.wire.sever()
				b.wire.set(func() { b.wire.ahead = jump })
				began := time.Now()
				next := second.Has()
				if took := time.Since(began); took < lease/2 || took > lease+time.Second {
					t.Errorf("the slot of the dead was free after %s", took)
				}
				next.Release()
			})
		})
	}
}

// Lost answers double nothing and lose nothing.
func TestLostAnswersDoNoHarm(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 2, MaxWaiters: 100}, func(t *testing.T, a, b *process) {
		for i, p := range []*process{a, b} {
			p.wire.set(func() { p.wire.deaf, p.wire.rand = 0.5, rand.New(rand.NewPCG(7, uint64(i))) })
		}
		var all sync.WaitGroup
		var running, done atomic.Int32
		for i := range 40 {
			p := []*process{a, b}[i%2]
			all.Go(func() {
				permit, err := p.Acquire(context.Background(), "q", Tool(fmt.Sprint(i)))
				if err != nil {
					t.Error(err)
					return
				}
				if running.Add(1) > 2 {
					t.Error("more than two at once")
				}
				time.Sleep(time.Second)
				running.Add(-1)
				done.Add(1)
				permit.Release()
			})
		}
		all.Wait()
		if done.Load() != 40 {
			t.Fatalf("%d done", done.Load())
		}
		for _, p := range []*process{a, b} {
			p.wire.mend()
		}
		b.counts(t, 0, 0)
	})
}

// Processes join and leave, are cut off and come back, and answers are lost. There are never more calls in
// progress than slots, as long as each ends when it is told that its slot is lost; and every waiting call
// gets a slot.
func TestNeverMoreThanTheSlots(t *testing.T) {
	calls, told, seeds := 0, 0, soak.Pick[uint64](3, 100)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.New(memory.Options{ID: "m"})
				rnd := rand.New(rand.NewPCG(seed, 1))
				c := toolqueue.Config{Concurrent: 1 + rnd.IntN(3)}
				if seed%2 == 1 {
					c.Lease = toolqueue.Lease{Idle: 3 * time.Second, MaxHold: 20 * time.Second}
				}
				st := &stress{slots: c.Concurrent, sessions: map[string]int{}}
				var all sync.WaitGroup
				for i := range 4 {
					p := join(t, s, fmt.Sprint("p", i), queue(c))
					p.wire.set(func() {
						p.wire.deaf, p.wire.slow, p.wire.rand = 0.1, 50*time.Millisecond, rand.New(rand.NewPCG(seed, uint64(i)+2))
					})
					for w := range 5 {
						all.Go(func() { st.worker(t, p, rand.New(rand.NewPCG(seed, uint64(100*i+w))), c.Lease.Idle > 0) })
					}
					all.Go(func() { cuts(p, rand.New(rand.NewPCG(seed, uint64(1000+i)))) })
				}
				all.Wait()
				st.mu.Lock()
				defer st.mu.Unlock()
				t.Logf("%d calls, %d told that their slot was lost, %d refused", st.calls, st.lost, st.refused)
				calls, told = calls+st.calls, told+st.lost
			})
		})
	}
	if calls < 500 || told < 10 {
		t.Fatalf("too little happened: %d calls, %d told that their slot was lost", calls, told)
	}
}

// cuts cuts the wire of a process sometimes.
func cuts(p *process, rnd *rand.Rand) {
	for range 12 {
		time.Sleep(time.Duration(rnd.IntN(60)) * time.Second)
		p.wire.set(func() { p.wire.cut = errCut })
		time.Sleep(time.Duration(rnd.IntN(40)) * time.Second)
		p.wire.set(func() { p.wire.cut = nil })
	}
}

// stress counts the calls in progress.
type stress struct {
	slots    int
	mu       sync.Mutex
	running  int
	sessions map[string]int
	calls    int
	lost     int
	refused  int
}

func (s *stress) worker(t *testing.T, p *process, rnd *rand.Rand, sessions bool) {
	for range 25 {
		who := toolqueue.Who{Tool: "t"}
		if sessions && rnd.IntN(2) == 0 {
			who.Session = fmt.Sprint("s", rnd.IntN(3))
		}
		permit, err := p.AcquireWithin(context.Background(), "q", who, time.Duration(1+rnd.IntN(300))*time.Second)
		if err != nil {
			s.note(t, func() { s.refused++ })
			continue
		}
		s.begin(t, who.Session)
		gone := false
		select {
		case <-time.After(time.Duration(rnd.IntN(1000+rnd.IntN(2)*rnd.IntN(2)*30_000)) * time.Millisecond):
		case <-permit.Lost():
			gone = true
		}
		s.end(t, who.Session, gone)
		permit.Release()
		permit.Release()
		time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
	}
}

func (s *stress) begin(t *testing.T, session string) {
	s.note(t, func() {
		s.running++
		s.calls++
		s.sessions[session]++
		if s.running > s.slots {
			t.Errorf("%d at work on %d slots", s.running, s.slots)
		}
		if session != "" && s.sessions[session] > 1 {
			t.Errorf("two calls of session %s at once", session)
		}
	})
}

func (s *stress) end(t *testing.T, session string, gone bool) {
	s.note(t, func() {
		s.running--
		s.sessions[session]--
		if gone {
			s.lost++
		}
	})
}

func (s *stress) note(t *testing.T, f func()) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

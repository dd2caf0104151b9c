package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// together runs a test with processes over one store, in simulated time.
func together(t *testing.T, c toolqueue.Config, f func(t *testing.T, a, b *process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{ID: "m"})
		f(t, join(t, s, "a", queue(c)), join(t, s, "b", queue(c)))
	})
}

func TestSlotsAreSharedByAllProcesses(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 2}, func(t *testing.T, a, b *process) {
		first := a.take(t, Tool("first"))
		second := b.take(t, Tool("second"))
		third := b.start(t, Tool("third"), 0)
		if !third.Waits() {
			t.Fatal("three calls at once at capacity 2")
		}
		a.counts(t, 2, 1)
		first.Release()
		third.Has().Release()
		second.Release()
		b.counts(t, 0, 0)
	})
}

func TestFirstComeFirstServedAcrossProcesses(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, a, b *process) {
		held := a.take(t, Tool("holder"))
		var line []*Call
		for i := range 20 {
			p := []*process{a, b}[i*7%3%2]
			line = append(line, p.start(t, Tool(fmt.Sprint(i)), 0))
		}
		for i, c := range line {
			for n, w := range line[i:] {
				if !w.Waits() {
					t.Fatalf("call %d overtook call %d", i+n, i)
				}
			}
			held.Release()
			held = c.Has()
		}
		held.Release()
	})
}

// A slot that another process gives back is seen with the next poll, or at once with a signal.
func TestASlotGivenBackElsewhereIsSeenInTime(t *testing.T) {
	for name, stir := range map[string]bool{"with a sign": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			together(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, a, b *process) {
				held := a.take(t, Tool("first"))
				c := b.start(t, Tool("second"), 0)
				time.Sleep(10*time.Second + 7*time.Millisecond)
				began := time.Now()
				held.Release()
				synctest.Wait()
				bound := 250 * time.Millisecond
				if stir {
					b.Notify()
					bound = 80 * time.Millisecond
				}
				c.Has().Release()
				if took := time.Since(began); took > bound {
					t.Fatalf("it took %s", took)
				}
			})
		})
	}
}

func TestMaxWaitersHoldsOverAllProcesses(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, MaxWaiters: 2}, func(t *testing.T, a, b *process) {
		held := a.take(t, Tool("holder"))
		defer held.Release()
		a.start(t, Tool("first"), 0)
		b.start(t, Tool("second"), 0)
		for _, p := range []*process{a, b} {
			_, err := p.Acquire(context.Background(), "q", Tool("third"))
			var full *toolqueue.Error
			if !errors.As(err, &full) || full.Reason != toolqueue.ReasonFull || !errors.Is(err, toolqueue.ErrFull) || full.Depth != 2 {
				t.Fatalf("at %s: %v", p.name, err)
			}
		}
	})
}

func TestCancelledCallLeavesTheLine(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, MaxWait: time.Minute}, func(t *testing.T, a, b *process) {
		held := a.take(t, Tool("holder"))
		impatient := b.start(t, Tool("impatient"), 3*time.Second)
		cancelled := b.start(t, Tool("cancelled"), 0)
		patient := a.start(t, Tool("patient"), 0)
		began := time.Now()
		if err := impatient.End(); !errors.Is(err, toolqueue.ErrTimeout) || time.Since(began) != 3*time.Second {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		cancelled.Cancel()
		if err := cancelled.End(); !errors.Is(err, toolqueue.ErrCancelled) || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		b.counts(t, 1, 1)
		held.Release()
		patient.Has().Release()
		last := a.take(t, Tool("holder"))
		if err := b.start(t, Tool("by the queue's own bound"), 0).End(); !errors.Is(err, toolqueue.ErrTimeout) {
			t.Fatal(err)
		}
		last.Release()
		a.counts(t, 0, 0)
	})
}

func TestASessionKeepsItsSlotInWhateverProcessItCalls(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: 10 * time.Second}}, func(t *testing.T, a, b *process) {
		first := a.take(t, In("s", "one"))
		other := a.start(t, In("t", "other"), 0)
		second := b.start(t, In("s", "two"), 0)
		time.Sleep(time.Second)
		if !second.Waits() {
			t.Fatal("two calls of a session at once")
		}
		if place := (<-second.Waiting).Position(); place != 1 {
			t.Fatalf("place %d behind its own session's call", place)
		}
		first.Release()
		second.Has().Release()
		time.Sleep(9 * time.Second)
		a.take(t, In("s", "three")).Release()
		if !other.Waits() {
			t.Fatal("another session got the slot of one that keeps it")
		}
		began := time.Now()
		other.Has().Release()
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Fatalf("the lease ended after %s", took)
		}
		time.Sleep(11 * time.Second)
		a.counts(t, 0, 0)
	})
}

func TestALeaseEndsWithItsSessionAnywhere(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Hour, MaxHold: 2 * time.Hour}}, func(t *testing.T, a, b *process) {
		a.take(t, In("s", "one")).Release()
		other := b.start(t, In("t", "other"), 0)
		time.Sleep(time.Minute)
		if s := b.counts(t, 1, 1); !s.Holders[0].Leased || !s.Holders[0].Idle || s.Holders[0].Owner != "a" || s.Holders[0].Expires.IsZero() {
			t.Fatalf("%+v", s.Holders)
		}
		b.EndSession("s")
		held := other.Has()
		b.EndSession("t") // together with the call
		synctest.Wait()
		if c := a.start(t, In("u", "next"), 0); !c.Waits() {
			t.Fatal("a session that ended lost its slot under a call")
		} else {
			held.Release()
			c.Has().Release()
		}
		a.EndSession("u")
		a.counts(t, 0, 0)
	})
}

func TestUnusedLeaseIsNotKept(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Hour}}, func(t *testing.T, a, b *process) {
		held := a.take(t, Tool("of no session"))
		c := b.start(t, In("s", "gives up"), 0)
		c.Cancel()
		held.Release()
		if err := c.End(); !errors.Is(err, toolqueue.ErrCancelled) {
			t.Fatal(err)
		}
		b.take(t, Tool("next")).Release()
		a.counts(t, 0, 0)
	})
}

// Status shows the queue of all processes; sessions are shown by their key, as in the store.
func TestStatusShowsAllProcesses(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Second}}, func(t *testing.T, a, b *process) {
		held := a.take(t, toolqueue.Who{Session: "secret", Agent: "anna", Tool: "click", Execution: "queue-1"})
		w := b.start(t, toolqueue.Who{Session: "other", Agent: "bert", Tool: "look", Execution: "queue-2"}, 0)
		behind := b.start(t, In("secret", "type"), 0)
		time.Sleep(time.Second)
		for _, p := range []*process{a, b} {
			s := p.counts(t, 1, 2)
			h := s.Holders[0]
			if !s.Shared || s.Heard.IsZero() || h.Owner != "a" || h.Agent != "anna" || h.Tool != "click" || h.Execution != "queue-1" || !h.Leased || h.Idle || h.Behind != 1 || h.Since.IsZero() {
				t.Fatalf("%+v", s)
			}
			if len(s.Waiters) != 1 || s.Waiters[0].Owner != "b" || s.Waiters[0].Agent != "bert" || s.Waiters[0].Position != 1 || s.Waiters[0].Since.IsZero() {
				t.Fatalf("%+v", s.Waiters)
			}
			if strings.Contains(fmt.Sprint(s), "secret") || gateway.SessionLabel(h.Session) != gateway.SessionLabel("secret") {
				t.Fatalf("session %q", h.Session)
			}
		}
		if place := (<-w.Waiting).Position(); place != 1 {
			t.Fatalf("place %d", place)
		}
		held.Release()
		behind.Has().Release()
		w.Has().Release()
	})
}

func TestHooksHearOfTheCallsOfTheirProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{ID: "m"})
		var heard []string
		say := func(format string, args ...any) { heard = append(heard, fmt.Sprintf(format, args...)) }
		a := joinWithin(t, s, "a", lease, toolqueue.Hooks{
			Depth:  func(q string, n int) { say("depth %s %d", q, n) },
			Queued: func(q string, w toolqueue.Who, depth, of int) { say("queued %s %s %d/%d", q, w.Tool, depth, of) },
			Waited: func(q string, w toolqueue.Who, d time.Duration) {
				say("waited %s %s %s", q, w.Tool, d.Round(time.Second))
			},
			Refused: func(q string, w toolqueue.Who, r toolqueue.Reason, _ time.Duration) {
				say("refused %s %s %s", q, w.Tool, r)
			},
		}, queue(toolqueue.Config{Concurrent: 1}))
		b := join(t, s, "b", queue(toolqueue.Config{Concurrent: 1}))
		held := b.take(t, Tool("holder"))
		before := b.start(t, Tool("before"), 0)
		c := a.start(t, Tool("c"), 0)
		if err := a.start(t, Tool("d"), 2*time.Second).End(); err == nil {
			t.Fatal("it got a slot")
		}
		time.Sleep(3 * time.Second)
		held.Release()
		before.Has().Release()
		c.Has().Release()
		want := []string{"depth q 1", "queued q c 2/1", "depth q 2", "queued q d 3/1", "depth q 1", "refused q d timeout", "depth q 0", "waited q c 5s"}
		if !slices.Equal(heard, want) {
			t.Fatalf("heard %q, want %q", heard, want)
		}
	})
}

// Any number of tickets is kept with few steps.
func TestTicketsAreKeptWithFewSteps(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 50}, func(t *testing.T, a, b *process) {
		var held []toolqueue.Permit
		for i := range 50 {
			held = append(held, a.take(t, Tool(fmt.Sprint(i))))
			time.Sleep(100 * time.Millisecond)
		}
		before := a.wire.taken()
		time.Sleep(time.Minute)
		if n := a.wire.taken() - before; n < 12 || n > 30 {
			t.Fatalf("%d steps in a minute", n)
		}
		for _, p := range held {
			if lost(p) {
				t.Fatal("lost")
			}
			p.Release()
		}
		b.counts(t, 0, 0)
	})
}

func TestAProcessThatEndsGivesEverythingBack(t *testing.T) {
	together(t, toolqueue.Config{Concurrent: 2, Lease: toolqueue.Lease{Idle: time.Hour}}, func(t *testing.T, a, b *process) {
		a.take(t, In("s", "one")).Release()
		held := a.take(t, Tool("two"))
		waits := a.start(t, Tool("three"), 0)
		if err := a.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := waits.End(); !errors.Is(err, toolqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		if !lost(held) {
			t.Fatal("a call that is still under way was not told")
		}
		b.counts(t, 0, 0)
		if _, err := a.Acquire(context.Background(), "q", Tool("four")); !errors.Is(err, toolqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		held.Release()
	})
}

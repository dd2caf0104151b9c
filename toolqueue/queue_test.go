package toolqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Seed tool-queue-manager, "Testing": concurrency limits, FIFO ordering, abort
// semantics, timeout while queued, isolation, depth accounting, release
// ordering, hooks, double configure.

func TestCapacityOneSerializesCalls(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	first := Take(t, q, "a", Tool("first"))
	second := Start(t, q, "a", Tool("second"), 0)
	if !second.Waits() {
		t.Fatal("two calls at once at capacity 1")
	}
	first.Release()
	second.Has().Release()
	counts(t, q, "a", 0, 0)
}

func TestFIFO(t *testing.T) {
	for _, capacity := range []int{1, 3, 20} { // below and above the slots that need no lock
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: capacity}))
			var held []toolqueue.Permit
			for range capacity {
				held = append(held, Take(t, q, "a", Tool("holder")))
			}
			var line []*Call
			for i := range 30 {
				line = append(line, Start(t, q, "a", Tool(fmt.Sprint(i)), 0))
			}
			for i, c := range line {
				counts(t, q, "a", capacity, len(line)-i)
				held[0].Release()
				held = append(held[1:], c.Has())
				for _, later := range line[i+1:] {
					if !later.Waits() {
						t.Fatalf("a later call overtook call %d", i)
					}
				}
			}
			for _, p := range held {
				p.Release()
			}
			counts(t, q, "a", 0, 0)
		})
	}
}

func TestReleaseOrdering(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 3}))
	a, b, c := Take(t, q, "a", Tool("a")), Take(t, q, "a", Tool("b")), Take(t, q, "a", Tool("c"))
	first, second := Start(t, q, "a", Tool("first"), 0), Start(t, q, "a", Tool("second"), 0)
	b.Release() // whichever slot it is, the first in line has it
	first.Has()
	if !second.Waits() {
		t.Fatal("one slot let two calls in")
	}
	c.Release()
	second.Has()
	a.Release()
	counts(t, q, "a", 2, 0)
}

func TestAbortWhileWaiting(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	held := Take(t, q, "a", Tool("holder"))
	first, second, third := Start(t, q, "a", Tool("1"), 0), Start(t, q, "a", Tool("2"), 0), Start(t, q, "a", Tool("3"), 0)
	second.Cancel()
	err := second.End()
	var e *toolqueue.Error
	if !errors.Is(err, toolqueue.ErrCancelled) || !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
		t.Fatalf("error %v is not what a cancelled wait ends with", err)
	}
	if e.Queue != "a" || e.Reason != toolqueue.ReasonCancelled || e.Depth != 2 || e.Concurrent != 1 {
		t.Errorf("error has %+v", e)
	}
	counts(t, q, "a", 1, 2)
	held.Release()
	first.Has().Release()
	third.Has().Release()
	counts(t, q, "a", 0, 0)
}

func TestDeadlineWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
		held := Take(t, q, "a", Tool("holder"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := q.Acquire(ctx, "a", Tool("late"))
		if !errors.Is(err, toolqueue.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		held.Release()
		counts(t, q, "a", 0, 0)
	})
}

func TestEndedContextGetsNoSlot(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	cause := errors.New("the caller hung up")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	_, err := q.Acquire(ctx, "a", Tool("late"))
	for _, want := range []error{toolqueue.ErrCancelled, context.Canceled, cause} {
		if !errors.Is(err, want) {
			t.Errorf("error %v is not %v", err, want)
		}
	}
	counts(t, q, "a", 0, 0)
}

func TestTimeoutWhileQueued(t *testing.T) {
	for name, within := range map[string]time.Duration{"of the queue": 0, "of the call": 2 * time.Second, "queue's is shorter": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, MaxWait: 3 * time.Second}))
				held := Take(t, q, "a", Tool("holder"))
				other := Start(t, q, "a", Tool("other"), 0)
				want := 3 * time.Second
				if within > 0 {
					want = min(want, within)
				}
				time.Sleep(time.Millisecond)
				err := Start(t, q, "a", Tool("late"), within).End()
				var e *toolqueue.Error
				if !errors.Is(err, toolqueue.ErrTimeout) || !errors.As(err, &e) || e.Waited != want || e.Reason != toolqueue.ReasonTimeout {
					t.Errorf("error %v after %+v; want a timeout after %s", err, e, want)
				}
				held.Release()
				_ = other.End()
				other.Permit.Release()
				counts(t, q, "a", 0, 0)
			})
		})
	}
}

// An expired deadline means no wait, not an unlimited one.
func TestExpiredDeadlineDoesNotWait(t *testing.T) {
	for _, within := range []time.Duration{0, -1, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, MaxWait: time.Minute}))
			free, err := q.AcquireWithin(t.Context(), "a", Tool("first"), within)
			if err != nil {
				t.Fatalf("within %s, with a free slot: %v", within, err)
			}
			began := time.Now()
			_, err = q.AcquireWithin(t.Context(), "a", Tool("late"), within)
			if !errors.Is(err, toolqueue.ErrTimeout) || time.Since(began) != 0 {
				t.Errorf("within %s: %v after %s", within, err, time.Since(began))
			}
			if _, ok := q.TryAcquire("a", In("s", "late")); ok {
				t.Error("a slot that another call has was taken")
			}
			counts(t, q, "a", 1, 0)
			free.Release()
			p, ok := q.TryAcquire("a", Tool("next"))
			if !ok {
				t.Error("a free slot was not taken")
			}
			p.Release()
			counts(t, q, "a", 0, 0)
		})
	}
}

func TestQueuesAreIsolated(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, map[string]toolqueue.Config{"a": {Concurrent: 1}, "b": {Concurrent: 1}})
	Take(t, q, "a", Tool("holder"))
	Start(t, q, "a", Tool("waiter"), 0)
	Take(t, q, "b", Tool("free")).Release()
	counts(t, q, "a", 1, 1)
	counts(t, q, "b", 0, 0)
}

func TestManyQueues(t *testing.T) {
	configs := map[string]toolqueue.Config{}
	for i := range 100 {
		configs[fmt.Sprintf("queue-%02d", i)] = toolqueue.Config{Concurrent: i + 1}
	}
	q := newQueues(t, toolqueue.Hooks{}, configs)
	for i, s := range q.All(0) {
		if s.Name != fmt.Sprintf("queue-%02d", i) || s.Concurrent != i+1 {
			t.Fatalf("queue %d is %q with %d", i, s.Name, s.Concurrent)
		}
		p := Take(t, q, s.Name, Tool("t"))
		counts(t, q, s.Name, 1, 0)
		p.Release()
	}
	if s, ok := q.Status("queue-100", 0); ok {
		t.Errorf("found %+v", s)
	}
}

func TestReleaseCountsOnce(t *testing.T) {
	for _, n := range []int{1, 20} {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: n}))
		var all []toolqueue.Permit
		for range n {
			all = append(all, Take(t, q, "a", Tool("first")))
		}
		stale := all[n-1]
		for range 3 {
			stale.Release()
		}
		counts(t, q, "a", n-1, 0)
		again := Take(t, q, "a", Tool("second"))
		stale.Release() // it is not the slot's holder any more
		counts(t, q, "a", n, 0)
		waiter := Start(t, q, "a", Tool("third"), 0)
		again.Release()
		again.Release()
		stale.Release()
		waiter.Has()
		counts(t, q, "a", n, 0)
	}
	toolqueue.Permit{}.Release()
}

func TestUnknownQueue(t *testing.T) {
	var refused []toolqueue.Reason
	q := toolqueue.New(toolqueue.Hooks{Refused: func(_ string, _ toolqueue.Who, r toolqueue.Reason, _ time.Duration) { refused = append(refused, r) }})
	_, err := q.Acquire(context.Background(), "nowhere", Tool("t"))
	if !errors.Is(err, toolqueue.ErrUnknown) || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(refused, []toolqueue.Reason{toolqueue.ReasonUnknown}) {
		t.Errorf("refused %v", refused)
	}
	q.EndSession("nobody")
	if all := q.All(1); len(all) != 0 {
		t.Errorf("queues %v", all)
	}
}

func TestMaxWaiters(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, MaxWaiters: 2}))
	Take(t, q, "a", Tool("holder"))
	first := Start(t, q, "a", Tool("1"), 0)
	Start(t, q, "a", Tool("2"), 0)
	_, err := q.Acquire(context.Background(), "a", Tool("3"))
	var e *toolqueue.Error
	if !errors.Is(err, toolqueue.ErrFull) || !errors.As(err, &e) || e.Depth != 2 {
		t.Fatalf("error %v", err)
	}
	first.Cancel()
	_ = first.End()
	Start(t, q, "a", Tool("4"), 0)
	counts(t, q, "a", 1, 2)
}

// TestHooks: Depth is called in order, Queued when the wait begins, Waited with the
// duration of the wait, and nothing for a call that did not wait.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		say := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}
		q := newQueues(t, toolqueue.Hooks{
			Depth: func(queue string, depth int) { say("depth %s %d", queue, depth) },
			Queued: func(queue string, who toolqueue.Who, depth, concurrent int) {
				say("queued %s %s at %d of %d", queue, who.Tool, depth, concurrent)
			},
			Waited: func(queue string, who toolqueue.Who, wait time.Duration) {
				say("waited %s %s %s", queue, who.Tool, wait)
			},
			Refused: func(queue string, who toolqueue.Who, r toolqueue.Reason, d time.Duration) {
				say("refused %s %s %s %s", queue, who.Tool, r, d)
			},
		}, one("a", toolqueue.Config{Concurrent: 1, MaxWaiters: 2}))
		Take(t, q, "a", Tool("free")).Release()
		if len(log) > 0 {
			t.Errorf("a call that did not wait makes hooks say %q", log)
		}
		held := Take(t, q, "a", Tool("holder"))
		first := Start(t, q, "a", Tool("1"), 0)
		second := Start(t, q, "a", Tool("2"), time.Second)
		_, _ = q.Acquire(t.Context(), "a", Tool("3"))
		time.Sleep(2 * time.Second)
		_ = second.End()
		held.Release()
		first.Has().Release()
		want := []string{
			"depth a 1", "queued a 1 at 1 of 1", "depth a 2", "queued a 2 at 2 of 1", "refused a 3 full 0s",
			"depth a 1", "refused a 2 timeout 1s", "depth a 0", "waited a 1 2s",
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Errorf("hooks (-want +got):\n%s", diff)
		}
	})
}

func TestPanicInHookLosesNoSlot(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{Waited: func(_ string, who toolqueue.Who, _ time.Duration) {
		if who.Tool == "waited" {
			panic("waited")
		}
	}}, one("a", toolqueue.Config{Concurrent: 1}))
	for _, name := range []string{"waits", "waited"} {
		held := Take(t, q, "a", Tool("holder"))
		who := Tool(name)
		who.Waits = func(toolqueue.Waiting) {
			if name == "waits" {
				panic("waits")
			}
			held.Release()
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is lost", name)
				}
			}()
			_, _ = q.Acquire(context.Background(), "a", who)
		}()
		held.Release()
		counts(t, q, "a", 0, 0)
	}
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, MaxWait: time.Hour, MaxWaiters: 9}))
		began := time.Now()
		held := Take(t, q, "a", toolqueue.Who{Session: "s1", Agent: "claude-1", Tool: "t1", Execution: "e1", Since: began})
		time.Sleep(time.Second)
		first := Start(t, q, "a", toolqueue.Who{Session: "s2", Agent: "claude-2", Tool: "t2", Execution: "e2"}, 0)
		second := Start(t, q, "a", Tool("t3"), 0)
		want := toolqueue.Status{
			Name: "a", Concurrent: 1, InUse: 1, Depth: 2, MaxWait: time.Hour, MaxWaiters: 9,
			Holders: []toolqueue.Holder{{Session: "s1", Agent: "claude-1", Tool: "t1", Execution: "e1", Since: began}},
			Waiters: []toolqueue.Waiter{{Session: "s2", Agent: "claude-2", Tool: "t2", Execution: "e2", Since: began.Add(time.Second), Position: 1}},
		}
		got, _ := q.Status("a", 1)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		place := <-second.Waiting
		if n := place.Position(); n != 2 {
			t.Errorf("position %d; want 2", n)
		}
		time.Sleep(time.Second)
		held.Release()
		synctest.Wait()
		if n := place.Position(); n != 1 {
			t.Errorf("position %d; want 1", n)
		}
		if s := status(t, q, "a"); len(s.Holders) != 1 || s.Holders[0].Tool != "t2" || !s.Holders[0].Since.Equal(began.Add(2*time.Second)) {
			t.Errorf("holders %+v", s.Holders)
		}
		first.Has().Release()
		second.Has().Release()
		Start(t, q, "a", Tool("t4"), 0).Has() // the waiters are used again
		if n := place.Position() + (<-first.Waiting).Position() + (toolqueue.Waiting{}).Position(); n != 0 {
			t.Errorf("calls that wait no longer have a position")
		}
	})
}

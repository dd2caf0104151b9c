package toolqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestRaisingWakesWaiters(t *testing.T) {
	for _, capacity := range []int{1, 8} {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: capacity}))
		for range capacity {
			Take(t, q, "a", Tool("holder"))
		}
		first, second, third := Start(t, q, "a", Tool("1"), 0), Start(t, q, "a", Tool("2"), 0), Start(t, q, "a", Tool("3"), 0)
		if err := q.Configure(one("a", toolqueue.Config{Concurrent: capacity + 2})); err != nil {
			t.Fatal(err)
		}
		first.Has()
		second.Has()
		if !third.Waits() {
			t.Fatal("two more slots let three calls in")
		}
		counts(t, q, "a", capacity+2, 1)
	}
}

func set(t *testing.T, q *toolqueue.Queues, queue string, concurrent int) {
	t.Helper()
	if _, _, err := q.Update(queue, func(c *toolqueue.Config) { c.Concurrent = concurrent }); err != nil {
		t.Fatal(err)
	}
}

// With fewer slots the queue drains: holders keep their slots, and no call gets one until fewer
// are held than the new capacity. Then the waiters follow in order. With 10 slots some are beyond
// those that need no lock.
func TestShrinkDrains(t *testing.T) {
	for _, capacity := range []int{3, 10} {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: capacity}))
		var held []toolqueue.Permit
		for range capacity {
			held = append(held, Take(t, q, "a", Tool("holder")))
		}
		first, second := Start(t, q, "a", Tool("1"), 0), Start(t, q, "a", Tool("2"), 0)
		set(t, q, "a", 1)
		counts(t, q, "a", capacity, 2)
		for i, p := range held[:capacity-1] {
			p.Release()
			p.Release()
			counts(t, q, "a", capacity-1-i, 2)
		}
		if !first.Waits() {
			t.Fatal("a slot beyond the new capacity was passed on")
		}
		held[capacity-1].Release()
		first.Has().Release()
		second.Has().Release()
		counts(t, q, "a", 0, 0)
		only := Take(t, q, "a", Tool("only"))
		if _, ok := q.TryAcquire("a", Tool("one more")); ok {
			t.Fatal("two slots after a shrink to one")
		}
		set(t, q, "a", capacity) // and back
		for range capacity - 1 {
			Take(t, q, "a", Tool("again"))
		}
		counts(t, q, "a", capacity, 0)
		if _, ok := q.TryAcquire("a", Tool("one more")); ok {
			t.Fatalf("more than %d slots after a raise to that", capacity)
		}
		only.Release()
	}
}

// Free slots beyond the new capacity are removed at once. A raise before the rest has drained
// restores the slots that were not removed yet.
func TestRaiseWhileItDrains(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 12}))
	var held []toolqueue.Permit
	for range 6 {
		held = append(held, Take(t, q, "a", Tool("holder")))
	}
	set(t, q, "a", 2)
	first, second, third := Start(t, q, "a", Tool("1"), 0), Start(t, q, "a", Tool("2"), 0), Start(t, q, "a", Tool("3"), 0)
	held[0].Release()
	counts(t, q, "a", 5, 3)
	set(t, q, "a", 7)
	first.Has()
	second.Has()
	counts(t, q, "a", 7, 1)
	held[1].Release()
	third.Has()
	counts(t, q, "a", 7, 0)
}

// An idle lease counts as held: it keeps its slot for its next call, and the slot is removed when
// the lease ends.
func TestShrinkLeavesLeases(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 2, Lease: toolqueue.Lease{Idle: time.Hour}}))
	for _, s := range []string{"s1", "s2"} {
		Take(t, q, "a", In(s, "first")).Release()
	}
	counts(t, q, "a", 2, 0)
	set(t, q, "a", 1)
	waits := Start(t, q, "a", In("s3", "waits"), 0)
	Take(t, q, "a", In("s1", "second")).Release()
	q.EndSession("s1")
	counts(t, q, "a", 1, 1)
	q.EndSession("s2")
	waits.Has()
	counts(t, q, "a", 1, 0)
}

// A refused update changes nothing.
func TestUpdateRefuses(t *testing.T) {
	is := toolqueue.Config{Concurrent: 2, MaxWait: time.Minute, MaxWaiters: 9, Lease: toolqueue.Lease{Idle: time.Second}}
	q := newQueues(t, toolqueue.Hooks{}, one("a", is))
	for want, change := range map[string]func(*toolqueue.Config){
		"concurrent is 0":                func(c *toolqueue.Config) { c.Concurrent = 0 },
		"concurrent is -1":               func(c *toolqueue.Config) { c.Concurrent = -1 },
		"it must be from 1 to 1000000":   func(c *toolqueue.Config) { c.Concurrent = toolqueue.MaxConcurrent + 1 },
		"the maximum wait is -1ns":       func(c *toolqueue.Config) { c.MaxWait = -1 },
		"the maximum number of waiters":  func(c *toolqueue.Config) { c.MaxWaiters = -1 },
		"session lease and whether it i": func(c *toolqueue.Config) { c.Concurrent, c.Lease.Idle = 5, 0 },
		"shared cannot be changed":       func(c *toolqueue.Config) { c.Concurrent, c.Shared = 5, true },
	} {
		before, after, err := q.Update("a", change)
		if err == nil || !strings.Contains(err.Error(), want) || before != is || after != is {
			t.Errorf("%v, from %+v to %+v; want an error with %q", err, before, after, want)
		}
	}
	if _, _, err := q.Update("b", func(*toolqueue.Config) { t.Error("called for no queue") }); !errors.Is(err, toolqueue.ErrUnknown) {
		t.Errorf("an unknown queue: %v", err)
	}
	before, after, err := q.Update("a", func(c *toolqueue.Config) { c.Concurrent, c.MaxWait, c.MaxWaiters = 1, 0, 1 })
	if want := (toolqueue.Config{Concurrent: 1, MaxWaiters: 1, Lease: is.Lease}); err != nil || before != is || after != want {
		t.Errorf("%v, from %+v to %+v", err, before, after)
	}
	Take(t, q, "a", Tool("holder"))
	Start(t, q, "a", Tool("waits"), 0)
	if _, err := q.Acquire(t.Context(), "a", Tool("one too many")); !errors.Is(err, toolqueue.ErrFull) {
		t.Errorf("the new bound of waiters: %v", err)
	}
}

func TestConfigureTwice(t *testing.T) {
	big := toolqueue.Config{Concurrent: 4, MaxWait: time.Minute, MaxWaiters: 9, Lease: toolqueue.Lease{Idle: time.Second, MaxHold: time.Hour}}
	q := newQueues(t, toolqueue.Hooks{}, one("a", big))
	held := Take(t, q, "a", Tool("holder"))
	for _, c := range []toolqueue.Config{big, {Concurrent: 1}, {Concurrent: 2, MaxWait: 1, MaxWaiters: 1, Lease: toolqueue.Lease{Idle: 1, MaxHold: 1}}} {
		if err := q.Configure(map[string]toolqueue.Config{"a": c, "b": {Concurrent: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	s := status(t, q, "a")
	if got := (toolqueue.Config{Concurrent: s.Concurrent, MaxWait: s.MaxWait, MaxWaiters: s.MaxWaiters, Lease: s.Lease}); got != big {
		t.Errorf("configuration is %+v; want %+v", got, big)
	}
	counts(t, q, "a", 1, 0)
	held.Release()
	counts(t, q, "a", 0, 0)
}

func TestConfigureReportsAllMistakes(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	err := q.Configure(map[string]toolqueue.Config{
		"a":                     {Concurrent: 5},
		"good":                  {Concurrent: 1},
		"":                      {Concurrent: 1},
		"a b":                   {Concurrent: 1},
		strings.Repeat("x", 65): {Concurrent: 1},
		"none":                  {},
		"many":                  {Concurrent: toolqueue.MaxConcurrent + 1},
		"wait":                  {Concurrent: 1, MaxWait: -1, MaxWaiters: -1},
		"lease":                 {Concurrent: 1, Lease: toolqueue.Lease{Idle: -1, MaxHold: -1}},
		"hold":                  {Concurrent: 1, Lease: toolqueue.Lease{MaxHold: 1}},
	})
	if err == nil {
		t.Fatal("no mistake was found")
	}
	text := err.Error()
	for _, want := range []string{
		`"": a name`, `"a b": a name`, `xxx": a name`, `"none": concurrent is 0`, `"many": concurrent is 1000001`, `"wait": the maximum wait is -1ns`,
		`"wait": the maximum number of waiters is -1`, `"lease": the idle time`, `"lease": the maximum hold`, `"hold": the session lease has a maximum hold but no idle time`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if s := status(t, q, "a"); s.Concurrent != 1 || len(q.All(0)) != 1 {
		t.Errorf("a mistake changed something: %+v", q.All(0))
	}
	if err := q.Configure(one(strings.Repeat("x", 64), toolqueue.Config{Concurrent: toolqueue.MaxConcurrent})); err != nil {
		t.Errorf("the greatest queue: %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  toolqueue.Error
		want string
	}{
		{toolqueue.Error{Queue: "q", Reason: toolqueue.ReasonFull, Depth: 20, Concurrent: 1}, `tool queue "q" is full: 20 calls in line for its 1 slot, and no more may wait; call again later, or raise its maximum number of waiters`},
		{toolqueue.Error{Queue: "q", Reason: toolqueue.ReasonTimeout, Waited: 30 * time.Second, Depth: 3, Concurrent: 2}, `waited 30s for one of the 2 slots of tool queue "q", as long as it may (others in line: 3); call again later, or raise its capacity or its maximum wait`},
		{toolqueue.Error{Queue: "q", Reason: toolqueue.ReasonUnknown}, `there is no tool queue "q": add it to the queues, or bind the tool to one that is there`},
		{toolqueue.Error{Queue: "q", Reason: toolqueue.ReasonTimeout, Waited: 3 * time.Second, Concurrent: 1}, `waited 3s for the only slot of tool queue "q", as long as it may (others in line: 0); call again later, or raise its capacity or its maximum wait`},
		{toolqueue.Error{Queue: "q", Reason: toolqueue.ReasonCancelled, Waited: 1234567 * time.Nanosecond, Concurrent: 2}, `gave up after 1ms in line for one of the 2 slots of tool queue "q" (others in line: 0): the call was cancelled or its time was over`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

func TestDefaultQueue(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one(toolqueue.Default, toolqueue.Config{Concurrent: toolqueue.DefaultConcurrent}))
	for range toolqueue.DefaultConcurrent {
		Take(t, q, toolqueue.Default, Tool("t"))
	}
	counts(t, q, toolqueue.Default, toolqueue.DefaultConcurrent, 0)
	ctx, cancel := context.WithCancel(context.Background())
	who := Tool("one too many")
	who.Waits = func(toolqueue.Waiting) { cancel() }
	if _, err := q.Acquire(ctx, toolqueue.Default, who); err == nil {
		t.Error("no bound")
	}
}

package local_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// With any number of concurrent submits, cancels and ends, no more tasks than slots run, all end, and no slot
// stays taken.
func TestRunsNeverExceedSlots(t *testing.T) {
	const slots, tasks = 3, 90
	h := newFixture(t, async("tool"), async("lined", inQueue("one")))
	h.options.Concurrent = slots
	var running, most, lined, mostLined atomic.Int32
	play := func(n, most *atomic.Int32) func(context.Context, gateway.Call) (gateway.Result, error) {
		return func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
			now := n.Add(1)
			defer n.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			select {
			case <-ctx.Done():
				return gateway.Result{}, ctx.Err()
			case <-time.After(time.Duration(rand.IntN(3)) * time.Millisecond):
			}
			return said("done"), nil
		}
	}
	h.play("tool", play(&running, &most))
	h.play("lined", func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		return play(&lined, &mostLined)(ctx, c)
	})
	x := h.open()
	var group sync.WaitGroup
	for i := range tasks {
		group.Go(func() {
			id := h.submit(x, []string{"tool", "tool", "lined"}[i%3])
			if i%5 == 0 {
				_, _ = x.Cancel(context.Background(), id, "")
			}
			h.end(x, id)
		})
	}
	group.Wait()
	if most.Load() > slots || mostLined.Load() > 1 {
		t.Errorf("%d ran side by side, %d of the tool queue", most.Load(), mostLined.Load())
	}
	testkit.Wait(h.t, "the slots are free", func() bool { return x.Agents()[0].InUse == 0 })
	h.slots(0)
}

// First come, first served.
func TestFIFO(t *testing.T) {
	h := newFixture(t, async("tool"))
	h.options.Concurrent = 1
	h.must(h.engine.Pause(t.Context(), signalbox.QueueCommands, "", "", time.Time{}))
	var mu sync.Mutex
	var order []string
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, c.Task)
		return said("done"), nil
	})
	x := h.open()
	var ids []string
	for range 20 {
		ids = append(ids, h.submit(x, "tool"))
	}
	h.must(h.engine.Resume(t.Context(), signalbox.QueueCommands, ""))
	for _, id := range ids {
		h.end(x, id)
	}
	if !slices.Equal(order, ids) {
		t.Errorf("order %v, want %v", order, ids)
	}
}

// It is no error if a new executor has fewer slots than tasks of its predecessor.
func TestSlotsLoweredAtRestart(t *testing.T) {
	h := newFixture(t, async("tool", func(tool *gateway.Tool) { tool.Restart.RequeueRunning = true }))
	h.options.Concurrent = 4
	var first atomic.Bool
	first.Store(true)
	begun := make(chan struct{}, 8)
	h.play("tool", func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
		if first.Load() {
			begun <- struct{}{}
			<-ctx.Done()
			return gateway.Result{}, ctx.Err()
		}
		return said("done"), nil
	})
	x := h.open()
	var ids []string
	for range 4 {
		ids = append(ids, h.submit(x, "tool"))
		got(h, begun)
	}
	first.Store(false)
	h.engine = h.newEngine(engine.Options{})
	h.options.Concurrent = 1
	next := h.open()
	testkit.Wait(h.t, "they are due again", func() bool { // like the dispatcher
		_, _, err := h.engine.Wake(t.Context())
		return err == nil && !slices.ContainsFunc(ids, func(id string) bool { return h.task(id).State != signalbox.Completed })
	})
	for _, id := range ids {
		if v := h.end(next, id); v.Task.Attempts != 1 || v.Task.Claims != 2 {
			t.Errorf("%d attempts, %d claims", v.Task.Attempts, v.Task.Claims)
		}
	}
	if a := next.Agents()[0]; a.Slots != 1 || !a.Up {
		t.Errorf("%+v", a)
	}
}

// If a process of a run cannot be killed, neither its slot nor that of its tool queue is free before the
// process is dead.
func TestIncidentUnkillableKeepsItsSlot(t *testing.T) {
	h := newFixture(t, async("tool", inQueue("one")))
	h.options.Concurrent = 1
	var lives atomic.Bool
	lives.Store(true)
	var calls atomic.Int32
	h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) {
		if calls.Add(1) > 1 {
			return said("done"), nil
		}
		return gateway.Result{IsError: true, Run: &gateway.RunEnd{
			Reason: signalbox.ReasonRunTimeout, Message: "Task timed out after 10ms",
			Alive: func() []int {
				if lives.Load() {
					return []int{4711}
				}
				return nil
			},
		}}, nil
	})
	x := h.open()
	stuck := h.submit(x, "tool")
	testkit.Wait(h.t, "it is said aloud", func() bool { return contains(h.log.String(), "its slot stays taken", "4711") })
	waits := h.submit(x, "tool")
	if a, b := h.task(stuck).State, h.task(waits).State; a != signalbox.Working || b != signalbox.Pending {
		t.Errorf("%s and %s", a, b)
	}
	if s, _ := h.queues.Status("one", 0); s.InUse != 1 {
		t.Errorf("tool queue: %+v", s)
	}
	if a := x.Agents()[0]; a.Message != "1 of its 1 slots stay taken by runs that cannot be killed" {
		t.Errorf("%+v", a)
	}
	lives.Store(false)
	if v := h.end(x, stuck); v.Task.Reason != signalbox.ReasonRunTimeout {
		t.Errorf("%s: %s", v.Task.Reason, v.Task.Message)
	}
	if v := h.end(x, waits); v.Task.State != signalbox.Completed {
		t.Errorf("%s", v.Task.State)
	}
	if a := x.Agents()[0]; a.Message != "" {
		t.Errorf("%+v", a)
	}
}

// Calls that wait for a narrow tool queue hold no slot: other calls run beside them, and they run when their
// turn comes, first come first served.
func TestCallWaitingForToolQueueHoldsNoSlot(t *testing.T) {
	const waiting = 40
	h := newFixture(t, async("free"), async("lined", inQueue("one")), plain("holder", "one"))
	h.options.Concurrent = 2
	begun, goOn := h.hangs("holder")
	var mu sync.Mutex
	var order []string
	h.play("lined", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, c.Task)
		return said("done"), nil
	})
	go func() { _, _ = h.gateway.Call(t.Context(), gateway.Call{Tool: "holder"}) }()
	got(h, begun)
	x := h.open()
	var lined []string
	for range waiting {
		id := h.submit(x, "lined")
		h.reaches(id, signalbox.Dispatching)
		testkit.Wait(h.t, "it waits for its tool queue", func() bool { return contains(x.WaitsFor(id), `tool queue "one"`) })
		lined = append(lined, id)
	}
	for range 10 {
		h.end(x, h.submit(x, "free"))
	}
	testkit.Wait(h.t, "no slot is taken", func() bool { return x.Agents()[0].InUse == 0 })
	if s, _ := h.queues.Status("one", 0); s.Depth != 2 {
		t.Errorf("%d calls in the line, want no more than there are slots", s.Depth)
	}
	if _, err := x.Cancel(t.Context(), lined[waiting-1], "me"); err != nil {
		t.Fatal(err)
	}
	h.end(x, lined[waiting-1])
	close(goOn)
	for _, id := range lined[:waiting-1] {
		if v := h.end(x, id); v.Task.State != signalbox.Completed || v.Task.Claims != 1 {
			t.Errorf("%s: %s, %d claims", id, v.Task.State, v.Task.Claims)
		}
	}
	if !slices.Equal(order, lined[:waiting-1]) {
		t.Errorf("order %v, want %v", order, lined)
	}
	testkit.Wait(h.t, "the slots are free", func() bool { return x.Agents()[0].InUse == 0 })
	h.slots(0)
}

// A call whose turn in its tool queue has come waits for a slot, and gets the next free one before later
// claims.
func TestFirstWaiterGetsNextSlot(t *testing.T) {
	h := newFixture(t, async("tool"), async("lined", inQueue("one")), plain("holder", "one"))
	h.options.Concurrent = 1
	held, letGo := h.hangs("holder")
	begun, goOn := make(chan string, 8), make(chan struct{})
	for _, tool := range []string{"tool", "lined"} {
		h.play(tool, func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
			begun <- c.Task
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return said("done"), ctx.Err()
		})
	}
	go func() { _, _ = h.gateway.Call(t.Context(), gateway.Call{Tool: "holder"}) }()
	got(h, held)
	x := h.open()
	lined := h.submit(x, "lined")
	testkit.Wait(h.t, "it is in line", func() bool { s, _ := h.queues.Status("one", 0); return s.Depth == 1 })
	runs := h.submit(x, "tool")
	if id := got(h, begun); id != runs {
		t.Fatalf("%s runs", id)
	}
	later := h.submit(x, "tool")
	close(letGo)
	testkit.Wait(h.t, "its turn has come", func() bool { return contains(x.WaitsFor(lined), "waits for a slot of the queue commands, which has 1") })
	if a := x.Agents()[0]; a.InUse != 1 {
		t.Errorf("%d slots in use", a.InUse)
	}
	goOn <- struct{}{}
	if id := got(h, begun); id != lined {
		t.Errorf("%s runs, want the one whose turn has come", id)
	}
	goOn <- struct{}{}
	if id := got(h, begun); id != later {
		t.Errorf("%s runs", id)
	}
	goOn <- struct{}{}
	for _, id := range []string{lined, runs, later} {
		h.end(x, id)
	}
	h.slots(0)
}

// A call that waits for its tool queue while commands is paused does not start when its turn comes: it goes
// back to its place, repeatedly.
func TestPauseHoldsCallsWaitingForToolQueue(t *testing.T) {
	h := newFixture(t, async("lined", inQueue("one")), plain("holder", "one"))
	var ran atomic.Int32
	h.play("lined", func(context.Context, gateway.Call) (gateway.Result, error) {
		ran.Add(1)
		return said("done"), nil
	})
	x := h.open()
	var lined string
	for range signalbox.MaxNoAnswers + 1 {
		held, letGo := h.hangs("holder")
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = h.gateway.Call(t.Context(), gateway.Call{Tool: "holder"}) }()
		got(h, held)
		if lined == "" {
			lined = h.submit(x, "lined")
		}
		h.must(h.engine.Resume(t.Context(), signalbox.QueueCommands, ""))
		testkit.Wait(h.t, "it is in line", func() bool { s, _ := h.queues.Status("one", 0); return s.Depth == 1 })
		h.must(h.engine.Pause(t.Context(), signalbox.QueueCommands, "", "", time.Time{}))
		close(letGo)
		got(h, ended)
		h.reaches(lined, signalbox.Pending)
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("it ran %d times while its queue was paused", n)
	}
	h.must(h.engine.Resume(t.Context(), signalbox.QueueCommands, ""))
	if v := h.end(x, lined); v.Task.State != signalbox.Completed {
		t.Errorf("%s: %s", v.Task.State, v.Task.Message)
	}
}

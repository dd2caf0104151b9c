package local_test

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// hangs plays tools that run until they are told to end, like commands.
func (h *fixture) hangs(tools ...string) (begun chan string, goOn chan struct{}) {
	begun, goOn = make(chan string, 100), make(chan struct{})
	for _, tool := range tools {
		h.play(tool, func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
			if c.Log != nil {
				c.Log("stdout", []byte("begun\n"))
			}
			begun <- c.Task
			select {
			case <-goOn:
				return said("done"), nil
			case <-ctx.Done():
				return gateway.Result{IsError: true, Run: &gateway.RunEnd{Reason: signalbox.ReasonCancelled, Message: "cancelled"}}, nil
			}
		})
	}
	return begun, goOn
}

// Drain claims nothing more, puts back calls that wait for their tool queue, and waits for running ones;
// those left then end as with a restart.
func TestDrainAndStop(t *testing.T) {
	h := newFixture(t, async("fails"), async("again", func(tool *gateway.Tool) { tool.Restart.RequeueRunning = true }), async("ends"), plain("calls", "one"), async("lined", inQueue("one")))
	h.options.Concurrent = 4
	begun, _ := h.hangs("fails", "again", "calls", "lined")
	_, end := h.hangs("ends")
	begunEnds := make(chan string, 1)
	h.play("ends", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		begunEnds <- c.Task
		<-end
		return said("done"), nil
	})
	x := h.open()
	fails, again, ends, calls := h.submit(x, "fails"), h.submit(x, "again"), h.submit(x, "ends"), h.submit(x, "calls")
	for range 3 {
		got(h, begun)
	}
	got(h, begunEnds)
	lined := h.submit(x, "lined")
	testkit.Wait(h.t, "it stands in its line", func() bool { s, _ := h.queues.Status("one", 0); return s.Depth == 1 })
	ctx, impatient := context.WithCancel(t.Context())
	left := make(chan int, 1)
	go func() { left <- x.Drain(ctx) }()
	testkit.Wait(h.t, "it drains", func() bool { return !x.Agents()[0].Up })
	waits := h.submit(x, "fails")
	close(end)
	h.end(x, ends)
	testkit.Wait(h.t, "it is off the books", func() bool { return x.Agents()[0].InUse == 2 })
	h.reaches(lined, signalbox.Pending)
	impatient()
	if n := got(h, left); n != 3 {
		t.Errorf("%d runs left, want 3", n)
	}
	x.Stop()
	for what, w := range map[string]struct {
		id    string
		state signalbox.State
	}{"fails": {fails, signalbox.Failed}, "again": {again, signalbox.Pending}, "a call": {calls, signalbox.Failed}, "in line": {lined, signalbox.Pending}, "waits": {waits, signalbox.Pending}} {
		if task := h.task(w.id); task.State != w.state || task.State == signalbox.Failed && task.Message != "Task interrupted before completion (agent restart)" {
			t.Errorf("%s is %s: %q", what, task.State, task.Message)
		}
	}
	if r := h.result(fails); r.Tail != "begun\n" {
		t.Errorf("what it had printed is lost: %+v", r)
	}
	if n := h.task(waits).Claims; n != 0 {
		t.Error("a task was claimed while draining")
	}
	h.slots(0)
	x.Stop()
	if n := x.Drain(t.Context()); n != 0 {
		t.Errorf("%d runs left after Stop", n)
	}
}

// A task that a stop requeued is not failed by the next start as if it had only waited: its tool's policy for
// running tasks is to run them again.
func TestTaskRequeuedByStopRunsAgain(t *testing.T) {
	h := newFixture(t, async("tool", func(tool *gateway.Tool) {
		tool.Restart = gateway.RestartPolicy{FailPending: true, RequeueRunning: true}
	}))
	h.options.Concurrent = 1
	begun, goOn := h.hangs("tool")
	x := h.open()
	ran := h.submit(x, "tool")
	got(h, begun)
	waited := h.submit(x, "tool")
	x.Stop()
	next := h.open()
	if v := h.end(next, waited); v.Task.Reason != signalbox.ReasonInterrupted {
		t.Errorf("what waited: %s", v.Task.Reason)
	}
	testkit.Wait(h.t, "it is due again", func() bool {
		_, _, err := h.engine.Wake(t.Context())
		return err == nil && len(begun) > 0
	})
	close(goOn)
	if v := h.end(next, ran); v.Task.State != signalbox.Completed {
		t.Errorf("what ran: %s: %s", v.Task.State, v.Task.Message)
	}
}

// The log of an attempt continues that of the previous one.
func TestRequeuedTaskLogContinues(t *testing.T) {
	h := newFixture(t, async("tool", func(tool *gateway.Tool) { tool.Restart.RequeueRunning = true }))
	begun, goOn := h.hangs("tool")
	x := h.open()
	id := h.submit(x, "tool")
	got(h, begun)
	x.Stop()
	next := h.open()
	testkit.Wait(h.t, "it is due again", func() bool {
		_, _, err := h.engine.Wake(t.Context())
		return err == nil && len(begun) > 0
	})
	out, ok := next.Output(t.Context(), id, 0, time.Second)
	out.Times = nil
	if want := (api.Output{QueueID: id, State: "working", Text: "begun\nbegun\n", Next: 12, Line: 1}); !reflect.DeepEqual(out, want) || !ok {
		t.Errorf("%+v %v, want %+v", out, ok, want)
	}
	close(goOn)
	h.end(next, id)
	if r := h.result(id); r.Tail != "begun\nbegun\n" || r.Output != "done" {
		t.Errorf("%+v", r)
	}
	testkit.Wait(h.t, "it runs no more", func() bool { _, ok := next.Output(t.Context(), id, 0, 0); return !ok })
}

// broken is a store whose writes fail for a while.
type broken struct {
	store.Store
	broken atomic.Bool
	tried  atomic.Int32
}

func (b *broken) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	if b.broken.Load() {
		b.tried.Add(1)
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")
	}
	return b.Store.Apply(ctx, c, now)
}

// unresponsive is a store that makes the next claims, or accepts, and reports an error.
type unresponsive struct {
	store.Store
	claims, starts atomic.Int32
}

func (d *unresponsive) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	t, err := d.Store.Apply(ctx, c, now)
	if err == nil && t.State == signalbox.Working && d.starts.Add(-1) >= 0 {
		return signalbox.Task{}, signalbox.Errorf(signalbox.CodeStoreFailed, "connection lost")
	}
	return t, err
}

func (d *unresponsive) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	c, err := d.Store.Claim(ctx, r)
	if err == nil && c.Found && d.claims.Add(-1) >= 0 {
		return store.Claimed{}, signalbox.Errorf(signalbox.CodeStoreFailed, "connection lost")
	}
	return c, err
}

// A claim whose answer was lost holds a slot without a run: it is put back, and the task runs once.
func TestLostClaimAnswer(t *testing.T) {
	d := &unresponsive{Store: openStore(t)}
	h := newFixtureOver(t, d, async("tool"))
	h.options.Concurrent, h.options.Look = 1, 20*time.Millisecond
	x := h.open()
	d.claims.Store(2)
	id := h.submit(x, "tool")
	if v := h.end(x, id); v.Task.State != signalbox.Completed || v.Task.Claims < 2 {
		t.Errorf("%s after %d claims: %s", v.Task.State, v.Task.Claims, v.Task.Message)
	}
	h.slots(0)
	if !contains(h.log.String(), "the answer to a claim of a tool task was lost") {
		t.Error(h.log.String())
	}
}

// An accept that was stored although the store reported an error counts: the task runs once.
func TestLostStartAnswer(t *testing.T) {
	d := &unresponsive{Store: openStore(t)}
	h := newFixtureOver(t, d, async("tool"))
	var runs atomic.Int32
	h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) {
		runs.Add(1)
		return said("done"), nil
	})
	x := h.open()
	d.starts.Store(1)
	if v := h.end(x, h.submit(x, "tool")); v.Task.State != signalbox.Completed || v.Task.Claims != 1 || runs.Load() != 1 {
		t.Errorf("%s after %d claims and %d runs: %s", v.Task.State, v.Task.Claims, runs.Load(), v.Task.Message)
	}
	h.slots(0)
}

// Nothing runs before its accept is stored, and no slot is free before the end is stored.
func TestStoreFailsDuringRun(t *testing.T) {
	b := &broken{Store: openStore(t)}
	h := newFixtureOver(t, b, async("tool"))
	begun, goOn := h.hangs("tool")
	x := h.open()
	b.broken.Store(true)
	id := h.submit(x, "tool")
	testkit.Wait(h.t, "its start is tried", func() bool { return b.tried.Load() > 1 })
	if len(begun) > 0 {
		t.Error("it ran before it was stored as working")
	}
	b.broken.Store(false)
	got(h, begun)
	b.broken.Store(true)
	tried := b.tried.Load()
	close(goOn)
	testkit.Wait(h.t, "its end is tried", func() bool { return b.tried.Load() > tried })
	h.slots(1)
	b.broken.Store(false)
	if v := h.end(x, id); v.Task.State != signalbox.Completed {
		t.Errorf("%s", v.Task.State)
	}
}

// If a task is taken away from a run, as by a second director that considered it lost, the run leaves it
// alone.
func TestRevokedRunIsStopped(t *testing.T) {
	h := newFixture(t, async("tool"))
	begun, goOn := h.hangs("tool")
	x := h.open()
	id := h.submit(x, "tool")
	got(h, begun)
	_, err := h.engine.Lose(t.Context(), h.reaches(id, signalbox.Working), signalbox.ReasonLost, "gone", false, nil)
	h.must(err)
	close(goOn)
	testkit.Wait(h.t, "it is said", func() bool {
		return contains(h.log.String(), "no longer belongs to this director") || x.Agents()[0].InUse == 0
	})
	if task := h.task(id); task.Reason != signalbox.ReasonLost {
		t.Errorf("%s: %s", task.Reason, task.Message)
	}
}

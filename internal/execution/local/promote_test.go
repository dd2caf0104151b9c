package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/local"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

type outcome struct {
	res  gateway.Result
	task *gateway.ToolTask
	err  error
}

// newQueueFixture has the tool "tool" in a queue with one slot, which is taken until the test frees it.
func newQueueFixture(t *testing.T, s store.Store, tools ...gateway.Tool) (h *fixture, release func()) {
	t.Helper()
	h = newFixtureOver(t, s, append(tools, plain("tool", "one"), plain("holder", "one"))...)
	held := make(chan struct{})
	h.play("holder", func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
		close(held)
		<-ctx.Done()
		return gateway.Result{}, ctx.Err()
	})
	ctx, release := context.WithCancel(t.Context())
	go func() { _, _ = h.gateway.Call(ctx, gateway.Call{Tool: "holder"}) }()
	got(h, held)
	t.Cleanup(release)
	return h, release
}

// callOr makes a call in the background.
func (h *fixture) callOr(ctx context.Context, x *local.Executor, c gateway.TaskCall, grace time.Duration) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, task, err := x.CallOrPromote(ctx, c, grace)
		done <- outcome{r, task, err}
	}()
	return done
}

// stands waits until n calls wait in the tool queue.
func (h *fixture) stands(n int) {
	h.t.Helper()
	testkit.Wait(h.t, fmt.Sprintf("%d wait in the tool queue", n), func() bool { s, _ := h.queues.Status("one", 0); return s.Depth == n })
}

// A call that has waited for its grace becomes a task and keeps its place in the tool queue, ahead of later
// tasks and calls.
func TestCallOrPromoteKeepsPosition(t *testing.T) {
	h, release := newQueueFixture(t, openStore(t))
	order := make(chan string, 8)
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		order <- string(c.Arguments)
		return said("result of " + string(c.Arguments)), nil
	})
	x := h.open()
	first := h.callOr(t.Context(), x, call("tool", with(`{"n":1}`)), time.Hour)
	h.stands(1)
	ctx, gone := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "kept"))
	told := make(chan gateway.Progress, 64)
	second := h.callOr(ctx, x, call("tool", with(`{"n":2}`), func(c *gateway.TaskCall) {
		c.Progress = func(p gateway.Progress) { told <- p }
	}), time.Millisecond)
	became := got(h, second)
	if became.err != nil || became.task == nil {
		t.Fatalf("%+v", became)
	}
	id := became.task.Task.ID
	gone() // the client has its answer
	h.reaches(id, signalbox.Dispatching)
	third := h.submit(x, "tool", with(`{"n":3}`))
	h.stands(3)
	fourth := h.callOr(t.Context(), x, call("tool", with(`{"n":4}`)), time.Hour)
	h.stands(4)
	v, err := x.Task(t.Context(), id)
	h.must(err)
	if v.Position != 2 || v.Wait != `queued, position 2 in tool queue "one"` || v.Poll != time.Second {
		t.Errorf("position %d, %q, poll %s", v.Position, v.Wait, v.Poll)
	}
	why, err := h.engine.Why(t.Context(), id)
	h.must(err)
	if !strings.HasPrefix(why.Summary, `It waits: queued, position 2 in tool queue "one", for `) {
		t.Errorf("%s", why.Summary)
	}
	for len(told) > 0 {
		<-told
	}
	release()
	for n := range 4 {
		if args := got(h, order); args != fmt.Sprintf(`{"n":%d}`, n+1) {
			t.Errorf("%s runs as number %d", args, n+1)
		}
	}
	for _, c := range []<-chan outcome{first, fourth} {
		if o := got(h, c); o.err != nil || o.task != nil || !strings.Contains(string(o.res.Content), "result of") {
			t.Errorf("a call that was no task: %+v", o)
		}
	}
	for _, id := range []string{id, third} {
		if v := h.end(x, id); v.Task.State != signalbox.Completed || v.Result == nil || !strings.Contains(string(v.Result.Content), "result of") {
			t.Errorf("%+v", v)
		}
	}
	if len(told) > 0 {
		t.Errorf("a caller that had its answer was told %+v", <-told)
	}
	h.slots(0)
}

type valueKey struct{}

// A call that gets its slot within the grace, or has no tool queue, stays a call.
func TestCallOrPromoteWithinGrace(t *testing.T) {
	h, release := newQueueFixture(t, memory.New(memory.Options{}), plain("free", ""))
	x := h.open()
	if r, task, err := x.CallOrPromote(t.Context(), call("free"), 0); err != nil || task != nil || string(r.Content) != string(said("done").Content) {
		t.Errorf("%v %+v", err, task)
	}
	values := make(chan any, 1)
	h.play("tool", func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		values <- ctx.Value(valueKey{})
		if c.Task != "" {
			t.Errorf("it is told of task %s", c.Task)
		}
		return said("done"), nil
	})
	waits := h.callOr(context.WithValue(t.Context(), valueKey{}, "kept"), x, call("tool"), time.Hour)
	h.stands(1)
	release()
	if o := got(h, waits); o.err != nil || o.task != nil {
		t.Errorf("%+v", o)
	}
	if v := got(h, values); v != "kept" {
		t.Errorf("the context's value is %v", v)
	}
	page, err := x.List(t.Context(), gateway.TaskQuery{Limit: 10})
	h.must(err)
	if len(page.Tasks) != 0 {
		t.Errorf("%+v", page)
	}
	_, _, err = x.CallOrPromote(t.Context(), call("nothing"), 0)
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// An async tool becomes a task at once.
func TestCallOrPromoteAsyncTool(t *testing.T) {
	h := newFixture(t, async("tool"))
	x := h.open()
	_, task, err := x.CallOrPromote(t.Context(), call("tool"), time.Hour)
	h.must(err)
	if h.end(x, task.Task.ID).Task.Queue != signalbox.QueueCommands {
		t.Error("it was not in the queue commands")
	}
	_, _, err = x.CallOrPromote(t.Context(), call("tool", with(`[]`)), time.Hour)
	if signalbox.CodeOf(err) != signalbox.CodeValidation {
		t.Errorf("%v", err)
	}
}

// If a client leaves while its call is a call, the call ends and leaves nothing behind.
func TestCallOrPromoteClientLeavesBefore(t *testing.T) {
	h, release := newQueueFixture(t, memory.New(memory.Options{}))
	ran := make(chan struct{}, 1)
	h.play("tool", func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
		ran <- struct{}{}
		<-ctx.Done()
		return gateway.Result{}, ctx.Err()
	})
	x := h.open()
	ctx, gone := context.WithCancel(t.Context())
	waits := h.callOr(ctx, x, call("tool"), time.Hour)
	h.stands(1)
	gone()
	if o := got(h, waits); !errors.Is(o.err, context.Canceled) || o.task != nil {
		t.Errorf("%+v", o)
	}
	h.stands(0)
	ctx, gone = context.WithCancel(t.Context())
	runs := h.callOr(ctx, x, call("tool"), time.Hour)
	h.stands(1)
	release()
	got(h, ran)
	gone()
	if o := got(h, runs); !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
}

// gatedStore is a store whose submits wait for the test, or fail.
type gatedStore struct {
	store.Store
	enter, leave chan struct{}
	fail         error
}

func (g *gatedStore) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	if g.fail != nil {
		return store.Submitted{}, g.fail
	}
	if g.enter != nil {
		g.enter <- struct{}{}
		<-g.leave
	}
	return g.Store.Submit(ctx, s)
}

// If a client leaves while its call becomes a task, it does not know the id: the task is cancelled.
func TestCallOrPromoteClientLeavesDuringSubmit(t *testing.T) {
	g := &gatedStore{Store: memory.New(memory.Options{}), enter: make(chan struct{}), leave: make(chan struct{})}
	h, release := newQueueFixture(t, g)
	ran := make(chan struct{}, 1)
	h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) {
		ran <- struct{}{}
		return said("done"), nil
	})
	x := h.open()
	ctx, gone := context.WithCancel(t.Context())
	became := h.callOr(ctx, x, call("tool"), 0)
	got(h, g.enter)
	gone()
	g.leave <- struct{}{}
	o := got(h, became)
	if o.task == nil {
		t.Fatalf("%+v", o)
	}
	if v := h.end(x, o.task.Task.ID); v.Task.State != signalbox.Cancelled {
		t.Errorf("%s", v.Task.State)
	}
	h.stands(0)
	release()
	testkit.Wait(h.t, "the line is empty", func() bool { s, _ := h.queues.Status("one", 0); return s.InUse == 0 })
	select {
	case <-ran:
		t.Error("it ran")
	default:
	}
}

// A call that gets its slot while it becomes a task runs once the task is durable, and not before.
func TestCallOrPromoteSlotFreedDuringSubmit(t *testing.T) {
	g := &gatedStore{Store: memory.New(memory.Options{}), enter: make(chan struct{}), leave: make(chan struct{})}
	h, release := newQueueFixture(t, g)
	ran := make(chan string, 1)
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		ran <- c.Task
		return said("done"), nil
	})
	x := h.open()
	became := h.callOr(t.Context(), x, call("tool"), 0)
	got(h, g.enter)
	release()
	h.stands(0)
	select {
	case <-ran:
		t.Error("it ran before its task was durable")
	case <-time.After(20 * time.Millisecond):
	}
	g.leave <- struct{}{}
	o := got(h, became)
	if o.task == nil {
		t.Fatalf("%+v", o)
	}
	if id := got(h, ran); id != o.task.Task.ID {
		t.Errorf("it is told of task %q", id)
	}
	if v := h.end(x, o.task.Task.ID); v.Task.State != signalbox.Completed || v.Result == nil {
		t.Errorf("%+v", v)
	}
}

// If the task cannot be stored, the call continues as it was.
func TestCallOrPromoteSubmitFails(t *testing.T) {
	g := &gatedStore{Store: memory.New(memory.Options{}), fail: signalbox.Errorf(signalbox.CodeStoreFailed, "disk full")}
	h, release := newQueueFixture(t, g)
	x := h.open()
	waits := h.callOr(t.Context(), x, call("tool"), 0)
	testkit.Wait(h.t, "it is said in the log", func() bool { return strings.Contains(h.log.String(), "disk full") })
	h.stands(1)
	release()
	if o := got(h, waits); o.err != nil || o.task != nil || len(o.res.Content) == 0 {
		t.Errorf("%+v", o)
	}
}

// While its queue is paused, a call that became a task does not run. It is made again when the queue is
// resumed.
func TestCallOrPromoteWhilePaused(t *testing.T) {
	h, release := newQueueFixture(t, memory.New(memory.Options{}))
	ran := make(chan struct{}, 4)
	h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) {
		ran <- struct{}{}
		return said("done"), nil
	})
	x := h.open()
	h.must(h.engine.Pause(t.Context(), signalbox.QueueCalls, "", "", time.Time{}))
	o := got(h, h.callOr(t.Context(), x, call("tool"), 0))
	if o.task == nil {
		t.Fatalf("%+v", o)
	}
	release()
	h.stands(0)
	testkit.Wait(h.t, "the tool's slot is free", func() bool { s, _ := h.queues.Status("one", 0); return s.InUse == 0 })
	if len(ran) > 0 || h.task(o.task.Task.ID).State != signalbox.Pending {
		t.Errorf("it ran %d times and is %s", len(ran), h.task(o.task.Task.ID).State)
	}
	h.must(h.engine.Resume(t.Context(), signalbox.QueueCalls, ""))
	if v := h.end(x, o.task.Task.ID); v.Task.State != signalbox.Completed || len(ran) != 1 {
		t.Errorf("%s after %d runs", v.Task.State, len(ran))
	}
}

// If a task is cancelled while its call waits in the tool queue, the call leaves the queue.
func TestCallOrPromoteCancelled(t *testing.T) {
	h, release := newQueueFixture(t, memory.New(memory.Options{}))
	x := h.open()
	defer release()
	o := got(h, h.callOr(t.Context(), x, call("tool"), 0))
	_, err := x.Cancel(t.Context(), o.task.Task.ID, "me")
	h.must(err)
	if v := h.end(x, o.task.Task.ID); v.Task.State != signalbox.Cancelled {
		t.Errorf("%s", v.Task.State)
	}
	h.stands(0)
	h.slots(0)
}

// More calls than the executor has slots wait in the tool queue, each as a task, ahead of others of that
// queue: a call that has its tool's slot never waits for a call that waits for that slot.
func TestIncidentPromotedCallNeedsNoSecondSlot(t *testing.T) {
	h, release := newQueueFixture(t, memory.New(memory.Options{}))
	h.options.Calls = 2
	x := h.open()
	var ids []string
	for range 5 { // fill the slots, and make others wait
		ids = append(ids, h.submit(x, "tool"))
	}
	h.stands(2)
	for range 4 {
		o := got(h, h.callOr(t.Context(), x, call("tool"), 0))
		if o.task == nil {
			t.Fatalf("%+v", o)
		}
		ids = append(ids, o.task.Task.ID)
		h.reaches(o.task.Task.ID, signalbox.Dispatching)
	}
	release()
	for _, id := range ids {
		if v := h.end(x, id); v.Task.State != signalbox.Completed {
			t.Errorf("%s: %s", v.Task.State, v.Task.Message)
		}
	}
	h.slots(0)
}

// After a restart a call that became a task is made again.
func TestCallOrPromoteSurvivesRestart(t *testing.T) {
	s := openStore(t)
	h, _ := newQueueFixture(t, s)
	o := got(h, h.callOr(t.Context(), h.open(), call("tool", with(`{"n":1}`)), 0))
	h.reaches(o.task.Task.ID, signalbox.Dispatching)
	h.engine = h.newEngine(engine.Options{}) // the first engine is gone, as after a crash
	next := newFixtureOver(t, s, plain("tool", "one"))
	next.engine = next.newEngine(engine.Options{})
	args := make(chan string, 1)
	next.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		args <- string(c.Arguments)
		return said("done"), nil
	})
	x := next.open()
	if v := next.end(x, o.task.Task.ID); v.Task.State != signalbox.Completed || got(next, args) != `{"n":1}` {
		t.Errorf("%s: %s", v.Task.State, v.Task.Message)
	}
}

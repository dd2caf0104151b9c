package local_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// others are the directors of a test that are alive.
type others struct {
	mu    sync.Mutex
	alive []string
}

func (o *others) Alone() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.alive) == 1 }
func (o *others) Gone(instance string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.Contains(o.alive, instance)
}
func (o *others) ConfirmGone(_ context.Context, instance string) bool { return o.Gone(instance) }
func (o *others) First(string) bool                                   { return true } // for both: handling a task twice must do no harm
func (o *others) dies(instance string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alive = slices.DeleteFunc(o.alive, func(a string) bool { return a == instance })
}

func (o *others) lives(instance string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alive = append(o.alive, instance)
}

// two returns executors of two directors, a and b, over one store.
func two(t *testing.T, tools ...gateway.Tool) (a, b *fixture, o *others) {
	t.Helper()
	w, o := peerstest.New(memory.New(memory.Options{})), &others{alive: []string{"a", "b"}}
	for i, h := range []**fixture{&a, &b} {
		view := w.View()
		*h = newFixtureOver(t, view, tools...)
		(*h).options.Instance, (*h).options.Peers, (*h).options.Look = o.alive[i], o, 5*time.Millisecond
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		(*h).must((*h).engine.Follow(ctx, view, engine.FollowOptions{}))
	}
	return a, b, o
}

// agentNames lists the rows of executors.
func (h *fixture) agentNames() (names []string) {
	h.t.Helper()
	rows, err := h.engine.Read().Agents(h.t.Context())
	h.must(err)
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

// wakes makes a due task ready, like the dispatcher.
func (h *fixture) wakes(id string) {
	h.t.Helper()
	testkit.Wait(h.t, "it is ready", func() bool {
		_, _, err := h.engine.Wake(h.t.Context())
		h.must(err)
		t := h.task(id)
		return t.Ready || t.State != signalbox.Pending
	})
}

// stuckAt plays a tool that runs until its context ends or, if deaf, until goOn.
func (h *fixture) stuckAt(tool string, deaf bool) (begun chan struct{}, goOn func()) {
	begun, end := make(chan struct{}, 10), make(chan struct{})
	h.play(tool, func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		begun <- struct{}{}
		if deaf {
			<-end
			return said("done"), nil
		}
		select {
		case <-ctx.Done():
			return gateway.Result{}, context.Cause(ctx)
		case <-end:
			return said("done"), nil
		}
	})
	return begun, sync.OnceFunc(func() { close(end) })
}

func TestTasksOfDeadDirectorAreEndedByAnother(t *testing.T) {
	keep := async("keep", func(tool *gateway.Tool) { tool.Restart.RequeueRunning = true })
	a, b, o := two(t, async("tool"), keep)
	begun, goOn := a.stuckAt("tool", true)
	defer goOn()
	again, goOnAgain := a.stuckAt("keep", true)
	defer goOnAgain()
	xa := a.open()
	id, kept := a.submit(xa, "tool"), a.submit(xa, "keep")
	got(a, begun)
	got(a, again)
	b.open()
	testkit.Wait(b.t, "the executor of a is known", func() bool { return len(b.engine.LiveAgents()) == 4 })
	xa.Lapse(true) // a dead director claims nothing; its run here is deaf, and continues
	o.dies("a")
	if task := b.reaches(id, signalbox.Failed); task.Reason != signalbox.ReasonInterrupted || !strings.Contains(task.Message, "director a went away") {
		t.Errorf("%s: %q", task.Reason, task.Message)
	}
	b.reaches(kept, signalbox.Pending)
	b.wakes(kept)
	if task := b.reaches(kept, signalbox.Completed); task.Agent != "commands@b" {
		t.Errorf("it was run by %s", task.Agent)
	}
	testkit.Wait(b.t, "the rows of a are gone", func() bool { return !slices.Contains(b.agentNames(), "commands@a") })
	b.slots(0)
}

// A director that starts beside others does not fail waiting tasks, whatever the tool's restart policy: that
// is for a restart of all.
func TestJoiningDirectorFailsNoPendingTask(t *testing.T) {
	a, b, _ := two(t, async("tool", func(tool *gateway.Tool) { tool.Restart.FailPending = true }))
	a.options.Concurrent, b.options.Concurrent = 1, 1
	begun, goOn := a.stuckAt("tool", false)
	xa := a.open()
	first := a.submit(xa, "tool")
	got(a, begun)
	a.must(a.engine.Pause(t.Context(), "", "", "", time.Time{}))
	second := a.submit(xa, "tool")
	xb := b.open()
	a.must(a.engine.Resume(t.Context(), "", ""))
	if v := b.end(xb, second); v.Task.State != signalbox.Completed || v.Task.Agent != "commands@b" {
		t.Errorf("%s by %s: %s", v.Task.State, v.Task.Agent, v.Task.Message)
	}
	goOn()
	a.end(xa, first)
}

func TestCancelAtOtherDirectorStopsRun(t *testing.T) {
	a, b, _ := two(t, async("tool"))
	begun, goOn := a.stuckAt("tool", false)
	defer goOn()
	xa, xb := a.open(), b.make()
	id := a.submit(xa, "tool")
	got(a, begun)
	_, err := xb.Cancel(t.Context(), id, "kim")
	b.must(err)
	a.reaches(id, signalbox.Cancelled)
}

// TestIncidentLapsedDirectorRunsNothing: a director whose lease has expired ends its runs before another
// recovers their tasks, and claims nothing until it has a lease again.
func TestIncidentLapsedDirectorRunsNothing(t *testing.T) {
	a, b, _ := two(t, async("tool", func(tool *gateway.Tool) { tool.Restart.RequeueRunning = true }))
	begun, goOn := a.stuckAt("tool", false)
	xa := a.open()
	id := a.submit(xa, "tool")
	got(a, begun)
	xa.Lapse(true)
	a.reaches(id, signalbox.Pending)
	if task := a.task(id); !strings.Contains(task.LastError, "could not reach the store") {
		t.Errorf("%q", task.LastError)
	}
	a.must(b.engine.Pause(t.Context(), "", "", "", time.Time{})) // a woken claimer finds nothing to claim, only the lapse
	a.must(b.engine.Resume(t.Context(), "", ""))
	select {
	case <-begun:
		t.Error("it runs again while the lease is over")
	case <-time.After(50 * time.Millisecond):
	}
	goOn()
	xa.Lapse(false)
	a.wakes(id)
	a.end(xa, id)
}

// TestIncidentForgottenExecutorRegistersAgain: the others removed a director that was paused for longer than
// its lease, and it continues. If it dies later, they must still find its tasks.
func TestIncidentForgottenExecutorRegistersAgain(t *testing.T) {
	a, b, o := two(t, async("tool"))
	xa := a.open()
	b.open()
	testkit.Wait(b.t, "the executor of a is known", func() bool { return len(b.engine.LiveAgents()) == 4 })
	xa.Lapse(true)
	o.dies("a")
	testkit.Wait(b.t, "the executor of a is forgotten", func() bool {
		names := b.agentNames()
		return !slices.Contains(names, "commands@a") && !slices.Contains(names, "calls@a")
	})
	o.lives("a")
	xa.Lapse(false)
	testkit.Wait(b.t, "the executor of a is known again", func() bool {
		names := b.agentNames()
		return slices.Contains(names, "commands@a") && slices.Contains(names, "calls@a")
	})
}

// A director that missed a cancel, because entries were skipped or the store lost them, finds it by itself.
func TestMissedCancelStopsRun(t *testing.T) {
	w := peerstest.New(memory.New(memory.Options{}))
	a, b := newFixtureOver(t, w.View(), async("tool")), newFixtureOver(t, w.View(), async("tool"))
	a.options.Instance, a.options.Look = "a", 5*time.Millisecond
	b.options.Instance = "b"
	begun, goOn := a.stuckAt("tool", false)
	defer goOn()
	xa, xb := a.open(), b.make()
	id := a.submit(xa, "tool")
	got(a, begun)
	_, err := xb.Cancel(t.Context(), id, "kim")
	b.must(err)
	a.reaches(id, signalbox.Cancelled)
}

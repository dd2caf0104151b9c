package toolqueue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Shared queues of several processes are tested in internal/tickets, with the stores. Here one
// process is tested.

// fakeBackend is a SharedBackend of one process, with one slot.
type fakeBackend struct {
	mu    sync.Mutex
	line  []toolqueue.Ticket
	err   error
	steps []toolqueue.Step
}

func (f *fakeBackend) Step(_ context.Context, s toolqueue.Step) (toolqueue.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, s)
	if f.err != nil {
		return toolqueue.Snapshot{}, f.err
	}
	f.line = slices.DeleteFunc(f.line, func(t toolqueue.Ticket) bool { return slices.Contains(s.Leave, t.ID) })
	f.line = append(f.line, s.Enter...)
	for i := range f.line {
		f.line[i].Holds = i == 0
	}
	return toolqueue.Snapshot{Tickets: slices.Clone(f.line), Now: time.Now()}, nil
}

func sharing(t *testing.T, f toolqueue.SharedBackend, hooks toolqueue.Hooks, c toolqueue.Config) *toolqueue.Queues {
	t.Helper()
	q := toolqueue.New(hooks)
	if err := q.Share(toolqueue.Sharing{Backend: f, Owner: "me"}); err != nil {
		t.Fatal(err)
	}
	c.Shared = true
	if err := q.Configure(one("a", c)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}

func TestSharedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		q := sharing(t, f, toolqueue.Hooks{}, toolqueue.Config{Concurrent: 1})
		first := Take(t, q, "a", In("s", "first"))
		second := Start(t, q, "a", Tool("second"), 0)
		if place := (<-second.Waiting).Position(); place != 1 || !second.Waits() {
			t.Fatalf("place %d", place)
		}
		first.Release()
		first.Release() // counts once, of whatever copy
		second.Has().Release()
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		s := f.steps[0]
		if len(f.line) != 0 || s.Queue != "a" || s.Concurrent != 1 || s.Lasts != toolqueue.DefaultTicketLease || s.Enter[0].Owner != "me" || s.Enter[0].Session != "s" || s.Enter[0].Tool != "first" || s.Enter[0].Leased {
			t.Fatalf("%+v; left: %+v", s, f.line)
		}
	})
}

func TestIdleSharedQueueMakesNoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		q := sharing(t, f, toolqueue.Hooks{}, toolqueue.Config{Concurrent: 1})
		Take(t, q, "a", Tool("first")).Release()
		synctest.Wait()
		before := len(f.steps)
		time.Sleep(time.Hour)
		q.Notify()
		synctest.Wait()
		if len(f.steps) != before {
			t.Fatalf("%d steps in an idle hour", len(f.steps)-before)
		}
		if s := status(t, q, "a"); !s.Shared || len(f.steps) != before+1 {
			t.Fatalf("a look asks anew: %+v", s)
		}
	})
}

func TestPanicInHookLeavesSharedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		q := sharing(t, f, toolqueue.Hooks{}, toolqueue.Config{Concurrent: 1})
		held := Take(t, q, "a", Tool("holder"))
		func() {
			defer func() { _ = recover() }()
			_, _ = q.Acquire(context.Background(), "a", toolqueue.Who{Waits: func(toolqueue.Waiting) { panic("a fault") }})
		}()
		held.Release()
		Take(t, q, "a", Tool("next")).Release()
	})
}

func TestLocalQueuesWorkWithoutBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{err: errors.New("refused")}
		var reasons []toolqueue.Reason
		hooks := toolqueue.Hooks{Refused: func(_ string, _ toolqueue.Who, r toolqueue.Reason, _ time.Duration) { reasons = append(reasons, r) }}
		q := sharing(t, f, hooks, toolqueue.Config{Concurrent: 1})
		if err := q.Configure(one("b", toolqueue.Config{Concurrent: 1})); err != nil {
			t.Fatal(err)
		}
		_, err := q.AcquireWithin(context.Background(), "a", Tool("x"), time.Second)
		if !errors.Is(err, toolqueue.ErrUnavailable) || !errors.Is(err, f.err) || !strings.Contains(err.Error(), `no answer for 1s about a slot of tool queue "a"`) {
			t.Fatal(err)
		}
		p := Take(t, q, "b", Tool("x"))
		if p.Lost() != nil {
			t.Fatal("a slot of this process's own can be lost")
		}
		p.Release()
		if !slices.Equal(reasons, []toolqueue.Reason{toolqueue.ReasonUnavailable}) {
			t.Fatal(reasons)
		}
		if all := q.All(1); len(all) != 2 || !all[0].Shared || all[1].Shared {
			t.Fatalf("%+v", all)
		}
		f.mu.Lock()
		f.err = nil
		f.mu.Unlock()
	})
}

func TestShareIsValidated(t *testing.T) {
	for want, s := range map[string]toolqueue.Sharing{
		"Backend is missing": {},
		"too short":          {Backend: &fakeBackend{}, Lease: time.Millisecond},
	} {
		if err := toolqueue.New(toolqueue.Hooks{}).Share(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, Shared: true})) // with nobody: its own
	p := Take(t, q, "a", Tool("x"))
	if s := status(t, q, "a"); s.Shared || s.InUse != 1 {
		t.Errorf("%+v", s)
	}
	p.Release()
	if err := q.Share(toolqueue.Sharing{Backend: &fakeBackend{}}); err != nil {
		t.Fatal(err)
	}
	if err := q.Configure(one("a", toolqueue.Config{Concurrent: 2, Shared: true})); err == nil || !strings.Contains(err.Error(), "cannot be shared any more") {
		t.Error(err)
	}
}

// TestConfigureRaisesSharedQueue and admits waiters.
func TestConfigureRaisesSharedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackend{}
		q := sharing(t, f, toolqueue.Hooks{}, toolqueue.Config{Concurrent: 1})
		p := Take(t, q, "a", Tool("x"))
		Start(t, q, "a", Tool("y"), 0)
		if err := q.Configure(one("a", toolqueue.Config{Concurrent: 7, MaxWaiters: 3})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		f.mu.Lock()
		s := f.steps[len(f.steps)-1]
		f.mu.Unlock()
		if s.Concurrent != 7 || s.MaxWaiters != 3 {
			t.Fatalf("%+v", s)
		}
		p.Release()
	})
}

package toolqueue

import (
	"context"
	"testing"
)

// Races of the lock-free path with a call that starts to wait are too rare to occur by chance.
// Here each is staged: what one side does after it has read the state of the queue is done
// after the other side has changed it.

// holdAndWait has a call wait for the queue's only slot, which is held.
func holdAndWait(t *testing.T) (q *queue, first Permit, got chan Permit) {
	t.Helper()
	all := New(Hooks{})
	if err := all.Configure(map[string]Config{"a": {Concurrent: 1}}); err != nil {
		t.Fatal(err)
	}
	first, err := all.Acquire(context.Background(), "a", Who{})
	if err != nil {
		t.Fatal(err)
	}
	waits, got := make(chan struct{}), make(chan Permit, 1)
	go func() {
		p, err := all.Acquire(context.Background(), "a", Who{Tool: "waiter", Waits: func(Waiting) { close(waits) }})
		if err != nil {
			t.Error(err)
		}
		got <- p
	}()
	<-waits
	return all.queues.Load().find("a"), first, got
}

func (q *queue) mustBeFree(t *testing.T) {
	t.Helper()
	if s := q.status(1); s.InUse != 0 || s.Depth != 0 || q.mustLock() {
		t.Errorf("left behind: %+v, closed %d", s, q.lockReasons.Load())
	}
}

// TestReleaseRacesWithEnqueue: the holder saw no waiter, then a call was queued, then the slot
// was released.
func TestReleaseRacesWithEnqueue(t *testing.T) {
	q, first, got := holdAndWait(t)
	first.releaseFast()
	(<-got).Release()
	first.releaseFast()
	q.mustBeFree(t)
}

// TestAcquireRacesWithEnqueue: a caller saw no waiter, then another was queued, then the slot
// became free and the caller took it. It must not keep it.
func TestAcquireRacesWithEnqueue(t *testing.T) {
	q, first, got := holdAndWait(t)
	first.slot.state.Store(first.state - held + nextUse) // released, before it reads whether calls wait
	if _, ok := q.tryFast(&Who{Tool: "newcomer"}); ok {
		t.Fatal("the newcomer overtook the one in line")
	}
	if p := <-got; p.slot.holder().tool != "waiter" {
		t.Errorf("%q has the slot", p.slot.holder().tool)
	} else {
		p.Release()
	}
	q.mustBeFree(t)
}

// TestAcquireRacesWithStatus: a caller saw no reader, then the status was read. The caller must
// not write what is being read.
func TestAcquireRacesWithStatus(t *testing.T) {
	q, first, got := holdAndWait(t)
	first.Release()
	(<-got).Release()
	q.requireLock(lockStatus)
	if _, ok := q.tryFast(&Who{Tool: "newcomer"}); ok || q.fast[0].caller.tool == "newcomer" {
		t.Error("it wrote its name")
	}
	q.allowFast(lockStatus)
	q.mustBeFree(t)
}

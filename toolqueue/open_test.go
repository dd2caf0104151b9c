package toolqueue

import (
	"context"
	"testing"
)

// The moments in which taking and giving back without the lock meet a call
// that lines up are too short to be met by chance. Here each is made by hand:
// what one side does after its look at the queue is done after the other side
// has changed what it saw.

// lineUp has a call wait for the queue's only slot, which is held.
func lineUp(t *testing.T) (q *queue, first Permit, got chan Permit) {
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
	if s := q.status(1); s.InUse != 0 || s.Depth != 0 || q.closed.Load() != 0 {
		t.Errorf("left behind: %+v, closed %d", s, q.closed.Load())
	}
}

// TestGivenBackJustAsOneLinesUp: the holder saw an open queue, then a call
// lined up, then the slot was given back.
func TestGivenBackJustAsOneLinesUp(t *testing.T) {
	q, first, got := lineUp(t)
	first.giveOpen()
	(<-got).Release()
	first.giveOpen()
	q.mustBeFree(t)
}

// TestTakenJustAsOneLinesUp: a newcomer saw an open queue, then a call lined
// up, then the slot became free and the newcomer had it first. It must not
// keep it.
func TestTakenJustAsOneLinesUp(t *testing.T) {
	q, first, got := lineUp(t)
	first.slot.state.Store(first.state - held + oneUse) // given back, and not yet seen who waits
	if _, ok := q.tryOpen(&Who{Tool: "newcomer"}); ok {
		t.Fatal("the newcomer overtook the one in line")
	}
	if p := <-got; p.slot.holder().tool != "waiter" {
		t.Errorf("%q has the slot", p.slot.holder().tool)
	} else {
		p.Release()
	}
	q.mustBeFree(t)
}

// TestTakenJustAsOneLooks: a newcomer saw an open queue, then someone began to
// read who holds the slots. It must not write where is being read.
func TestTakenJustAsOneLooks(t *testing.T) {
	q, first, got := lineUp(t)
	first.Release()
	(<-got).Release()
	q.close(closedLook)
	if _, ok := q.tryOpen(&Who{Tool: "newcomer"}); ok || q.first[0].by.tool == "newcomer" {
		t.Error("it wrote its name")
	}
	q.open(closedLook)
	q.mustBeFree(t)
}

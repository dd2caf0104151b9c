package toolqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Incidents of the seed's own system.

// TestIncidentAbortLeavesDepthStale: the depth gauge kept counting a waiter that had given up.
func TestIncidentAbortLeavesDepthStale(t *testing.T) {
	var gauge atomic.Int64
	q := newQueues(t, toolqueue.Hooks{Depth: func(_ string, depth int) { gauge.Store(int64(depth)) }}, one("a", toolqueue.Config{Concurrent: 1}))
	Take(t, q, "a", Tool("holder"))
	first, second := Start(t, q, "a", Tool("1"), 0), Start(t, q, "a", Tool("2"), 0)
	if gauge.Load() != 2 {
		t.Fatalf("gauge %d; want 2", gauge.Load())
	}
	first.Cancel()
	_ = first.End()
	if gauge.Load() != 1 {
		t.Errorf("gauge %d after one of two has gone", gauge.Load())
	}
	second.Cancel()
	_ = second.End()
	if gauge.Load() != 0 {
		t.Errorf("gauge %d after both have gone", gauge.Load())
	}
	counts(t, q, "a", 1, 0)
}

// TestIncidentRaisedCapacityWakesNobody: waiters waited for a release although the capacity had
// been raised.
func TestIncidentRaisedCapacityWakesNobody(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	Take(t, q, "a", Tool("holder"))
	first, second := Start(t, q, "a", Tool("1"), 0), Start(t, q, "a", Tool("2"), 0)
	if err := q.Configure(one("a", toolqueue.Config{Concurrent: 3})); err != nil {
		t.Fatal(err)
	}
	first.Has()
	second.Has()
}

func TestIncidentUnboundedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, map[string]toolqueue.Config{"own": {Concurrent: 1, MaxWait: time.Minute}, "none": {Concurrent: 1}})
		for _, name := range []string{"own", "none"} {
			held := Take(t, q, name, Tool("stuck"))
			began := time.Now()
			_, err := q.AcquireWithin(context.Background(), name, Tool("waiter"), 2*time.Minute)
			want := map[string]time.Duration{"own": time.Minute, "none": 2 * time.Minute}[name]
			if !errors.Is(err, toolqueue.ErrTimeout) || time.Since(began) != want {
				t.Errorf("%s: %v after %s; want a timeout after %s", name, err, time.Since(began), want)
			}
			held.Release()
			counts(t, q, name, 0, 0)
		}
	})
}

func TestIncidentUnboundedWaiters(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, MaxWaiters: 3}))
	Take(t, q, "a", Tool("stuck"))
	for range 3 {
		Start(t, q, "a", Tool("waiter"), 0)
	}
	for range 10 {
		if _, err := q.Acquire(context.Background(), "a", Tool("one too many")); !errors.Is(err, toolqueue.ErrFull) {
			t.Fatalf("error %v; want full", err)
		}
	}
	counts(t, q, "a", 1, 3)
}

// TestIncidentQueuedLineAfterTheWait: "queued" was logged after the wait, so a stuck call was
// never logged.
func TestIncidentQueuedLineAfterTheWait(t *testing.T) {
	queued := make(chan int, 1)
	q := newQueues(t, toolqueue.Hooks{Queued: func(_ string, _ toolqueue.Who, depth, _ int) { queued <- depth }}, one("a", toolqueue.Config{Concurrent: 1}))
	held := Take(t, q, "a", Tool("stuck"))
	if len(queued) != 0 {
		t.Error("queued is said of a call that did not wait")
	}
	c := Start(t, q, "a", Tool("waiter"), 0)
	if len(queued) != 1 || !c.Waits() {
		t.Fatal("queued is not said while the call waits")
	}
	held.Release()
	c.Has()
}

// TestIncidentResetAbandonsWaiters: a new configuration dropped waiters without waking them.
func TestIncidentResetAbandonsWaiters(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	held := Take(t, q, "a", Tool("holder"))
	c := Start(t, q, "a", Tool("waiter"), 0)
	for range 3 {
		if err := q.Configure(map[string]toolqueue.Config{"a": {Concurrent: 1}, "b": {Concurrent: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	held.Release()
	c.Has()
	counts(t, q, "a", 1, 0)
}

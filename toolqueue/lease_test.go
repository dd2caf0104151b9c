package toolqueue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// leased is a queue of capacity 1 with a lease of 10 s idle time and a minute in total.
var leased = toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: 10 * time.Second, MaxHold: time.Minute}}

func bubble(t *testing.T, c toolqueue.Config, f func(t *testing.T, q *toolqueue.Queues)) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("tab", c))
		f(t, q)
	})
}

// drain lets all leases expire, so that the synctest bubble can end.
func drain(t *testing.T, q *toolqueue.Queues) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	counts(t, q, "tab", 0, 0)
}

func TestLeaseKeepsTheSlotFromCallToCall(t *testing.T) {
	bubble(t, leased, func(t *testing.T, q *toolqueue.Queues) {
		Take(t, q, "tab", In("s1", "open")).Release()
		other := Start(t, q, "tab", In("s2", "open"), 0)
		for range 3 {
			time.Sleep(9 * time.Second)
			if !other.Waits() {
				t.Fatal("another session got in between two calls")
			}
			Take(t, q, "tab", In("s1", "click")).Release()
		}
		h := status(t, q, "tab").Holders[0]
		if !h.Leased || !h.Idle || h.Session != "s1" || !h.Expires.Equal(time.Now().Add(10*time.Second)) || !h.Since.Equal(time.Now().Add(-27*time.Second)) {
			t.Errorf("holder %+v", h)
		}
		time.Sleep(9 * time.Second)
		if !other.Waits() {
			t.Fatal("the lease ended before its time")
		}
		time.Sleep(time.Second)
		other.Has().Release()
		drain(t, q)
	})
}

func TestLeaseSerializesCallsOfSession(t *testing.T) {
	c := leased
	c.Concurrent = 2
	bubble(t, c, func(t *testing.T, q *toolqueue.Queues) {
		first := Take(t, q, "tab", In("s1", "1"))
		second, third := Start(t, q, "tab", In("s1", "2"), 0), Start(t, q, "tab", In("s1", "3"), 0)
		if !second.Waits() || !third.Waits() {
			t.Fatal("two calls of a session at once, in the slot that was free for others")
		}
		s := status(t, q, "tab")
		if s.InUse != 1 || s.Depth != 2 || len(s.Waiters) != 0 || s.Holders[0].Behind != 2 {
			t.Errorf("status %+v", s)
		}
		if n := (<-third.Waiting).Position(); n != 2 {
			t.Errorf("position %d among the session's calls; want 2", n)
		}
		Take(t, q, "tab", In("s2", "free")).Release() // nobody waits for this slot
		first.Release()
		p := second.Has()
		if !third.Waits() {
			t.Fatal("two calls of a session at once")
		}
		p.Release()
		third.Has().Release()
		drain(t, q)
	})
}

// TestLeaseMovesWaitersOfItsSession: the waiting calls of a session do not wait for another
// slot once the first has one.
func TestLeaseMovesWaitersOfItsSession(t *testing.T) {
	bubble(t, leased, func(t *testing.T, q *toolqueue.Queues) {
		held := Take(t, q, "tab", Tool("no session"))
		a := Start(t, q, "tab", In("s1", "a"), 0)
		b := Start(t, q, "tab", In("s2", "b"), 0)
		c := Start(t, q, "tab", In("s1", "c"), 0)
		held.Release()
		p := a.Has()
		if s := status(t, q, "tab"); s.Depth != 2 || len(s.Waiters) != 1 || s.Waiters[0].Tool != "b" || s.Holders[0].Behind != 1 {
			t.Fatalf("status %+v", s)
		}
		p.Release()
		c.Has().Release()
		if !b.Waits() {
			t.Fatal("the lease is not kept")
		}
		time.Sleep(10 * time.Second)
		b.Has().Release()
		drain(t, q)
	})
}

func TestLeaseEndsAfterMaxHold(t *testing.T) {
	bubble(t, leased, func(t *testing.T, q *toolqueue.Queues) {
		p := Take(t, q, "tab", In("s1", "long"))
		next := Start(t, q, "tab", In("s1", "next"), 0)
		other := Start(t, q, "tab", In("s2", "other"), 0)
		time.Sleep(2 * time.Minute)
		if !other.Waits() {
			t.Fatal("a call under way was cut off")
		}
		p.Release()
		o := other.Has() // the session queues anew, at the back
		if !next.Waits() {
			t.Fatal("a lease that was over went on")
		}
		o.Release()
		q.EndSession("s2")
		next.Has().Release()
		time.Sleep(9 * time.Second)
		for range 5 { // 9 to 54 s after it began
			Take(t, q, "tab", In("s1", "again")).Release()
			time.Sleep(9 * time.Second)
		}
		Take(t, q, "tab", In("s1", "again")).Release() // at 54 s
		last := Start(t, q, "tab", In("s2", "last"), 0)
		time.Sleep(5 * time.Second)
		if !last.Waits() {
			t.Fatal("the lease ended before its time")
		}
		time.Sleep(time.Second)
		last.Has().Release()
		drain(t, q)
	})
}

func TestLeaseIsHandedOn(t *testing.T) {
	bubble(t, leased, func(t *testing.T, q *toolqueue.Queues) {
		p := Take(t, q, "tab", In("s1", "a"))
		other := Start(t, q, "tab", In("s2", "b"), 0)
		q.EndSession("s1") // in use: it ends with the call
		next := Start(t, q, "tab", In("s1", "c"), 0)
		if !other.Waits() || !next.Waits() {
			t.Fatal("a call under way was cut off")
		}
		p.Release()
		other.Has().Release()
		if !next.Waits() {
			t.Fatal("it kept a slot that it had handed on")
		}
		q.EndSession("s2") // idle: at once
		next.Has().Release()
		q.EndSession("s1")
		q.EndSession("s1")
		counts(t, q, "tab", 0, 0)
	})
}

func TestLeaseNeedsASession(t *testing.T) {
	bubble(t, leased, func(t *testing.T, q *toolqueue.Queues) {
		Take(t, q, "tab", Tool("a")).Release()
		Take(t, q, "tab", In("s1", "b")).Release()
		counts(t, q, "tab", 1, 0)
		q.EndSession("")
		counts(t, q, "tab", 1, 0)
		drain(t, q)
	})
}

func TestMaxWaitersCountsCallsBehindLease(t *testing.T) {
	c := leased
	c.MaxWaiters, c.MaxWait = 1, time.Second
	bubble(t, c, func(t *testing.T, q *toolqueue.Queues) {
		p := Take(t, q, "tab", In("s1", "a"))
		behind := Start(t, q, "tab", In("s1", "b"), 0)
		if err := Start(t, q, "tab", In("s1", "c"), 0).End(); err == nil {
			t.Error("a second may wait behind its session")
		}
		if err := Start(t, q, "tab", In("s2", "d"), 0).End(); err == nil {
			t.Error("a second may wait in line")
		}
		if err := behind.End(); err == nil {
			t.Error("no bound on the wait behind its session")
		}
		p.Release()
		drain(t, q)
	})
}

func TestConfigureAddsLease(t *testing.T) {
	bubble(t, toolqueue.Config{Concurrent: 1}, func(t *testing.T, q *toolqueue.Queues) {
		before := Take(t, q, "tab", In("s1", "a"))
		if err := q.Configure(one("tab", leased)); err != nil {
			t.Fatal(err)
		}
		before.Release()
		counts(t, q, "tab", 0, 0)
		Take(t, q, "tab", In("s1", "b")).Release()
		counts(t, q, "tab", 1, 0)
		drain(t, q)
	})
}

func TestLeaseWithHugeDurations(t *testing.T) {
	c := toolqueue.Config{Concurrent: 1, Lease: toolqueue.Lease{Idle: 1<<63 - 1}}
	bubble(t, c, func(t *testing.T, q *toolqueue.Queues) {
		time.Sleep(time.Second)
		Take(t, q, "tab", In("s1", "a")).Release()
		if h := status(t, q, "tab").Holders[0]; !h.Idle || !h.Expires.IsZero() {
			t.Errorf("holder %+v", h)
		}
		q.EndSession("s1")
		counts(t, q, "tab", 0, 0)
	})
}

func TestEndedLeasesAreForgotten(t *testing.T) {
	c := leased
	c.Concurrent = 20
	bubble(t, c, func(t *testing.T, q *toolqueue.Queues) {
		for n := range 1000 {
			p := Take(t, q, "tab", In(fmt.Sprint(n), "a"))
			time.Sleep(time.Second)
			p.Release()
			if s := status(t, q, "tab"); s.InUse > 11 {
				t.Fatalf("%d leases of 10 s after %d calls, one a second", s.InUse, n)
			}
		}
		drain(t, q)
	})
}

// TestIdleLeaseShowsItsLastCall, also one that had waited for the slot.
func TestIdleLeaseShowsItsLastCall(t *testing.T) {
	bubble(t, leased, func(t *testing.T, q *toolqueue.Queues) {
		p := Take(t, q, "tab", Tool("holder"))
		c := Start(t, q, "tab", In("s1", "waited"), 0)
		p.Release()
		c.Has().Release()
		if h := status(t, q, "tab").Holders[0]; !h.Idle || h.Session != "s1" || h.Tool != "waited" {
			t.Errorf("holder %+v", h)
		}
		Take(t, q, "tab", In("s1", "resumed")).Release()
		if h := status(t, q, "tab").Holders[0]; !h.Idle || h.Session != "s1" || h.Tool != "resumed" {
			t.Errorf("holder %+v", h)
		}
		drain(t, q)
	})
}

package toolqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// TestConcurrentUse has many callers acquire, release, give up and read the status
// concurrently. Holders never exceed the capacity, no call waits for ever, and all slots are
// free at the end.
func TestConcurrentUse(t *testing.T) {
	for _, c := range []toolqueue.Config{
		{Concurrent: 1},
		{Concurrent: 3, MaxWaiters: 20},
		{Concurrent: 12, MaxWait: 50 * time.Microsecond},
		{Concurrent: 2, Lease: toolqueue.Lease{Idle: 20 * time.Microsecond, MaxHold: 100 * time.Microsecond}},
	} {
		t.Run(fmt.Sprintf("%d,%t", c.Concurrent, c.Lease.Idle > 0), func(t *testing.T) {
			h := &stress{depth: new(atomic.Int64), limit: int64(c.Concurrent)}
			h.queues = newQueues(t, toolqueue.Hooks{Depth: func(_ string, depth int) { h.depth.Store(int64(depth)) }}, one("a", c))
			h.run(t)
			testkit.Wait(t, "all is free: leases run out", func() bool {
				s := status(t, h.queues, "a")
				return s.InUse == 0 && s.Depth == 0
			})
			if h.depth.Load() != 0 {
				t.Errorf("the hook's last depth is %d", h.depth.Load())
			}
			if h.got.Load() == 0 {
				t.Error("nobody got a slot")
			}
		})
	}
}

// TestConcurrentUpdate changes the capacity while many callers use the queue. Once the slots in
// use have drained to the new capacity, they do not exceed it until the next change.
func TestConcurrentUpdate(t *testing.T) {
	h := &stress{depth: new(atomic.Int64), limit: 12}
	h.queues = newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 12}))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			now := []int{1, 12, 3, 9, 2, 8}[n%6]
			if _, _, err := h.queues.Update("a", func(c *toolqueue.Config) { c.Concurrent = now }); err != nil {
				t.Error(err)
			}
			for status(t, h.queues, "a").InUse > now {
				runtime.Gosched() // it drains
			}
			for range 20 {
				if in := atomic.LoadInt64(&h.in); in > int64(now) {
					t.Errorf("%d calls at once after a change to %d has drained", in, now)
				}
				runtime.Gosched()
			}
		}
	}()
	h.callers(t)
	close(stop)
	<-stopped
	set(t, h.queues, "a", 2)
	counts(t, h.queues, "a", 0, 0)
	Take(t, h.queues, "a", Tool("1"))
	Take(t, h.queues, "a", Tool("2"))
	if _, ok := h.queues.TryAcquire("a", Tool("3")); ok {
		t.Error("three slots at the end")
	}
}

type stress struct {
	queues    *toolqueue.Queues
	depth     *atomic.Int64
	in, limit int64
	got       atomic.Int64
}

func (h *stress) run(t *testing.T) {
	var lookers sync.WaitGroup
	stop := make(chan struct{})
	lookers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if s := status(t, h.queues, "a"); s.InUse > s.Concurrent || len(s.Holders) != s.InUse {
					t.Errorf("status %+v", s)
				}
				h.queues.EndSession(fmt.Sprint("s", rand.IntN(6)))
				time.Sleep(20 * time.Microsecond)
			}
		}
	})
	h.callers(t)
	close(stop)
	lookers.Wait()
}

func (h *stress) callers(t *testing.T) {
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			for n := range 300 {
				h.once(t, i, n)
			}
		})
	}
	all.Wait()
}

func (h *stress) once(t *testing.T, i, n int) {
	ctx := context.Background()
	switch n % 3 {
	case 1:
		c, cancel := context.WithCancel(ctx)
		defer cancel()
		ctx = c
	case 2:
		c, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(200))*time.Microsecond)
		defer cancel()
		ctx = c
	}
	who := toolqueue.Who{Session: fmt.Sprint("s", i%6), Tool: fmt.Sprint(i)}
	if n%5 == 0 {
		who.Waits = func(w toolqueue.Waiting) { _ = w.Position() }
	}
	p, err := h.queues.Acquire(ctx, "a", who)
	if err != nil {
		p.Release()
		return
	}
	if in := atomic.AddInt64(&h.in, 1); in > h.limit {
		t.Errorf("%d calls at once; the capacity is %d", in, h.limit)
	}
	h.got.Add(1)
	if n%7 == 0 {
		time.Sleep(time.Duration(rand.IntN(30)) * time.Microsecond)
	}
	atomic.AddInt64(&h.in, -1)
	again := p
	if n%2 == 0 {
		go again.Release()
	}
	p.Release()
	again.Release()
}

// TestCancelRacesWithGrant: a call that is cancelled while it gets a slot passes the slot on. The
// order of the two is random.
func TestCancelRacesWithGrant(t *testing.T) {
	q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
	for range 20 {
		holder := Take(t, q, "a", Tool("holder"))
		ctx, cancel := context.WithCancel(t.Context())
		who := Tool("late")
		who.Waits = func(toolqueue.Waiting) {
			holder.Release()
			cancel()
		}
		if p, err := q.Acquire(ctx, "a", who); !errors.Is(err, toolqueue.ErrCancelled) || p != (toolqueue.Permit{}) {
			t.Errorf("a cancelled call has %v, %v", p, err)
		}
		counts(t, q, "a", 0, 0)
	}
}

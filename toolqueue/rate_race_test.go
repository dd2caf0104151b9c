package toolqueue

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRateWithoutTheLock: concurrent callers take no more lent tokens than there are.
func TestRateWithoutTheLock(t *testing.T) {
	const burst = 4000
	all := New(Hooks{})
	if err := all.Configure(map[string]Config{"a": {Concurrent: 4, Rate: Rate{N: 1, Per: time.Hour, Burst: burst}}}); err != nil {
		t.Fatal(err)
	}
	var got, fast atomic.Int64
	var callers sync.WaitGroup
	q := all.queues.Load().find("a")
	for range 8 {
		callers.Go(func() {
			for {
				q.mu.Lock()
				left := q.fullAt(q.now())
				q.mu.Unlock()
				if p, ok := q.tryFast(&Who{}); ok {
					fast.Add(1)
					got.Add(1)
					p.Release()
				} else if p, err := all.AcquireWithin(context.Background(), "a", Who{}, time.Millisecond); err == nil {
					got.Add(1)
					p.Release()
				} else if left >= (burst-1)*time.Hour {
					return
				}
			}
		})
	}
	callers.Wait()
	if got.Load() != burst {
		t.Errorf("%d calls started; the bucket had %d tokens", got.Load(), burst)
	}
	if fast.Load() == 0 {
		t.Error("none without the lock")
	}
	q.mustBeFree(t)
}

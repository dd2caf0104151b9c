package toolqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// One browser for all sessions of a process: one call at a time, in order.
func Example() {
	queues := toolqueue.New(toolqueue.Hooks{})
	err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	permit, err := queues.Acquire(context.Background(), "browser", toolqueue.Who{Tool: "browser__click", Session: "s1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, free := queues.TryAcquire("browser", toolqueue.Who{Tool: "browser__read", Session: "s2"})
	fmt.Println("another call could start:", free)
	permit.Release()
	permit.Release() // only the first counts
	status, _ := queues.Status("browser", 0)
	fmt.Println("slots in use:", status.InUse)
	// Output:
	// another call could start: false
	// slots in use: 0
}

// A call that may wait only for a moment.
func ExampleQueues_AcquireWithin() {
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"build": {Concurrent: 1}}); err != nil {
		fmt.Println(err)
		return
	}
	held, _ := queues.TryAcquire("build", toolqueue.Who{Tool: "first"})
	defer held.Release()
	_, err := queues.AcquireWithin(context.Background(), "build", toolqueue.Who{Tool: "second"}, time.Millisecond)
	fmt.Println(errors.Is(err, toolqueue.ErrTimeout))
	// Output: true
}

// Ten goroutines share one machine. Each waits for its turn, and no two run at the
// same time.
func ExampleQueues_Acquire() {
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"machine": {Concurrent: 1}}); err != nil {
		fmt.Println(err)
		return
	}

	build := func(ctx context.Context, session string) error {
		permit, err := queues.Acquire(ctx, "machine", toolqueue.Who{Tool: "build", Session: session})
		if err != nil {
			return err // the context ended: the call has left the line and holds nothing
		}
		defer permit.Release()
		time.Sleep(time.Millisecond) // the heavy work
		return nil
	}

	var all sync.WaitGroup
	for n := range 10 {
		all.Go(func() {
			if err := build(context.Background(), fmt.Sprintf("session-%d", n)); err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	status, _ := queues.Status("machine", 0)
	fmt.Printf("in use: %d of %d\n", status.InUse, status.Concurrent)
	// Output: in use: 0 of 1
}

// The capacity grows and shrinks while calls hold its slots. Slots beyond it drain.
func ExampleQueues_Update() {
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"build": {Concurrent: 2}}); err != nil {
		fmt.Println(err)
		return
	}
	first, _ := queues.TryAcquire("build", toolqueue.Who{Tool: "first"})
	second, _ := queues.TryAcquire("build", toolqueue.Who{Tool: "second"})
	before, after, err := queues.Update("build", func(c *toolqueue.Config) { c.Concurrent = 1 })
	fmt.Println(before.Concurrent, after.Concurrent, err)
	first.Release()
	_, free := queues.TryAcquire("build", toolqueue.Who{Tool: "third"})
	fmt.Println("one of one is held; a third call could start:", free)
	second.Release()
	_, free = queues.TryAcquire("build", toolqueue.Who{Tool: "third"})
	fmt.Println("none is held; it could start:", free)
	// Output:
	// 2 1 <nil>
	// one of one is held; a third call could start: false
	// none is held; it could start: true
}

package toolqueue_test

import (
	"context"
	"errors"
	"fmt"
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

// A call that may not wait for longer than a moment.
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

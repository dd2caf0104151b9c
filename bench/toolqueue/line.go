package toolqueue

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	handOffs = 200_000
	lineUps  = 20_000
)

// line measures the parts of a wait with depth calls in line.
func line(name string, depth int) *measure.Side {
	return &measure.Side{Name: name, Open: func(context.Context, *measure.Bench) (measure.Trial, error) {
		return func(context.Context) (measure.Values, error) {
			c := newCrowd(depth)
			enqueue, cancel := c.lineUp()
			return measure.Values{"enqueue": enqueue, "cancel": cancel, "hand-off": c.handOn()}, nil
		}, nil
	}}
}

// crowd is a queue of capacity 1 whose slot is held while many wait.
type crowd struct {
	queues *toolqueue.Queues
	held   toolqueue.Permit
	all    sync.WaitGroup
}

// newCrowd lets each of its callers wait and, after the slot is released, take it and
// pass it on, so often that there are handOffs in total.
func newCrowd(depth int) *crowd {
	ctx := context.Background()
	c := &crowd{queues: newQueues(1)}
	c.held, _ = c.queues.Acquire(ctx, "browser", toolqueue.Who{})
	waits := make(chan struct{})
	for range depth {
		c.all.Go(func() {
			who := toolqueue.Who{Waits: func(toolqueue.Waiting) { waits <- struct{}{} }}
			for range handOffs / depth {
				p, err := c.queues.Acquire(ctx, "browser", who)
				if err != nil {
					panic(err)
				}
				who.Waits = nil
				p.Release()
			}
		})
		<-waits
	}
	return c
}

// lineUp measures a call that queues and then gives up.
func (c *crowd) lineUp() (enqueue, cancel float64) {
	var into, out time.Duration
	for range lineUps {
		ctx, stop := context.WithCancel(context.Background())
		var waits time.Time
		began := time.Now()
		_, err := c.queues.Acquire(ctx, "browser", toolqueue.Who{Waits: func(toolqueue.Waiting) {
			waits = time.Now()
			stop()
		}})
		if err == nil {
			panic("got a slot that is held")
		}
		into, out = into+waits.Sub(began), out+time.Since(waits)
	}
	return float64(into.Nanoseconds()) / lineUps, float64(out.Nanoseconds()) / lineUps
}

// handOn passes the slot through the line. A hand-off is a release, a wake-up and a new
// place at the end of the line.
func (c *crowd) handOn() float64 {
	began := time.Now()
	c.held.Release()
	c.all.Wait()
	return float64(time.Since(began).Nanoseconds()) / handOffs
}

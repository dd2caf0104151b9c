package toolqueue_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen. It never passes in
// a good run.
const patience = time.Minute

func newQueues(t testing.TB, hooks toolqueue.Hooks, configs map[string]toolqueue.Config) *toolqueue.Queues {
	t.Helper()
	q := toolqueue.New(hooks)
	if err := q.Configure(configs); err != nil {
		t.Fatalf("Configure: %v", err)
	}
	return q
}

func one(name string, c toolqueue.Config) map[string]toolqueue.Config {
	return map[string]toolqueue.Config{name: c}
}

// call is an Acquire in a goroutine of its own.
type call struct {
	t       testing.TB
	cancel  context.CancelFunc
	waiting chan toolqueue.Waiting // what Waits was called with
	done    chan struct{}          // closed when Acquire has returned
	permit  toolqueue.Permit
	err     error
}

// start begins an Acquire and returns once it waits or has returned.
func start(t testing.TB, q *toolqueue.Queues, queue string, who toolqueue.Who, maxWait time.Duration) *call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{t: t, cancel: cancel, waiting: make(chan toolqueue.Waiting, 1), done: make(chan struct{})}
	begun := make(chan struct{}, 2)
	who.Waits = func(w toolqueue.Waiting) {
		c.waiting <- w
		begun <- struct{}{}
	}
	go func() {
		defer close(c.done)
		c.permit, c.err = q.AcquireWithin(ctx, queue, who, maxWait)
		begun <- struct{}{}
	}()
	<-begun
	t.Cleanup(func() {
		cancel()
		<-c.done
		c.permit.Release()
	})
	return c
}

func (c *call) waits() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// end waits until Acquire returns.
func (c *call) end() error {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatal("Acquire does not return")
	}
	return c.err
}

// has waits until the call has its slot.
func (c *call) has() toolqueue.Permit {
	c.t.Helper()
	if err := c.end(); err != nil {
		c.t.Fatalf("Acquire: %v", err)
	}
	return c.permit
}

func tool(name string) toolqueue.Who { return toolqueue.Who{Tool: name} }

func in(session, name string) toolqueue.Who { return toolqueue.Who{Session: session, Tool: name} }

func take(t testing.TB, q *toolqueue.Queues, queue string, who toolqueue.Who) toolqueue.Permit {
	t.Helper()
	p, err := q.Acquire(context.Background(), queue, who)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return p
}

func status(t testing.TB, q *toolqueue.Queues, queue string) toolqueue.Status {
	t.Helper()
	s, ok := q.Status(queue, 1000)
	if !ok {
		t.Fatalf("no queue %q", queue)
	}
	return s
}

// counts checks how many slots are in use and how many calls wait.
func counts(t testing.TB, q *toolqueue.Queues, queue string, inUse, depth int) {
	t.Helper()
	if s := status(t, q, queue); s.InUse != inUse || s.Depth != depth {
		t.Fatalf("in use %d, depth %d; want %d, %d", s.InUse, s.Depth, inUse, depth)
	}
}

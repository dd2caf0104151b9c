package toolqueue_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

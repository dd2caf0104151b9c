package gateway_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// TestCalling: a waiting call and a running call count, an ended call does
// not.
func TestCalling(t *testing.T) {
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"one": {Concurrent: 1}}); err != nil {
		t.Fatal(err)
	}
	calling := gateway.Calling(queues)
	first, err := queues.Acquire(t.Context(), "one", toolqueue.Who{Session: "a", Execution: "queue-1"})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan toolqueue.Permit)
	go func() {
		p, err := queues.Acquire(t.Context(), "one", toolqueue.Who{Session: "b", Execution: "queue-2"})
		if err != nil {
			t.Error(err)
		}
		got <- p
	}()
	for !calling("queue-2") { // until it waits in the queue
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	if !calling("queue-1") || calling("queue-3") {
		t.Errorf("queue-1 %v, queue-3 %v", calling("queue-1"), calling("queue-3"))
	}
	first.Release()
	second := <-got
	if calling("queue-1") || !calling("queue-2") {
		t.Errorf("queue-1 %v, queue-2 %v", calling("queue-1"), calling("queue-2"))
	}
	second.Release()
	if calling("queue-2") {
		t.Error("queue-2 has ended its call")
	}
}

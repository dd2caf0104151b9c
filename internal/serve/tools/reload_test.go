package tools

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Of the bounds in a file that is read again, greater ones are taken at once;
// all others stay, and the log says both.
func TestBoundsOfToolQueuesAreRaised(t *testing.T) {
	queues := toolqueue.New(toolqueue.Hooks{})
	err := queues.Configure(map[string]toolqueue.Config{
		"default": {Concurrent: 1, MaxWait: time.Minute}, "web": {Concurrent: 4, MaxWaiters: 2}, "old": {Concurrent: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	held, _ := queues.TryAcquire("default", toolqueue.Who{Tool: "first"})
	defer held.Release()
	if _, ok := queues.TryAcquire("default", toolqueue.Who{Tool: "second"}); ok {
		t.Fatal("a queue of 1 has room for two")
	}
	var log bytes.Buffer
	raiseQueues(queues, map[string]toolqueue.Config{
		"default": {Concurrent: 9, MaxWait: time.Hour}, "web": {Concurrent: 3}, "new": {Concurrent: 1},
	}, slog.New(slog.NewTextHandler(&log, nil)))
	second, ok := queues.TryAcquire("default", toolqueue.Who{Tool: "second"})
	if !ok {
		t.Error("the raised queue has no room")
	}
	second.Release()
	for name, want := range map[string]toolqueue.Status{
		"default": {Concurrent: 9, MaxWait: time.Hour}, "web": {Concurrent: 4, MaxWaiters: 2}, "old": {Concurrent: 1},
	} {
		is, _ := queues.Status(name, 0)
		if is.Concurrent != want.Concurrent || is.MaxWait != want.MaxWait || is.MaxWaiters != want.MaxWaiters {
			t.Errorf("%s: %+v, want %+v", name, is, want)
		}
	}
	if _, there := queues.Status("new", 0); there {
		t.Error("a queue that no tool can be bound to was made")
	}
	for _, line := range []string{
		`msg="tool queue raised" queue=default concurrent=9 before=1`, `msg="tool queue raised" queue=default max_wait=1h0m0s before=1m0s`,
		`level=WARN msg="a bound of a tool queue is only raised while it runs: it stays until a restart" queue=web key=concurrent stays=4 configured=3`,
		"queue=web key=max_waiters stays=2 configured=0", `msg="a new tool queue needs a restart" queue=new`, "stays until a restart\" queue=old",
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %s in\n%s", line, &log)
		}
	}
}

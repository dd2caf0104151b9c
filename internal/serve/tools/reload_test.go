package tools

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Limits in a reloaded file are applied, larger and smaller ones. Settings made by hand stay if
// the file does not change them, and the log says what needs a restart.
func TestBoundsOfToolQueuesAreSet(t *testing.T) {
	was := map[string]toolqueue.Config{
		"default": {Concurrent: 1, MaxWait: time.Minute}, "web": {Concurrent: 4, MaxWaiters: 2}, "old": {Concurrent: 1}, "by-hand": {Concurrent: 2},
	}
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(was); err != nil {
		t.Fatal(err)
	}
	if _, _, err := queues.Update("by-hand", func(c *toolqueue.Config) { c.Concurrent = 7 }); err != nil {
		t.Fatal(err)
	}
	held, _ := queues.TryAcquire("default", toolqueue.Who{Tool: "first"})
	defer held.Release()
	if _, ok := queues.TryAcquire("default", toolqueue.Who{Tool: "second"}); ok {
		t.Fatal("a queue of 1 has room for two")
	}
	var log bytes.Buffer
	setQueues(queues, was, map[string]toolqueue.Config{
		"default": {Concurrent: 9, MaxWait: time.Hour}, "web": {Concurrent: 3, MaxWait: time.Second}, "new": {Concurrent: 1}, "by-hand": {Concurrent: 2, Shared: true},
	}, slog.New(slog.NewTextHandler(&log, nil)))
	second, ok := queues.TryAcquire("default", toolqueue.Who{Tool: "second"})
	if !ok {
		t.Error("the raised queue has no room")
	}
	second.Release()
	for name, want := range map[string]toolqueue.Status{
		"default": {Concurrent: 9, MaxWait: time.Hour}, "web": {Concurrent: 3}, "old": {Concurrent: 1}, "by-hand": {Concurrent: 7},
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
		`msg="tool queue changed" queue=default concurrent=9 before=1`, `msg="tool queue changed" queue=default max_wait=1h0m0s before=1m0s`,
		`msg="tool queue changed" queue=web concurrent=3 before=4`, `msg="tool queue changed" queue=web max_waiters=0 before=2`,
		`msg="whether a tool queue has a max_wait needs a restart" queue=web`, `msg="session and shared of a tool queue need a restart" queue=by-hand`,
		`msg="a new tool queue needs a restart" queue=new`, "stays until a restart\" queue=old",
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %s in\n%s", line, &log)
		}
	}
}

func TestRatesOfToolQueuesAreSet(t *testing.T) {
	was := map[string]toolqueue.Config{"default": {Concurrent: 9, Rate: toolqueue.Rate{N: 1, Per: time.Hour}}, "by-hand": {Concurrent: 1}}
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(was); err != nil {
		t.Fatal(err)
	}
	if _, _, err := queues.Update("by-hand", func(c *toolqueue.Config) { c.Rate = toolqueue.Rate{N: 5, Per: time.Hour} }); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	setQueues(queues, was, map[string]toolqueue.Config{"default": {Concurrent: 9}, "by-hand": {Concurrent: 1, PerKey: true}}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		if p, ok := queues.TryAcquire("default", toolqueue.Who{}); ok {
			p.Release()
		} else {
			t.Error("the rate still holds")
		}
	}
	if is, _ := queues.Status("by-hand", 0); is.Rate.N != 5 {
		t.Errorf("%+v", is.Rate)
	}
	for _, line := range []string{`msg="per of a tool queue needs a restart" queue=by-hand`, `msg="tool queue changed" queue=default rate=`} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %s in\n%s", line, &log)
		}
	}
}

package signalbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// A row keeps why its latest claims went back to the queue, and an earlier copy of the row does
// not change.
func TestRequeuesAreKept(t *testing.T) {
	start := time.UnixMilli(1000).UTC()
	task := signalbox.Task{ID: "queue-1", State: signalbox.Pending, CreatedAt: start}
	var before signalbox.Task
	for i := range signalbox.MaxRequeues + 2 {
		now := start.Add(time.Duration(i) * time.Minute)
		claimed, err := signalbox.Next(task, signalbox.Event{Kind: signalbox.EventClaim, Now: now, Agent: "coder", Fence: int64(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		back, err := signalbox.Next(claimed.Task, signalbox.Event{
			Kind: signalbox.EventBusy, Now: now.Add(time.Second), Fence: int64(i + 1), Message: fmt.Sprint(i, strings.Repeat("é", 200)),
		})
		if err != nil {
			t.Fatal(err)
		}
		before, task = task, back.Task
	}
	list, earlier := *task.Requeues, *before.Requeues
	first, last := list[0], list[len(list)-1]
	if len(list) != signalbox.MaxRequeues || !strings.HasPrefix(first.Message, "2") || !strings.HasPrefix(last.Message, "17") {
		t.Errorf("%d requeues, from %q to %q", len(list), first.Message, last.Message)
	}
	if len(last.Message) > signalbox.MaxRequeueMessage || strings.ContainsRune(last.Message, '\uFFFD') {
		t.Errorf("a message of %d bytes: %q", len(last.Message), last.Message)
	}
	if last.Kind != signalbox.EventBusy || last.Agent != "coder" || last.At.Sub(last.ClaimedAt) != time.Second {
		t.Errorf("got %+v", last)
	}
	if len(earlier) != signalbox.MaxRequeues || !strings.HasPrefix(earlier[0].Message, "1é") {
		t.Errorf("the row before has changed: %q", earlier[0].Message)
	}
}

package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// TestBoardRemembersTheEnd checks that an ended task is found as ended, even if a lane
// still shows an older state.
func TestBoardRemembersTheEnd(t *testing.T) {
	var b board
	first := busyBoard()
	b.take(client.LiveEvent{Kind: client.LiveSnapshot, Live: first})
	ended := first.Tasks[0]
	ended.State, ended.EndedAt = "completed", &noon
	b.take(client.LiveEvent{Kind: client.LiveChange, Live: api.Live{Tasks: []api.LiveTask{ended}}})
	if got, ok := b.task(ended.QueueID); !ok || got.State != "completed" {
		t.Errorf("the task is %+v", got)
	}
	if _, ok := b.task(id("none")); ok {
		t.Error("a task is found that does not exist")
	}
}

// TestBoardIsBounded checks that a view that is open for weeks does not grow.
func TestBoardIsBounded(t *testing.T) {
	var b board
	b.take(client.LiveEvent{Kind: client.LiveSnapshot, Live: busyBoard()})
	for i := range 5 * maxEnded {
		done := task(fmt.Sprintf("%04d", i), "completed", "x", time.Minute)
		end := noon.Add(time.Duration(i) * time.Second)
		done.EndedAt = &end
		b.take(client.LiveEvent{Kind: client.LiveChange, Live: api.Live{Tasks: []api.LiveTask{done}}})
	}
	if len(b.ended) != maxEnded || b.ended[0].QueueID != id("1499") {
		t.Errorf("%d tasks are remembered, %s first", len(b.ended), b.ended[0].QueueID)
	}
	if _, ok := b.task(id("t402")); !ok {
		t.Error("a running task is forgotten")
	}
}

// TestOutputIsBounded checks the same for an output, with lines that do not end.
func TestOutputIsBounded(t *testing.T) {
	d := detail{}
	for range 3 * maxLog {
		d.print(api.Output{Text: "line\n"})
	}
	if len(d.log) != maxLog || !d.gap {
		t.Errorf("%d lines are kept, gap %v", len(d.log), d.gap)
	}
	for range 1000 {
		d.print(api.Output{Text: strings.Repeat("x", 1000)})
	}
	if len(d.part) > 2*maxLogLine {
		t.Errorf("%d bytes of a line without an end are kept", len(d.part))
	}
}

// TestOutputScrolls checks that scrolling back stops following, and scrolling to the end
// resumes it.
func TestOutputScrolls(t *testing.T) {
	r := newRig(t, 80, 24)
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %03d\n", i)
	}
	r.dir.output = []api.Output{{Text: text.String()}}
	r.snapshot(busyBoard())
	r.keys("<enter>")
	r.shows("line 099")
	r.keys("k")
	r.shows("line 098")
	r.hides("line 099")
	r.send(outputMsg{id("t402"), api.Output{Text: "line 100\n"}})
	r.hides("line 100")
	r.keys("g")
	r.shows("line 000")
	r.keys("G")
	r.shows("line 100")
	r.keys("<pgup>", "<pgup>")
	r.hides("line 100")
	r.keys("f")
	r.shows("line 100")
}

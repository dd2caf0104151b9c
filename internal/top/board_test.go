package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// TestBoardFollowsTheStream applies each kind of event.
func TestBoardFollowsTheStream(t *testing.T) {
	var b board
	b.apply(kindChange, &api.Live{Agents: []api.LiveAgent{agent("early", "idle", nil, nil)}})
	if b.seen || len(b.agents) != 0 {
		t.Fatalf("a change before the snapshot: %+v", b.agents)
	}
	first := busyBoard()
	first.At = noon
	b.apply(kindSnapshot, &first)
	if got := names(&b); got != "coder deployer researcher triage writer | work | anthropic-api browser github web_search" {
		t.Fatalf("after the snapshot: %s", got)
	}
	ended := first.Tasks[0]
	ended.State, ended.EndedAt = "completed", &noon
	b.apply(kindChange, &api.Live{
		Revision: 2, At: noon.Add(time.Second), Totals: &api.Totals{Running: 2}, Agents: []api.LiveAgent{agent("bob", "idle", nil, nil), agent("coder", "idle", nil, nil)},
		Tasks: []api.LiveTask{ended}, Gone: []string{"agent:writer", "queue:work", "capacity:browser", "task:" + id("t377"), "schedule:x", "nonsense"},
	})
	if got := names(&b); got != "bob coder deployer researcher triage |  | anthropic-api github web_search" {
		t.Fatalf("after the change: %s", got)
	}
	if c, ok := b.agent("coder"); !ok || c.Face != "idle" || b.totals.Running != 2 || b.revision != 2 || b.health == nil {
		t.Errorf("the change is not taken in: %+v", b)
	}
	if got, ok := b.task(id("t377")); ok {
		t.Errorf("a task that is gone is still there: %+v", got)
	}
	b.apply(kindBeat, &api.Live{Revision: 3, At: noon.Add(2 * time.Second)})
	if len(b.agents) != 5 || !b.at.Equal(noon.Add(2*time.Second)) {
		t.Errorf("a beat changes more than the time: %+v", b)
	}
	b.apply(kindResync, &api.Live{Revision: 9, Agents: []api.LiveAgent{agent("only", "idle", nil, nil)}})
	if got := names(&b); got != "only |  | " || len(b.tasks) != 0 {
		t.Errorf("after the resync: %s", got)
	}
}

func names(b *board) string {
	var parts []string
	var all []string
	for _, a := range b.agents {
		all = append(all, a.Name)
	}
	parts, all = append(parts, strings.Join(all, " ")), nil
	for _, q := range b.queues {
		all = append(all, q.Name)
	}
	parts, all = append(parts, strings.Join(all, " ")), nil
	for _, q := range b.capacity {
		all = append(all, q.Name)
	}
	return strings.Join(append(parts, strings.Join(all, " ")), " | ")
}

// TestBoardIsBounded shows that a view that is open for weeks does not grow.
func TestBoardIsBounded(t *testing.T) {
	var b board
	first := busyBoard()
	b.apply(kindSnapshot, &first)
	for i := range 5000 {
		done := task(fmt.Sprintf("%04d", i), "completed", "x", time.Minute)
		end := noon.Add(time.Duration(i) * time.Second)
		done.EndedAt = &end
		b.apply(kindChange, &api.Live{Tasks: []api.LiveTask{done}})
	}
	if len(b.tasks) > 2*maxEnded {
		t.Errorf("%d tasks are remembered", len(b.tasks))
	}
	if got := b.ended(); got[0].QueueID != id("4999") {
		t.Errorf("the newest is forgotten: %s comes first", got[0].QueueID)
	}
	if _, ok := b.tasks[id("t402")]; !ok {
		t.Error("a running task is forgotten")
	}
}

// TestOutputIsBounded shows the same of an output, with lines that do not end.
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

// TestOutputScrolls shows that scrolling back stops the following, and the end
// takes it up.
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

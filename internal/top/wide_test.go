package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// TestLanesThatWorkComeFirst checks that agents that are down do not push working ones off
// the screen, and that the screen shows its place in the list.
func TestLanesThatWorkComeFirst(t *testing.T) {
	r := newRig(t, 100, 24)
	l := busyBoard()
	for i := range 60 {
		l.Agents = append(l.Agents, agent(fmt.Sprintf("a-dead-%02d", i), "down", nil, nil))
	}
	r.snapshot(l)
	r.shows("▸ coder", "researcher", "1 of 66 ↓ ──")
	order := []string{"coder", "researcher", "writer", "deployer", "work"}
	for _, name := range order {
		r.shows("▸ " + name)
		r.keys("j")
	}
	r.shows("▸ triage")
	r.keys("G")
	r.shows("▸ a-dead-59", "66 of 66 ↑ ──")
	r.keys("/", "dead-1")
	r.shows(`"dead-1": 10 of 66`, "▸ a-dead-10")
	r.hides("coder")
}

// TestClosedStreamIsSaidAtOnce checks that the view calls itself live only while the
// stream is open.
func TestClosedStreamIsSaidAtOnce(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	r.now = r.now.Add(time.Second)
	r.shows("● live")
	r.send(streamClosed{})
	r.shows("reconnecting, data 1s old", "does not answer: the data is 1s old")
	r.hides("● live", "need attention")
	r.send(client.LiveEvent{Kind: client.LiveBeat, Live: api.Live{At: r.now}})
	r.shows("● live")
}

// TestSelectedTaskStandsBesideTheList checks that on a wide screen the selected task is
// read at the next tick, and that the list gets the keys until Enter and after Esc.
func TestSelectedTaskStandsBesideTheList(t *testing.T) {
	r := newRig(t, 160, 40)
	r.dir.why = gates()
	r.dir.task = api.Task{QueueID: id("t409"), State: "pending", Queue: "agent:coder", PromptPreview: "Fix the flaky login test"}
	r.snapshot(busyBoard())
	r.shows("▸ coder", id("t402"))
	r.keys("l")
	r.shows("▸ coder", id("t409"), "asking the director …")
	r.now = r.now.Add(tick)
	r.send(tickMsg{})
	r.shows("It waits for agent coder, which is busy; it is next.")
	r.golden("beside-160x40")
	r.keys("j")
	r.shows("▸ researcher", id("t418"))
	r.keys("<enter>", "j")
	r.shows("▸ researcher", "Esc back", "┃")
	r.keys("<esc>", "j")
	r.shows("▸ writer", "Enter open", "│")
	r.send(tea.WindowSizeMsg{Width: 100, Height: 40})
	r.hides(id("t377"))
	r.keys("<enter>")
	r.shows(id("t377"))
	r.hides("▸ writer")
}

// TestNamesUseTheRoom checks that a long name is cut only if there is no room for it.
func TestNamesUseTheRoom(t *testing.T) {
	const long = "the-agent-of-the-platform-team"
	l := busyBoard()
	l.Agents = append(l.Agents, agent(long, "running", []api.LiveTask{runs(task("t500", "working", "Do it", time.Minute), long, time.Minute)}, nil))
	l.Tasks = append(l.Tasks, l.Agents[len(l.Agents)-1].Current...)
	for columns, whole := range map[int]bool{80: false, 200: true} {
		r := newRig(t, columns, 40)
		r.dir.found = api.Search{Tasks: l.Tasks, Total: len(l.Tasks)}
		r.snapshot(l)
		if got := strings.Contains(r.frame(), long); got != whole {
			t.Errorf("on the lanes at %d columns the name is whole: %v", columns, got)
		}
		r.keys("3")
		r.shows("Agent or queue")
		if got := strings.Contains(r.frame(), long); got != whole {
			t.Errorf("on the tasks at %d columns the name is whole: %v", columns, got)
		}
	}
}

func withOutput(t *testing.T, text string) *rig {
	r := newRig(t, 80, 24)
	r.dir.task = api.Task{QueueID: id("t402"), State: "working", Agent: "coder"}
	r.dir.output = []api.Output{{Text: text}}
	r.snapshot(busyBoard())
	r.keys("o")
	return r
}

// TestLongLinesOfOutput checks that long lines are wrapped, or cut and scrolled.
func TestLongLinesOfOutput(t *testing.T) {
	r := withOutput(t, strings.Repeat("-", 75)+"middle"+strings.Repeat("-", 75)+"end\nnext\n")
	r.shows("-----middl", "\ne-----", "end\n", "next")
	r.keys("W")
	r.hides("\ne-----", "end\n")
	r.keys("<right>")
	r.shows("middle")
	r.keys("<right>", "<right>", "<right>")
	r.shows("end")
	r.keys("W")
	r.shows("-----middl", "end")
	r.keys("<esc>")
	r.shows("▸ coder")
}

// TestFindInOutput checks that the search goes from match to match and wraps around, and
// that Esc ends the search before it closes the task.
func TestFindInOutput(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d\n", i)
		if i%40 == 10 {
			text.WriteString("Error: number " + fmt.Sprint(i) + "\n")
		}
	}
	r := withOutput(t, text.String())
	r.shows("line 99")
	r.keys("/", "ERROR", "<enter>")
	r.shows("match 1 of 3", "Error: number 10")
	r.hides("line 99")
	r.keys("n")
	r.shows("match 2 of 3", "Error: number 50")
	r.keys("N", "N")
	r.shows("match 3 of 3", "Error: number 90")
	r.keys("/", "absent", "<enter>")
	r.shows("The output has no match.", "match 0 of 0")
	r.keys("<esc>")
	r.shows("Esc back")
	if did := r.dir.took(); did != "" {
		t.Errorf("the director was asked: %q", did)
	}
}

// TestLongMessageIsWrapped checks that a failure message is shown in full if it fits.
func TestLongMessageIsWrapped(t *testing.T) {
	r := newRig(t, 80, 24)
	r.dir.found = foundTasks()
	r.dir.task = api.Task{QueueID: id("t300"), State: "failed", Reason: "agent_error", Message: strings.Repeat("word ", 30) + "and the cause"}
	r.snapshot(busyBoard())
	r.keys("3", "G", "<enter>")
	r.shows("and the cause")
}

// TestMouse checks that a click selects, another one opens, the wheel scrolls, and a click
// on a page's name opens the page.
func TestMouse(t *testing.T) {
	r := newRig(t, 80, 30)
	r.dir.found = foundTasks()
	r.snapshot(busyBoard())
	click := func(text string) {
		t.Helper()
		for y, line := range strings.Split(r.frame(), "\n") {
			if before, _, ok := strings.Cut(line, text); ok {
				r.send(tea.MouseClickMsg{X: width(before), Y: y, Button: tea.MouseLeft})
				return
			}
		}
		t.Fatalf("the screen does not show %q", text)
	}
	click("writer  ")
	r.shows("▸ writer")
	r.send(tea.MouseWheelMsg{X: 5, Y: 8, Button: tea.MouseWheelUp})
	r.shows("▸ researcher")
	click("2 Capacity")
	r.shows("anthropic-api")
	click("github  ")
	r.shows("▸ github")
	click("3 Tasks")
	click("Run the migration")
	r.keys("c")
	r.shows("…t300 has ended")
	click("1 Lanes")
	click("researcher  ")
	r.shows("Output")
	r.keys("c")
	click("Cancel")
	r.shows("Cancel …t418?")
}

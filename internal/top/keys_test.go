package top

import (
	"errors"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// TestKeys presses keys on the busy board, and checks the director's calls and the
// screen.
func TestKeys(t *testing.T) {
	tests := []struct {
		name  string
		keys  []string
		did   string
		shows string
	}{
		{"cancel asks", []string{"c"}, "", "Cancel …t402?"},
		{"yes cancels", []string{"c", "y"}, "cancel …t402", "Cancelled: …t402"},
		{"another key does not", []string{"c", "n"}, "", "Nothing was changed."},
		{"nor does Enter", []string{"c", "<enter>"}, "", "Nothing was changed."},
		{"nor Esc", []string{"c", "<esc>"}, "", "Nothing was changed."},
		{"a waiting task of the lane", []string{"l", "l", "c", "y"}, "cancel …t411", "Cancelled: …t411"},
		{"to the top of its queue", []string{"l", "l", "t"}, "edit …t411 at 7 to top", "Moved: …t411 (position 1 in agent:coder)"},
		{"what runs has no place", []string{"t"}, "", "…t402 is not waiting: it is working."},
		{"back in the lane", []string{"<right>", "<right>", "<left>", "c", "y"}, "cancel …t409", "Cancelled: …t409"},
		{"the lane below", []string{"<down>", "c", "y"}, "cancel …t418", "Cancelled: …t418"},
		{"an idle lane has no task", []string{"G", "c"}, "", "Select a task first."},
		{"the lane of a queue", []string{"jjjj", "c", "y"}, "cancel …t430", ""},
		{"pause asks", []string{"p"}, "", "Pause agent:coder"},
		{"pause", []string{"p", "<enter>", "<enter>"}, "pause agent:coder", "Paused: agent:coder"},
		{"pause with a reason and a duration", []string{"p", "freeze", "<enter>", "1h30m", "<enter>"}, "pause agent:coder freeze 5400s", "Paused: agent:coder"},
		{"pause for no duration", []string{"p", "<tab>", "soon", "<enter>"}, "", `✗ "soon" is not a duration such as 30m or 2h`},
		{"pause left", []string{"p", "freeze", "<esc>"}, "", "Nothing was changed."},
		{"resume", []string{"jjj", "p"}, "resume agent:deployer", "Resumed: agent:deployer"},
		{"pause of a queue", []string{"jjjj", "p", "<enter>", "<enter>"}, "pause work", "Paused: work"},
		{"submit to the selected agent", []string{"n", "do it", "<enter>", "<enter>"}, `submit "do it" to "coder"`, "Queued: …newt (position 1)"},
		{"submit to any agent", []string{"n", "do it", "<down>", "<ctrl+u>", "<enter>"}, `submit "do it" to ""`, "Queued: …newt (position 1)"},
		{"submit nothing", []string{"n", "<enter>", "<enter>"}, "", "✗ the prompt is empty"},
		{"chat", []string{"m", "hello", "<enter>"}, `chat "hello" to coder`, "Sent to coder: …chat"},
		{"chat with a queue", []string{"jjjj", "m"}, "", "Select an agent first."},
		{"the keys stay beside an answer", []string{"c", "n"}, "", "Enter open · n new task"},
		{"filter", []string{"/", "RUNNING", "<enter>", "c", "y"}, "cancel …t418", `"RUNNING": 1 of 6`},
		{"filter without a match", []string{"/", "nobody"}, "", "No lane matches. Esc shows all."},
		{"filter ended", []string{"/", "triage", "<enter>", "<esc>"}, "", "coder"},
		{"release wants the name", []string{"R", "y", "<enter>"}, "", "That is not coder."},
		{"and takes it", []string{"R", "coder", "<enter>"}, "release coder", "Released: coder (1 task)"},
		{"release left", []string{"R", "coder", "<esc>"}, "", "Nothing was changed."},
		{"nothing to release", []string{"G", "R"}, "", "triage runs nothing"},
		{"a running task is not retried", []string{"r"}, "", "has not ended"},
		{"retry", []string{"3", "G", "r", "y"}, "search , retry …t300", "Queued: …newt (position 2)"},
		{"an ended task is not cancelled", []string{"3", "G", "c"}, "search ", "…t300 has ended: failed."},
		{"capacity has no tasks", []string{"2", "c"}, "", "Select a task first."},
		{"search", []string{"3", "/", "state:failed", "<enter>"}, "search , search state:failed", "Search: state:failed"},
		{"search edited", []string{"3", "/", "ab c", "<ctrl+w>", "d", "<backspace>", "e", "<enter>"}, "search , search ab e", "Search: ab e"},
		{"search left", []string{"3", "/", "abc", "<esc>"}, "search ", "All tasks"},
		{"search ended", []string{"3", "/", "abc", "<enter>", "<esc>"}, "search , search abc, search ", "All tasks"},
		{"letters of a search are no keys", []string{"2", "/", "qcpr"}, "", "Search: qcpr"},
		{"help", []string{"?"}, "", "any key goes back"},
		{"help ends", []string{"?", "q"}, "", "● live"},
		{"tab goes round", []string{"<tab>", "<tab>", "<tab>", "j"}, "search ", "▸ researcher"},
		{"quit", []string{"q"}, "quit", ""},
		{"quit from a question", []string{"c", "<ctrl+c>"}, "quit", ""},
		{"detail", []string{"<enter>"}, "", "Output"},
		{"detail of what waits", []string{"l", "w"}, "", "It waits for agent coder"},
		{"and back", []string{"<enter>", "<esc>"}, "", "▸ coder"},
		{"cancel in the detail", []string{"<enter>", "c", "y"}, "cancel …t402", "Cancelled: …t402"},
		{"release in the detail", []string{"<enter>", "R", "coder", "<enter>"}, "release coder", "Released"},
		{"retry opens the new task", []string{"3", "G", "<enter>", "r", "y"}, "search , retry …t300", "newt"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, 100, 30)
			r.dir.found, r.dir.why = foundTasks(), gates()
			r.dir.task = api.Task{QueueID: id("t411"), State: "pending", Revision: 7}
			r.snapshot(busyBoard())
			r.keys(test.keys...)
			if did := r.dir.took(); did != test.did {
				t.Errorf("the director was asked: %q, want %q", did, test.did)
			}
			r.shows(test.shows)
		})
	}
}

// TestRefusalsAreShown checks that the view shows the director's refusals.
func TestRefusalsAreShown(t *testing.T) {
	for _, keys := range [][]string{{"c", "y"}, {"p", "<enter>", "<enter>"}, {"jjj", "p"}, {"m", "hello", "<enter>"}, {"R", "coder", "<enter>"}, {"3", "G", "r", "y"}} {
		r := newRig(t, 100, 30)
		r.dir.found, r.dir.err = foundTasks(), errors.New("you may not do that: ask \x1b[2Jana")
		r.snapshot(busyBoard())
		r.keys(keys...)
		r.shows("✗ Not ", "you may not do that: ask ana")
		r.now = r.now.Add(noteFor + time.Second)
		r.send(client.LiveEvent{Kind: client.LiveBeat, Live: api.Live{At: r.now}})
		r.send(tickMsg{})
		r.hides("you may not")
	}
}

// TestOldDataIsNotActedOn checks that a dead director disables changes: after 5 s the view
// says that the data is old, after 15 s nothing can be changed, not even with a question
// that was open before.
func TestOldDataIsNotActedOn(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	r.shows("● live")
	r.now = r.now.Add(lateAfter)
	r.shows("reconnecting, data 5s old", "does not answer: the data is 5s old")
	r.hides("need attention")
	r.keys("c") // still possible
	r.shows("Cancel …t402?")
	r.now = r.now.Add(staleAfter - lateAfter)
	r.keys("y")
	r.shows("Nothing was changed: the data is 15s old")
	for _, k := range []string{"c", "r", "p", "R", "n", "m"} {
		r.keys(k)
		r.hides("?\n", "Type ", "Enter next field")
	}
	r.keys("<enter>") // looking is allowed
	r.shows("Output")
	if did := r.dir.took(); did != "" {
		t.Errorf("the director was asked: %s", did)
	}
	r.send(client.LiveEvent{Kind: client.LiveBeat, Live: api.Live{At: r.now}})
	r.shows("● live")
	r.keys("<esc>", "c", "y")
	if did := r.dir.took(); did != "cancel …t402" {
		t.Errorf("after the director is back: %q", did)
	}
}

// TestAgesStopWithTheData checks that ages do not grow while it is unknown whether their
// tasks still run.
func TestAgesStopWithTheData(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	r.shows("11m 02s")
	r.now = r.now.Add(3 * time.Second)
	r.shows("11m 05s")
	r.now = r.now.Add(time.Hour)
	r.shows("11m 07s", "data 1h 00m old")
}

// TestPasteIsNoKeys checks that a text pasted by mistake does nothing.
func TestPasteIsNoKeys(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	r.send(tea.PasteMsg{Content: "q\ncy\n"})
	r.keys("/")
	r.send(tea.PasteMsg{Content: "agent:coder\n\x1b[2J"})
	r.shows("Filter: agent:coder")
	if did := r.dir.took(); did != "" {
		t.Errorf("the director was asked: %s", did)
	}
}

// TestSelectionFollowsItsTask checks that the selection is a task, not a place on the
// screen.
func TestSelectionFollowsItsTask(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	r.keys("l", "l") // …t411 of coder
	l := busyBoard()
	c := l.Agents[1]
	c.Current, c.Line = []api.LiveTask{c.Line[0]}, c.Line[1:]
	r.send(client.LiveEvent{Kind: client.LiveChange, Live: api.Live{At: r.now, Agents: []api.LiveAgent{agent("aaa", "idle", nil, nil), c}}})
	r.shows("▸ coder")
	r.keys("c", "y")
	if did := r.dir.took(); did != "cancel …t411" {
		t.Errorf("the director was asked: %q", did)
	}
	r.send(client.LiveEvent{Kind: client.LiveChange, Live: api.Live{At: r.now, Gone: []string{"agent:coder"}}})
	r.shows("▸ researcher")
	r.hides("▸ coder")
}

// TestSearchErrorIsShown checks a query that the director rejects, and the next one,
// which succeeds.
func TestSearchErrorIsShown(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	r.dir.lost = errors.New("q: agnet is no key: did you mean agent?")
	r.keys("3", "/", "agnet:coder", "<enter>")
	r.shows("✗ q: agnet is no key: did you mean agent?")
	r.dir.lost, r.dir.found = nil, foundTasks()
	r.keys("/", "<ctrl+u>", "agent:coder", "<enter>")
	r.shows("Search: agent:coder · 5 tasks")
	r.hides("agnet")
}

package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

var sizes = []struct{ width, height int }{{80, 24}, {120, 40}}

// TestFrames compares whole screens with testdata.
func TestFrames(t *testing.T) {
	for _, size := range sizes {
		for name, set := range frames {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size.width, size.height), func(t *testing.T) {
				r := newRig(t, size.width, size.height)
				set(r)
				r.golden(fmt.Sprintf("%s-%dx%d", name, size.width, size.height))
			})
		}
	}
}

var frames = map[string]func(r *rig){
	"connecting": func(*rig) {},
	"empty": func(r *rig) {
		r.snapshot(api.Live{Totals: &api.Totals{MaxSize: 50}, Health: &api.Verdict{OK: true, Text: "All is well: no agents, nothing waits"}})
	},
	"lanes": func(r *rig) { r.snapshot(busyBoard()) },
	"lanes-full": func(r *rig) {
		r.snapshot(fullBoard())
		r.keys("jjjjjjjj", "jjjjjjjj")
	},
	"lanes-late": func(r *rig) { r.snapshot(busyBoard()); r.now = r.now.Add(7 * time.Second) },
	"lanes-stale": func(r *rig) {
		r.snapshot(busyBoard())
		r.now = r.now.Add(17 * time.Second)
		r.keys("c")
	},
	"lanes-hostile":   func(r *rig) { r.snapshot(hostileBoard()) },
	"capacity":        func(r *rig) { r.snapshot(busyBoard()); r.keys("2") },
	"capacity-chosen": func(r *rig) { r.snapshot(busyBoard()); r.keys("2", "j", "j") },
	"accounts":        func(r *rig) { r.snapshot(limitedBoard()) },
	"accounts-chosen": func(r *rig) { r.snapshot(limitedBoard()); r.keys("2", "j", "k") },
	"capacity-empty":  func(r *rig) { r.snapshot(api.Live{}); r.keys("2") },
	"tasks": func(r *rig) {
		r.dir.found = foundTasks()
		r.snapshot(busyBoard())
		r.keys("3", "j")
	},
	"search": func(r *rig) {
		r.dir.found = foundTasks()
		r.snapshot(busyBoard())
		r.keys("3", "/", "agent:coder bill")
	},
	"detail-why": func(r *rig) {
		r.snapshot(busyBoard())
		r.dir.task, r.dir.why = api.Task{QueueID: id("t409"), State: "pending", Queue: "agent:coder", CreatedAt: *before(570 * time.Second)}, gates()
		r.keys("jjj", "<enter>") // deployer
		r.keys("<esc>", "g", "l", "<enter>")
	},
	"detail-parked": func(r *rig) {
		r.snapshot(limitedBoard())
		r.dir.task = api.Task{QueueID: id("t510"), State: "parked", Parks: 1}
		r.dir.why = api.Why{QueueID: id("t510"), State: "parked", Summary: "It was parked 20m0s ago and goes on where it stopped: account claude-max is closed until 2026-03-01T12:40:00Z (five_hour)."}
		r.keys("<enter>")
	},
	"tasks-parked": func(r *rig) {
		r.dir.found = api.Search{Tasks: limitedBoard().Agents[0].Line, Total: 2}
		r.snapshot(limitedBoard())
		r.keys("3")
	},
	"detail-log": func(r *rig) {
		r.snapshot(busyBoard())
		r.dir.task = api.Task{QueueID: id("t402"), State: "working", Agent: "coder"}
		r.dir.output = []api.Output{{Text: "go: downloading go1.26\n\x1b[32mok\x1b[0m billing/ledger\r\n--- FAIL: TestRou"}, {Text: "nding\n\ttotal \x1b]52;c;ZXZpbA==\x07off by one\npartial line"}}
		r.keys("<enter>")
	},
	"detail-ended": func(r *rig) {
		r.snapshot(busyBoard())
		r.dir.found = foundTasks()
		end := before(20 * time.Minute)
		r.dir.task = api.Task{
			QueueID: id("t300"), State: "failed", Reason: "exit_nonzero", Message: "the command ended with exit code 2", Agent: "coder", Attempts: 1,
			PromptPreview: "Run the migration", CreatedAt: *before(time.Hour), StartedAt: before(40 * time.Minute), EndedAt: end, Source: "cli",
		}
		r.dir.output = []api.Output{{Text: "migrating\nerror: relation exists\n", Done: true}}
		r.keys("3", "G")
		r.keys("<enter>")
	},
	"confirm":        func(r *rig) { r.snapshot(busyBoard()); r.keys("c") },
	"release":        func(r *rig) { r.snapshot(busyBoard()); r.keys("jj", "R", "writr", "<enter>") },
	"release-paused": func(r *rig) { r.snapshot(drainingBoard()); r.keys("jj", "R") },
	"search-wrong": func(r *rig) {
		r.snapshot(busyBoard())
		_, r.dir.lost = signalbox.ParseQuery("state:bogus", noon)
		r.keys("3", "/", "state:bogus", "<enter>")
	},
	"release-idle":  func(r *rig) { r.snapshot(busyBoard()); r.keys("G", "R") },
	"pause":         func(r *rig) { r.snapshot(busyBoard()); r.keys("p", "release freeze") },
	"filter":        func(r *rig) { r.snapshot(busyBoard()); r.keys("/", "r", "<enter>", "j") },
	"help":          func(r *rig) { r.snapshot(busyBoard()); r.keys("?") },
	"all-paused":    func(r *rig) { r.snapshot(pausedBoard()) },
	"multiple-runs": func(r *rig) { r.snapshot(slotsBoard()) },
}

func foundTasks() api.Search {
	end := before(20 * time.Minute)
	failed := task("t300", "failed", "Run the migration", time.Hour)
	failed.Reason, failed.Agent, failed.EndedAt = "exit_nonzero", "coder", end
	done := task("t299", "completed", "Tidy the changelog", 2*time.Hour)
	done.Agent, done.EndedAt = "writer", end
	b := busyBoard()
	return api.Search{Tasks: append([]api.LiveTask{b.Tasks[0], b.Tasks[1], b.Agents[1].Line[0]}, done, failed), Total: 5}
}

func gates() api.Why {
	return api.Why{QueueID: id("t409"), State: "pending", Summary: "It waits for agent coder, which is busy; it is next.", Gates: []api.Gate{
		{Name: "due", OK: true, Text: "Task is due", Detail: "created 9m30s ago (web)"},
		{Name: "queue_open", OK: true, Text: "Queue is open", Detail: "agent:coder is not paused"},
		{Name: "agent_free", Text: "Agent coder is busy", Detail: "running queue-…t402 for 11m2s; typical 6–14 min", Cure: "wait, or cancel it with: signalbox cancel queue-…t402"},
		{Name: "position", OK: true, Text: "Position 1 in agent:coder"},
	}, ETA: &api.ETA{LowSeconds: 0, HighSeconds: 180, Runs: 40}}
}

func pausedBoard() api.Live {
	l := busyBoard()
	l.Pauses = &[]api.Pause{{By: "ana", Reason: "maintenance", Since: noon}}
	return l
}

// drainingBoard has a paused writer that still runs a task.
func drainingBoard() api.Live {
	l := busyBoard()
	for i := range l.Agents {
		if l.Agents[i].Name == "writer" {
			l.Agents[i].Pause = &api.Pause{Queue: "agent:writer", By: "ana", Since: noon}
		}
	}
	return l
}

func slotsBoard() api.Live {
	tasks := []api.LiveTask{
		runs(task("m001", "working", "First of two", time.Minute), "tests", 59*time.Second),
		runs(task("m002", "cancelling", "Second of two", time.Minute), "tests", 30*time.Second),
		runs(task("m003", "working", "Beside the line", time.Minute), "tests", 10*time.Second),
	}
	tasks[1].Slot, tasks[1].CancelledAt, tasks[2].Mode = 1, before(12*time.Second), "bypass"
	a := agent("tests", "cancelling", tasks, nil)
	a.Slots = 2
	return api.Live{Totals: &api.Totals{Running: 3, Slots: 2, Isolated: 1, MaxSize: 50}, Agents: []api.LiveAgent{a}}
}

// TestFramesAreSafe checks that text from tasks and agents reaches the terminal only as
// text.
func TestFramesAreSafe(t *testing.T) {
	for _, keys := range []string{"", "2", "3", "w", "o", "c", "R", "p"} {
		for _, width := range []int{20, 80, 120} {
			r := newRig(t, width, 30)
			l := hostileBoard()
			r.dir.found = api.Search{Tasks: l.Agents[0].Line}
			r.dir.task = api.Task{QueueID: id("evil"), State: "working", LastError: "\x1b[2J", Message: "\x1b]0;x\x07"}
			r.dir.why = api.Why{Summary: "\x1b[2J", Gates: []api.Gate{{Text: "\x1b[3A", Detail: "\u202e", Cure: "\x9b1J"}}}
			r.dir.output = []api.Output{{Text: "\x1b["}, {Text: "2J\x1b]0;title\x07\u202eevil\x00\n", Done: true}}
			r.snapshot(l)
			r.keys(keys)
			content := r.m.View().Content
			for _, bad := range []string{"\x1b[2J", "\x1b]", "\x07", "\u202e", "\u2028", "\x9b", "\x1b[3A", "\x1b[31mory", "\x00", "\r"} {
				if strings.Contains(content, bad) {
					t.Errorf("keys %q: %q reaches the terminal: %q", keys, bad, content)
				}
			}
			r.frame()
		}
	}
}

// TestNarrow checks that the view can draw in a window of any size, and that no line is
// too long for it.
func TestNarrow(t *testing.T) {
	for i, width := range []int{1, 2, 5, 15, 25, 27, 40, 79, 110, 130, 140, 240, 300} {
		for j, height := range []int{1, 2, 5, 6, 8, 24, 40} {
			for k, keys := range []string{"", "2", "3", "w", "o", "?", "c", "R", "/x", "n", "p", "wj/gate", "oW"} {
				if !soak.On() && (i+j+k)%3 != 0 {
					continue
				}
				r := newRig(t, width, height)
				r.dir.found, r.dir.why = foundTasks(), gates()
				r.snapshot(busyBoard())
				r.keys(keys)
				r.frame()
				if t.Failed() {
					t.Fatalf("%d×%d %q", width, height, keys)
				}
			}
		}
	}
}

// TestColours checks that old data loses its colours, and that no information is in a
// colour alone.
func TestColours(t *testing.T) {
	r := newRig(t, 100, 30)
	r.snapshot(busyBoard())
	lively := r.m.View().Content
	bad := r.m.st.bad.Render("▲ stuck")
	if !strings.Contains(lively, bad) {
		t.Errorf("a stuck agent is not red: %q", lively)
	}
	r.now = r.now.Add(staleAfter)
	if stale := r.m.View().Content; strings.Contains(stale, bad) || !strings.Contains(ansi.Strip(stale), "▲ stuck") {
		t.Errorf("old data looks as if it were live: %q", stale)
	}
}

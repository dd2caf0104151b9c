package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Pause and drain: an agent, a queue or everything, with a reason and an end.
func TestNeedPauseAndDrain(t *testing.T) {
	s := newStage(t, "coder")
	running := s.running("coder", "sleep 10m, first")
	p := s.open("/ui/")
	lane := `[aria-label="Agent coder"]`
	p.click(lane+" button", "Actions for coder")
	p.click("[role=menuitem]", "Pause…")
	p.showsIn("dialog", "It finishes its running tasks and takes no new ones")
	p.fill("Reason", "the disk is being changed")
	p.choose("How long", "15 minutes")
	p.click("dialog button", "Pause")
	p.showsIn(lane+" .state", "draining")
	pause := s.pauses()
	if len(pause) != 1 || pause[0].Queue != "agent:coder" || pause[0].Reason != "the disk is being changed" || pause[0].Until == nil || time.Until(*pause[0].Until) > 15*time.Minute {
		t.Fatalf("the API has %+v", pause)
	}
	waiting := s.task("", "sleep 10m, anybody")
	p.click("button", "Why does "+short(waiting)+" wait?")
	p.showsIn(".card-why", "the disk is being changed")
	if s.state(running) != "working" || s.state(waiting) != "pending" {
		t.Error("running tasks continue, and waiting tasks still wait")
	}
	p.click(lane+" button", "Actions for coder")
	p.click("[role=menuitem]", "Resume")
	p.showsIn(lane+" .state", "running")
	s.until("nothing is paused", func() bool { return len(s.pauses()) == 0 })
	// Everything at once, from the agents page.
	p.click(".nav a", "Agents")
	p.click("button", "Pause everything…")
	p.fill("Reason", "a change of the network")
	p.click("dialog button", "Pause")
	p.showsIn(".page-tools", "Everything is paused")
	if pause := s.pauses(); len(pause) != 1 || pause[0].Queue != "" || pause[0].Until != nil {
		t.Errorf("the API has %+v", pause)
	}
	p.click("button", "Resume everything")
	s.until("nothing is paused", func() bool { return len(s.pauses()) == 0 })
	p.hides(".page-tools", "Everything is paused")
}

// pauses are the active pauses.
func (s *stage) pauses() []api.Pause {
	s.t.Helper()
	queue, err := s.c.Queue(s.ctx(), client.QueueOptions{Limit: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	return queue.Paused
}

// A stuck agent: two clocks distinguish a silent agent from a slow one, and
// the remedy is next to them.
func TestNeedStuckAgent(t *testing.T) {
	s := newStage(t, "coder", "writer")
	stuck := s.running("coder", "sleep 10m, first")
	s.running("writer", "sleep 10m, second")
	defer s.wedge("coder")()
	p := s.open("/ui/agents")
	coder, writer := `[aria-label="Agent coder"]`, `[aria-label="Agent writer"]`
	p.until("both clocks run", `/Last heartbeat \d+s ago Last progress (nothing printed yet|\d+s ago)/.test(e2e.text('`+coder+` .clocks'))`)
	// The agent hangs and does not respond: the page says so. The other agent,
	// which prints as rarely, is healthy.
	p.until("it is no longer shown as running", `["stuck?", "down"].includes(e2e.text('`+coder+` .state'))`)
	p.until("its heartbeat is late", `document.querySelector('`+coder+` .clocks .is-late')`)
	p.showsIn(writer+" .state", "running")
	p.until("that of the other is not", `!document.querySelector('`+writer+` .clocks .is-late')`)
	p.click(".nav a", "Now")
	p.showsIn(".attention-list", "coder")
	p.click(coder+" button", "Force release…")
	p.fill("Type coder to go on", "coder")
	p.click("dialog button", "Take the slot away")
	if task := s.becomes(stuck, "failed"); task.Reason != "released" {
		t.Errorf("it ended because of %s", task.Reason)
	}
}

// Force release: it says which task is lost, which starts next, and that late
// reports are discarded; and it requires the agent's name.
func TestNeedForceRelease(t *testing.T) {
	s := newStage(t, "coder")
	lost := s.running("coder", "sleep 10m, upgrade the service")
	next := s.task("coder", "sleep 10m, fix the test")
	p := s.open("/ui/agents/coder")
	p.showsIn("main", short(next))
	p.click(".task-actions button", "Actions for coder")
	p.click("[role=menuitem]", "Force release…")
	p.showsIn("dialog", "Lost: "+short(lost)+" “sleep 10m, upgrade the service”")
	p.showsIn("dialog", "ends as failed (released)")
	p.showsIn("dialog", "Starts next: "+short(next))
	p.showsIn("dialog", "change nothing")
	button := `[...document.querySelectorAll("dialog button")].find((b) => b.innerText === "Take the slot away").disabled`
	if !has[bool](p, button) {
		t.Error("it can be pressed before the name is typed")
	}
	p.fill("Type coder to go on", "code")
	if !has[bool](p, button) {
		t.Error("half of the name is enough")
	}
	p.fill("Type coder to go on", "coder")
	p.click("dialog button", "Take the slot away")
	if task := s.becomes(lost, "failed"); task.Reason != "released" {
		t.Errorf("it ended because of %s", task.Reason)
	}
	s.becomes(next, "working")
	p.showsIn("main", short(next)+" running")
}

// Who holds capacity: bars, and each slot links to its call.
func TestNeedWhoHoldsCapacity(t *testing.T) {
	s := newStage(t, "coder", "writer")
	holder := s.running("coder", "sleep 1ms, call search_code for 60s")
	s.until("it holds the slot", func() bool { return s.toolQueue(s.d.url, "github").InUse == 1 })
	waiter := s.running("writer", "sleep 1ms, call search_code for 60s")
	s.depth(s.d.url, "github", 1)
	p := s.open("/ui/")
	p.showsIn(".card-capacity", "github 1/1 · 1 waits")
	p.showsIn(".card-capacity", "held by coder")
	p.showsIn(`[aria-label="Agent writer"]`, "for github — 1/1 slots")
	p.click(".card-capacity a", "github")
	p.at("/ui/capacity?name=github")
	p.showsIn("#queue-github", "1/1 · 1 waits")
	p.until("one bar is full", `document.querySelectorAll("#queue-github .bar-used").length === 1 && document.querySelectorAll("#queue-browser .bar").length === 2`)
	p.showsIn("#queue-github .calls", short(waiter))
	p.click("#queue-github .calls a", short(holder))
	p.at("/ui/tasks/" + holder)
	// The holder is stopped: the next call gets the slot.
	p.click(".task-actions button", "Cancel…")
	p.click("dialog button", "Cancel it")
	s.becomes(holder, "cancelled")
	p.goTo("/ui/capacity")
	p.until("the waiter holds it", `e2e.text("#queue-github").includes("Held by `+short(waiter)+`")`)
}

// An admin changes a capacity while calls hold it: additional slots go to waiting calls at
// once, removed ones drain, whether the change comes from the page or the command line.
func TestNeedChangeCapacity(t *testing.T) {
	s := newStage(t, "coder", "writer", "tester")
	holder := s.running("coder", "sleep 1ms, call search_code for 60s")
	s.until("it holds the slot", func() bool { return s.toolQueue(s.d.url, "github").InUse == 1 })
	waiter := s.running("writer", "sleep 1ms, call search_code for 60s")
	s.depth(s.d.url, "github", 1)
	p := s.open("/ui/capacity")
	p.showsIn("#queue-github", "1/1 · 1 waits")
	p.click("#queue-github button", "Change")
	p.showsIn("dialog", "no other gets one until fewer are held")
	p.allow("status of 400")
	p.fill("Calls at once", "0")
	p.click("dialog button", "Change")
	p.showsIn("dialog .error", "concurrent must be 1 to 1000000, not 0")
	p.fill("Calls at once", "2")
	p.click("dialog button", "Change")
	p.showsIn("#queue-github", "2/2")
	p.showsIn("#queue-github .calls", short(waiter))
	if q := s.toolQueue(s.d.url, "github"); q.Concurrent != 2 || q.InUse != 2 || q.Depth != 0 {
		t.Errorf("the API has %+v", q)
	}
	if got := s.want(0, "tools", "set", "github", "--concurrent", "1", "--director", s.d.url); !strings.Contains(got.out, "github: 1 call at once, before 2") || !strings.Contains(got.err, "2 of 1 in use: the queue drains") {
		t.Errorf("%+v", got)
	}
	p.showsIn("#queue-github", "2 of 1 in use: drains")
	third := s.running("tester", "sleep 1ms, call search_code for 60s")
	s.depth(s.d.url, "github", 1)
	for _, ends := range []string{holder, waiter} {
		if q := s.toolQueue(s.d.url, "github"); q.Depth != 1 {
			t.Errorf("%s has a slot while two of one are held: %+v", third, q)
		}
		s.want(0, "cancel", ends, "--director", s.d.url)
		s.becomes(ends, "cancelled")
	}
	p.showsIn("#queue-github .calls", short(third))
	p.hides("#queue-github", "drains")
	p.click("summary", "Tools of")
	p.showsIn(".servers details", "search_code")
}

package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/client"
)

// These tests are the table of needs: one test for each question that users of
// such a page have. Each performs the page's main action in a real browser,
// and checks the result with the API.

// What runs now: a lane for each agent, with the running block, then its
// queue.
func TestNeedWhatRunsNow(t *testing.T) {
	s := newStage(t, "coder", "writer")
	running := s.running("coder", "sleep 10m, upgrade the billing service")
	waiting := s.task("coder", "sleep 10m, fix the login test")
	p := s.open("/ui/")
	lane := `[aria-label="Agent coder"]`
	p.showsIn(lane+" .block", short(running))
	p.showsIn(lane+" .block", "upgrade the billing service")
	p.showsIn(lane+" .state", "running")
	p.showsIn(lane+" .chips", "1 sleep 10m, fix the login test")
	p.until("its id is shown too", fmt.Sprintf(`document.querySelector('%s .chip').title.endsWith(%q)`, lane, waiting))
	p.showsIn(`[aria-label="Agent writer"]`, "next task starts at once")
	p.showsIn(".figures", "1 running · 1 waiting")
	p.showsIn(".depth", "Queue 1/")
	p.live()
	// Changes appear without a reload.
	next := s.running("writer", "sleep 10m, write it down")
	p.showsIn(`[aria-label="Agent writer"] .block`, short(next))
	p.showsIn(".figures", "2 running · 1 waiting")
	p.click(lane+" .block a", short(running))
	p.at("/ui/tasks/" + running)
	p.showsIn(".page-head .state", "running")
	p.showsIn(".task-id", running)
}

// Who waits behind whom: numbered chips with live waiting times, and a link
// to the blocker.
func TestNeedWhoWaitsBehindWhom(t *testing.T) {
	s := newStage(t, "coder")
	running := s.running("coder", "sleep 10m, first")
	s.task("coder", "sleep 10m, second")
	third := s.task("coder", "sleep 10m, third")
	p := s.open("/ui/")
	chips := `[aria-label="Agent coder"] .chips`
	p.until("both wait in order", fmt.Sprintf(`/1 sleep 10m, second \d+s 2 sleep 10m, third \d+s/.test(e2e.text('%s'))`, chips))
	before := p.text(chips)
	p.until("the waits go on", fmt.Sprintf("e2e.text('%s') !== %s", chips, jsText(before)))
	p.click(chips+" a", "third")
	p.showsIn(".card-why", "Picked: "+short(third))
	p.showsIn(".card-why", "coder")
	// The blocker is one click away.
	p.click(".why-links a", short(running))
	p.at("/ui/tasks/" + running)
	if task, err := s.c.Task(s.ctx(), third); err != nil || task.Position != 2 {
		t.Errorf("the API has it at %d: %v", task.Position, err)
	}
}

// How long until mine: a range from the last runs of that agent, or unknown
// if there are fewer than five.
func TestNeedHowLongUntilMine(t *testing.T) {
	s := newStage(t)
	s.agents["coder"] = s.agent("coder", s.d.url, "--slots", "5")
	for range 4 {
		s.completed(s.c, s.task("coder", "sleep 1ms"))
	}
	var held string
	for range 5 {
		held = s.running("coder", "sleep 10m, hold")
	}
	waiting := s.task("coder", "sleep 1ms, mine")
	p := s.open("/ui/tasks/" + waiting)
	p.showsIn(".why", "unknown: fewer than 5 runs")
	p.click(".task-actions button", "Cancel…") // the main action of the page of a waiting task
	p.click("dialog button", "Cancel it")
	s.becomes(waiting, "cancelled")
	// After the fifth run there is an estimate.
	if _, err := s.c.Cancel(s.ctx(), held); err != nil {
		t.Fatal(err)
	}
	s.completed(s.c, s.task("coder", "sleep 900ms"))
	s.running("coder", "sleep 10m, hold")
	waiting = s.task("coder", "sleep 1ms, mine again")
	p.goTo("/ui/tasks/" + waiting)
	p.until("a range", `/Starts (within seconds|in about \d+(–\d+)? (s|min)) \(from the last \d+ runs\)/.test(e2e.text(".why"))`)
	if task, err := s.c.Task(s.ctx(), waiting); err != nil || task.ETA == nil || task.ETA.Runs < 5 {
		t.Errorf("the API: %+v, %v", task.ETA, err)
	}
}

var anyNumber = regexp.MustCompile(`\d+(\.\d+)?( ?(ms|s|m|h|min))?( \d+s)?`)

// Why is it not running: ordered gates with numbers and a remedy, in the same
// words on the page, on the command line, in the API and over MCP.
func TestNeedWhyIsItNotRunning(t *testing.T) {
	s := newStage(t, "coder")
	running := s.running("coder", "sleep 10m, first")
	waiting := s.task("coder", "sleep 10m, second")
	p := s.open("/ui/")
	p.click("button", "Why does "+short(waiting)+" wait?")
	p.showsIn(".card-why", short(running))
	why, err := s.c.Why(s.ctx(), waiting)
	if err != nil {
		t.Fatal(err)
	}
	said := s.want(0, "why", waiting, "--director", s.d.url).out
	gates := has[[]string](p, `[...document.querySelectorAll(".why-gate")].map((g) => e2e.plain(g.innerText))`)
	if len(gates) != len(why.Gates) || len(gates) < 3 {
		t.Fatalf("the page has %d gates, the API %d: %q", len(gates), len(why.Gates), gates)
	}
	same := func(s string) string { return anyNumber.ReplaceAllString(strings.Join(strings.Fields(s), " "), "N") }
	for i, gate := range why.Gates {
		mark := map[bool]string{true: "✓", false: "✗"}[gate.OK]
		if !strings.HasPrefix(gates[i], mark) || !strings.Contains(same(gates[i]), same(gate.Text)) {
			t.Errorf("gate %d is %q in the page, %s %q in the API", i+1, gates[i], mark, gate.Text)
		}
		if !strings.Contains(same(said), mark+" "+same(gate.Text)) {
			t.Errorf("gate %d, %s %q, is not on the command line:\n%s", i+1, mark, gate.Text, said)
		}
		if !gate.OK && gate.Cure != "" && !strings.Contains(same(gates[i]), same(gate.Cure)) {
			t.Errorf("the cure %q is not in the page: %q", gate.Cure, gates[i])
		}
	}
	// An agent that asks over MCP gets the same text.
	told := s.over(s.d.url, modernEra).says("task_status", object{"task_id": waiting})
	if !strings.Contains(told, strings.TrimSuffix(why.Summary, ".")) {
		t.Errorf("%q is not in the answer over MCP: %s", why.Summary, told)
	}
	// The key j goes to the next waiting task.
	third := s.task("coder", "sleep 10m, third")
	p.showsIn(`[aria-label="Agent coder"] .chips`, "third")
	p.keyUntil("j", "the next one is picked", fmt.Sprintf(`e2e.text(".card-why").includes("Picked: " + %s)`, jsText(short(third))))
	// The page updates by itself: the reasons are the current ones.
	if _, err := s.c.Cancel(s.ctx(), third); err != nil {
		t.Fatal(err)
	}
	p.showsIn(".card-why", "It has ended")
}

// Pressure over time: running, waiting, oldest; dragging over the chart shows
// the tasks of that period.
func TestNeedPressure(t *testing.T) {
	s := newStage(t, "coder")
	p := s.open("/ui/")
	running := s.running("coder", "sleep 10m, first")
	s.task("coder", "sleep 10m, second")
	p.until("the chart is there", `document.querySelector(".card-pressure .u-over")`)
	p.until("its words say what it shows", `/The last 30 minutes: 1 waiting now, at most \d+; 1 running now, at most \d+; the oldest waits \d+/.test(document.querySelector(".card-pressure .chart").ariaLabel)`)
	p.showsIn(".card-pressure .legend", "1 waiting 1 running oldest")
	p.drag(".card-pressure .u-over", 0.05, 0.95)
	p.at("/ui/tasks?q=since:")
	if q := p.path(); !regexp.MustCompile(`q=since:\d{4}-.*Z until:\d{4}-.*Z$`).MatchString(q) {
		t.Errorf("the query is %s", q)
	}
	query := strings.TrimPrefix(p.path(), "/ui/tasks?q=")
	found, err := s.c.Search(s.ctx(), query, client.SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.showsIn(".page-head", fmt.Sprint(found.Total, " task"))
	p.click(".chip", "all")
	p.showsIn(".table-tasks", short(running))
}

// Is it healthy: one sentence with cause and next action, the same on the
// command line; the tab's title shows that a user is needed.
func TestNeedIsItHealthy(t *testing.T) {
	s := newStage(t, "coder", "writer")
	p := s.open("/ui/")
	p.showsIn(".attention", "All is well: 2 agents are connected.")
	if said := s.want(0, "status", "--director", s.d.url).out; !strings.HasPrefix(said, "✓ All is well: 2 agents are connected.") {
		t.Errorf("the command line: %s", said)
	}
	p.until("the title", `document.title === "Signalbox · Now" || document.title === "Signalbox"`)
	s.agents["writer"].kill()
	s.task("writer", "sleep 10m, it waits for its agent")
	p.until("the attention line names it", `/\bwriter\b/.test(e2e.text(".attention-list"))`)
	p.until("the title counts", `/^\([1-9]\d*\) Signalbox/.test(document.title)`)
	s.until("the page and the command line agree", func() bool {
		status, err := s.c.Status(s.ctx())
		if err != nil || status.Health == nil || status.Health.OK {
			return false
		}
		said := s.want(0, "status", "--director", s.d.url).out
		shown := p.text(".attention-list")
		cause := status.Health.Attention[0]
		same := func(s string) string { return anyNumber.ReplaceAllString(strings.Join(strings.Fields(s), " "), "N") }
		return strings.Contains(same(strings.SplitN(said, "\n", 2)[0]), same(status.Health.Text)) && strings.Contains(same(shown), same(cause.Subject+" "+cause.Text)) &&
			strings.Contains(shown, cause.Cure) && cause.Cure != ""
	})
	p.click(".attention-list a", "writer")
	p.at("/ui/agents/writer")
	p.showsIn("main", "Start it again")
	s.agents["writer"] = s.agent("writer", s.d.url, "--addr", freePort(t))
	p.showsIn(".page-head .state", "running")
}

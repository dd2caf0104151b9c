package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var liveReaders = regexp.MustCompile(`(?m)^signalbox_live_readers(?:\{[^}]*\})? (\d+)`)

// readers is the number of clients that read the director's live stream.
func (s *stage) readers() int {
	s.t.Helper()
	text, err := s.c.Metrics(s.ctx())
	if err != nil {
		s.t.Fatal(err)
	}
	found := liveReaders.FindStringSubmatch(text)
	if found == nil {
		s.t.Fatalf("the metrics name no readers:\n%s", text)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// However many tabs a browser has, the director serves it a single stream. A
// browser opens six connections to a host, so the seventh tab would hang
// otherwise.
func TestTabsShareOneStream(t *testing.T) {
	s := newStage(t, "coder")
	w := s.ownWindow(s.d.url)
	tabs := []*tab{w.tab("/ui/"), w.tab("/ui/tasks")}
	for _, p := range tabs {
		p.live()
	}
	if n := s.readers(); n != 1 {
		t.Errorf("two tabs have %d streams", n)
	}
	for _, path := range []string{"/ui/agents", "/ui/capacity", "/ui/schedules", "/ui/audit", "/ui/agents/coder", "/ui/"} {
		tabs = append(tabs, w.tab(path))
	}
	for _, p := range tabs {
		p.live()
	}
	if n := s.readers(); n != 1 {
		t.Errorf("eight tabs have %d streams", n)
	}
	// All eight tabs get the events, and the eighth can still make requests.
	s.running("coder", "sleep 10m, first")
	waiting := s.task("coder", "sleep 10m, second")
	for _, p := range tabs {
		p.showsIn(".depth", "Queue 1/")
	}
	tabs[7].click(".nav a", "Tasks")
	tabs[7].showsIn(".table-tasks", short(waiting))
	// The stream ends with the last tab.
	for _, p := range slices.Backward(tabs) {
		if err := chromedp.Cancel(p.ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.until("there is no reader", func() bool { return s.readers() == 0 })
}

// A killed director is shown as dead within five seconds: the numbers are grey,
// and irreversible actions are disabled. When it is back, everything is live
// again, and nothing outdated is left.
func TestDeadDirectorIsShown(t *testing.T) {
	s := newStage(t, "coder")
	s.running("coder", "sleep 10m, first")
	waiting := s.task("coder", "sleep 10m, second")
	w := s.ownWindow(s.d.url)
	now, tasks, agents := w.tab("/ui/"), w.tab("/ui/tasks?q=state%3Apending"), w.tab("/ui/agents")
	all := []*tab{now, tasks, agents}
	for _, p := range all {
		p.allow("net::ERR_", "Failed to load resource")
		p.live()
	}
	now.showsIn(".card-queue", short(waiting))
	tasks.showsIn(".table-tasks .table-body", short(waiting))
	agents.showsIn(`[aria-label="Agent coder"]`, "sleep 10m, first")
	s.d.kill()
	killed := time.Now()
	for _, p := range all {
		p.until("it is said to be dead", `document.querySelector(".app.stale") && document.querySelector(".banner[role=alert]") && e2e.text(".pill").startsWith("no connection")`)
	}
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("the pages said so after %s", took)
	}
	now.showsIn(".banner", "The director does not answer")
	now.until("the numbers are grey", `getComputedStyle(document.querySelector("main")).filter.includes("grayscale")`)
	now.until("the title says it", `document.title.startsWith("(!)")`)
	for _, p := range all {
		off := has[[]string](p, `e2e.all("button").filter((b) => /^(Cancel|Force release|Pause everything|Retry|New task)/.test(e2e.name(b)) && !b.disabled).map(e2e.name)`)
		if len(off) > 0 {
			t.Errorf("these can still be pressed: %q", off)
		}
	}
	agents.click("button", "Actions for coder")
	if on := has[[]string](agents, `e2e.all("[role=menuitem]").filter((b) => b.getAttribute("aria-disabled") !== "true").map(e2e.name)`); len(on) > 0 {
		t.Errorf("these entries can still be chosen: %q", on)
	}
	agents.keys(kb.Escape)
	// Ages do not advance while the director is dead.
	shown := now.text(".card-queue")
	now.until("a while", "(window.looks = (window.looks ?? 0) + 1) > 60")
	if after := now.text(".card-queue"); after != shown {
		t.Errorf("what is shown goes on: %q, then %q", shown, after)
	}
	s.start()
	for _, p := range all {
		p.live()
		p.until("it is not grey", `!document.querySelector(".app.stale") && !document.querySelector(".banner")`)
	}
	now.showsIn(".card-queue", short(waiting))
	now.click("button", "Cancel "+short(waiting))
	s.becomes(waiting, "cancelled")
	now.showsIn(".card-queue", "Nothing waits.")
	tasks.until("it is gone there too", fmt.Sprintf("!e2e.text('.table-tasks .table-body').includes(%s)", jsText(short(waiting))))
}

// In every drawn frame, at most as many tasks run as there are slots, and the
// numbers of one moment are consistent.
func TestCountsAreNeverWrong(t *testing.T) {
	s := newStage(t, "coder", "writer")
	p := s.open("/ui/")
	p.live()
	p.until("both agents are there", `document.querySelectorAll(".lane .state").length >= 2`)
	has[any](p, `(window.wrong = [], window.frames = 0, window.most = 0, new MutationObserver(() => {
		frames++;
		const [, running, waiting] = /(\d+) running · (\d+) waiting/.exec(e2e.plain(document.querySelector(".figures")?.innerText)) ?? [];
		const blocks = document.querySelectorAll('[aria-label^="Agent"] .block:not(.block-none)').length;
		const [, depth] = /Queue (\d+)/.exec(document.querySelector(".depth").innerText) ?? [];
		most = Math.max(most, Number(running));
		if (Number(running) > 2) wrong.push(running + " run in 2 slots");
		if (Number(running) !== blocks) wrong.push(running + " run, " + blocks + " blocks");
		if (waiting !== depth) wrong.push(waiting + " wait, the header says " + depth);
		for (const lane of document.querySelectorAll('[aria-label^="Agent"]')) {
			if (lane.querySelectorAll(".block:not(.block-none)").length > 1) wrong.push("two run in one slot");
		}
	}).observe(document.body, { childList: true, subtree: true, characterData: true }), 1)`)
	var last string
	for i := range 45 { // as many as may wait
		last = s.task([]string{"coder", "writer", ""}[i%3], fmt.Sprintf("sleep %dms, task %d", 20+i%7*15, i))
	}
	s.completed(s.c, last)
	p.until("all have ended", `/0 running · 0 waiting/.test(e2e.text(".figures"))`)
	if wrong := has[[]string](p, "[...new Set(wrong)].slice(0, 10)"); len(wrong) > 0 {
		t.Errorf("%d frames, wrong: %q", has[int](p, "frames"), wrong)
	}
	if frames, most := has[int](p, "frames"), has[int](p, "most"); frames < 10 || most < 1 {
		t.Errorf("only %d frames were seen, at most %d running", frames, most)
	}
	p.showsIn(".figures", "45 done")
}

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// Ten thousand tasks, in make test two thousand: only the rows in sight exist,
// scrolling goes on from page to page, and a search answers.
func TestTenThousandTasks(t *testing.T) {
	many := soak.Pick(2_000, 10_000)
	s := newStage(t)
	s.d.stop()
	s.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "20000"
	s.start()
	s.crowd(many)
	found := s.submit(s.c, api.SubmitRequest{Prompt: "the needle in it"})
	p := s.open("/ui/tasks")
	p.showsIn(".page-head", fmt.Sprintf("%d,0", many/1000))
	rows := `document.querySelectorAll(".table-tasks .row").length`
	p.until("rows are there", rows+" > 5")
	nodes := `document.querySelectorAll("*").length`
	if n := has[int](p, nodes); n > 3000 {
		t.Errorf("the document has %d elements", n)
	}
	seen := has[string](p, `document.querySelector(".table-tasks .row a").title`)
	known := `Number(document.querySelector(".table-tasks").ariaRowCount)`
	for range 8 { // each fetches at least a page of 200, so that there are more than eight
		before := has[int](p, known)
		has[any](p, "(scrollTo(0, document.documentElement.scrollHeight), 1)")
		p.until("more rows came", fmt.Sprintf("%s > %d", known, before))
	}
	p.until("other rows are in sight", fmt.Sprintf(`document.querySelector(".table-tasks .row a") && document.querySelector(".table-tasks .row a").title !== %s`, jsText(seen)))
	if n := has[int](p, rows); n > 80 {
		t.Errorf("%d rows exist", n)
	}
	if n := has[int](p, nodes); n > 3000 {
		t.Errorf("the document has %d elements when it was scrolled", n)
	}
	p.fill("Search tasks", "needle")
	p.showsIn(".page-head", "1 task")
	p.showsIn(".table-tasks .table-body", short(found))
	p.click(".nav a", "Now")
	p.showsIn(".card-queue", fmt.Sprintf("%d of 20000 waiting", many+1))
	p.showsIn(".depth", fmt.Sprintf("Queue %d/20000", many+1))
}

// The next page of a long list is asked for while a change makes the first one
// be asked for anew, which ends that request: the list does not stay short.
func TestALongListGoesOnAfterAChange(t *testing.T) {
	s := newStage(t)
	s.d.stop()
	s.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "1000"
	s.start()
	s.crowd(500)
	p := s.open("/ui/tasks")
	p.showsIn(".page-head", "500")
	has[any](p, `(() => {
		const real = fetch;
		window.fetch = (path, options) => {
			if (window.held || !path.includes("after=")) return real(path, options);
			window.held = true;
			return new Promise((_, no) => options.signal.addEventListener("abort", () => { window.ended = true; no(new DOMException("ended", "AbortError")); }));
		};
		scrollTo(0, document.documentElement.scrollHeight);
		return 1;
	})()`)
	p.until("the next page is asked for", "window.held === true")
	before := has[int](p, "document.documentElement.scrollHeight")
	s.submit(s.c, api.SubmitRequest{Prompt: "one more"})
	p.until("the request has ended", "window.ended === true")
	p.until("more came", fmt.Sprintf("document.documentElement.scrollHeight > %d", before+100))
}

// crowd submits many tasks that nobody takes.
func (s *stage) crowd(n int) {
	s.t.Helper()
	next := make(chan int)
	submitters := &http.Client{Transport: asOwner{&http.Transport{MaxIdleConnsPerHost: 16}}}
	defer submitters.CloseIdleConnections()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range next {
				body, _ := json.Marshal(api.SubmitRequest{Prompt: fmt.Sprintf("sleep 1s, report %d", i)})
				resp, err := submitters.Post(s.d.url+"/api/queue/task", "application/json", bytes.NewReader(body))
				if err != nil || resp.StatusCode != http.StatusCreated {
					s.t.Errorf("submit: %v, %v", resp, err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
				resp.Body.Close()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// canary is what must not run wherever people and agents can write.
const canary = `<script>window.canary="script"</script><img src=x onerror="window.canary='img'"><svg onload="canary='svg'"></svg><a href="javascript:canary='link'">here</a>`

// What people and agents wrote is text, whatever it looks like: prompt, output,
// answer, message, reason and schedule.
func TestHostileTextIsText(t *testing.T) {
	s := newStage(t)
	s.speaker("builder", `printf '%s\n' "$1" 'error: '"$1"; exit 3`)
	s.hire("coder")
	failed := s.end(s.c, s.task("builder", canary)).QueueID
	completed := s.completed(s.c, s.task("coder", "sleep 1ms "+canary)).QueueID
	running := s.running("coder", "sleep 10m "+canary)
	waiting := s.task("coder", canary)
	if _, err := s.c.Pause(s.ctx(), pauseOf("agent:builder", canary)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.CreateSchedule(s.ctx(), api.NewSchedule{Name: "nightly", CronExpression: "0 3 * * *", Message: canary, Description: canary}); err != nil {
		t.Fatal(err)
	}
	p := s.open("/ui/")
	shown := canary[:len("<script>window.canary")]
	places := []struct{ path, selector string }{
		{"/ui/", ".card-lanes"}, {"/ui/", ".card-queue"}, {"/ui/", ".card-lines, .card-lanes"},
		{"/ui/tasks", ".table-tasks"}, {"/ui/tasks/" + failed, ".output-box"}, {"/ui/tasks/" + failed, ".output-failure"},
		{"/ui/tasks/" + completed, "#result-head, .stack"}, {"/ui/tasks/" + running, "h1"}, {"/ui/tasks/" + waiting, ".text"},
		{"/ui/agents", ".agents"}, {"/ui/agents/coder", "main"}, {"/ui/agents/builder", ".note"}, {"/ui/schedules", ".listing-schedules"}, {"/ui/audit", ".audit"},
	}
	for i, place := range places {
		if i > 0 && place.path != places[i-1].path {
			p.goTo(place.path)
		}
		p.showsIn(place.selector, shown)
		if got := has[any](p, "window.canary"); got != nil {
			t.Fatalf("%s: it ran: %v", place.path, got)
		}
		if n := has[int](p, `document.querySelectorAll('main script, main img, main svg[onload], main a[href^="javascript"], [onerror], [onload]').length`); n > 0 {
			t.Errorf("%s: %d elements came out of it", place.path, n)
		}
	}
	// In dialogs and notes as well, and as what was typed into a search.
	p.goTo("/ui/tasks/" + failed)
	p.click(".task-actions button", "Retry…")
	p.until("the prompt is in the field", fmt.Sprintf(`document.querySelector("dialog textarea").value.startsWith(%s)`, jsText(shown)))
	p.allow("/api/search?")
	p.goTo("/ui/tasks?q=" + "%3Cimg+src%3Dx+onerror%3Dcanary%3D1%3E:x")
	p.until("it stands in the box", `document.querySelector("#search")?.value.startsWith("<img")`)
	p.goTo("/ui/agents/%3Cscript%3Ecanary=1%3C%2Fscript%3E")
	p.allow("404")
	p.showsIn("main", "<script>canary=1</script>")
	if got := has[any](p, "window.canary"); got != nil {
		t.Errorf("it ran: %v", got)
	}
}

// axe is the program that looks for what keeps people from using a page.
func axe(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SIGNALBOX_TEST_NPM")
	if dir == "" {
		dir = filepath.Join("..", ".cache", "npm")
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		lacking(t, "axe-core is not installed: run make setup and set SIGNALBOX_TEST_NPM to .cache/npm")
	}
	return string(text)
}

// What axe looks at: WCAG, levels A and AA; or what of that is about colours,
// which is all that the dark changes.
const (
	wcagRules   = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`
	colourRules = `{ type: "rule", values: ["color-contrast", "link-in-text-block"] }`
)

// violations are what axe finds against rules, as the page stands.
func (p *tab) violations(rules string) []string {
	p.t.Helper()
	has[any](p, `(window.axed = null, axe.run(document, { runOnly: `+rules+`, resultTypes: ["violations"] }).then((r) => {
		axed = r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + " " + n.html.slice(0, 140) + " " + (n.any[0]?.message ?? n.all[0]?.message ?? "")));
	}, (error) => { axed = [String(error)]; }), 1)`)
	p.until("axe has looked", "window.axed")
	return has[[]string](p, "axed")
}

// Everybody can use the pages: no violation of WCAG A and AA on any of them, nor
// in their dialogs, in light and dark and as wide as a phone; and nothing
// scrolls sideways there.
func TestEverybodyCanUseThePages(t *testing.T) {
	everybody(t, tabOptions{}, wcagRules, soak.Pick(colourRules, wcagRules))
}

func TestEverybodyCanUseThePagesOnAPhone(t *testing.T) {
	everybody(t, tabOptions{width: 390, height: 844}, wcagRules, "")
}

// everybody looks at all pages in the light and, where there are rules for it, in
// the dark.
func everybody(t *testing.T, look tabOptions, light, dark string) {
	t.Helper()
	look.tool = axe(t)
	s := newStage(t, "coder", "writer")
	failed := s.end(s.c, s.task("coder", "sleep 1ms, fail")).QueueID
	written := s.completed(s.c, s.task("writer", "sleep 1ms, write it down in a sentence that is as long as those of people are"))
	talk := "/ui/agents/writer/conversations/" + written.SessionID
	running := s.running("coder", "sleep 1ms"+strings.Repeat(", call search_code for 1m", 20)) // a minute is the most that one call waits
	waiting := s.task("coder", "sleep 10m, upgrade the billing service")
	if _, err := s.c.Pause(s.ctx(), pauseOf("agent:writer", "the disk is being changed")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.CreateSchedule(s.ctx(), api.NewSchedule{Name: "nightly", CronExpression: "0 3 * * *", Message: "Tidy up", Timezone: "Europe/Berlin"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.TriggerSchedule(s.ctx(), "nightly"); err != nil {
		t.Fatal(err)
	}
	type view struct {
		path, there string
		dialog      func(*tab)
	}
	press := func(selector, words string) func(*tab) {
		return func(p *tab) {
			p.click(selector, words)
			p.until("a dialog or menu", `document.querySelector("dialog[open], [role=menu]")`)
		}
	}
	views := []view{
		{"/ui/", short(waiting), nil}, {"/ui/", short(waiting), func(p *tab) { p.keyUntil("n", "the dialog", `document.querySelector("dialog[open]")`) }},
		{"/ui/", short(waiting), func(p *tab) { p.keyUntil("?", "the dialog", `document.querySelector("dialog[open]")`) }},
		{"/ui/", short(waiting), press("button", "Actions for coder")}, {"/ui/", short(waiting), press("button", "Pause everything…")},
		{"/ui/tasks", short(failed), nil}, {"/ui/tasks/" + running, "Prompt", nil}, {"/ui/tasks/" + running, "Prompt", press("button", "Cancel…")},
		{"/ui/tasks/" + failed, "The command failed", nil}, {"/ui/tasks/" + failed, "Retry…", press("button", "Retry…")}, {"/ui/tasks/" + waiting, "Why is it", nil},
		{"/ui/agents", "Last heartbeat", nil}, {"/ui/agents/coder", "Last 1 runs", nil}, {"/ui/agents/writer/conversations/new", "Ctrl+Enter", nil}, {talk, "write it down", nil}, {"/ui/capacity", "search_code", nil},
		{"/ui/schedules", "nightly", nil}, {"/ui/schedules", "nightly", press("button", "New schedule")}, {"/ui/schedules/nightly", "Tidy up", nil},
		{"/ui/usage", "Tokens by day", nil}, {"/ui/usage?by=user&days=7", "Share", nil}, {"/ui/audit", "Chain", nil}, {"/ui/nowhere", "", nil}, {"/login", "You are logged in as the owner", nil},
	}
	p := s.ownWindow(s.d.url).tabWith("/ui/", look)
	for _, v := range views {
		p.goTo(v.path)
		p.until(v.path+" is there", fmt.Sprintf(`e2e.text("main").includes(%s) && !document.querySelector("[aria-busy=true]")`, jsText(v.there)))
		if v.dialog != nil {
			v.dialog(p)
		}
		if wide := has[[]string](p, sideways); len(wide) > 0 {
			t.Errorf("%s: it scrolls sideways because of %q", v.path, wide)
		}
		if over := has[[]string](p, overflowing); len(over) > 0 {
			t.Errorf("%s: rows reach into the next until they are drawn: %q", v.path, over)
		}
		for _, found := range p.violations(light) {
			t.Errorf("%s (with a dialog: %t): %s", v.path, v.dialog != nil, found)
		}
		if dark != "" {
			p.dark(true)
			for _, found := range p.violations(dark) {
				t.Errorf("%s (with a dialog: %t), in the dark: %s", v.path, v.dialog != nil, found)
			}
			p.dark(false)
		}
	}
}

// overflowing names rows of long lists that are higher than the room that is
// kept for them until they are drawn, as a copy shows that is never drawn.
const overflowing = `[...document.querySelectorAll("li")].filter((li) => getComputedStyle(li).contentVisibility === "auto").flatMap((li) => {
	const copy = li.cloneNode(true);
	copy.style.contentVisibility = "hidden";
	li.after(copy);
	const kept = copy.getBoundingClientRect().height, needed = li.getBoundingClientRect().height;
	copy.remove();
	return kept + 1 < needed ? [li.className + ": " + kept + "px of " + needed + "px"] : [];
})`

// sideways names what reaches beyond the right edge, where the page can be
// scrolled there.
const sideways = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
	[...document.querySelectorAll("main *, header *, dialog *")].filter((el) => el.getBoundingClientRect().right > innerWidth + 1).slice(0, 4).map((el) => el.outerHTML.slice(0, 100))`

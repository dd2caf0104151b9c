package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// axe is the program that checks pages for accessibility.
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

// wcagRules are the checked rules: WCAG, levels A and AA.
const wcagRules = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`

// violations are axe's violations of rules in the current state of the page.
func (p *tab) violations(rules string) []string {
	p.t.Helper()
	has[any](p, `(window.axed = null, axe.run(document, { runOnly: `+rules+`, resultTypes: ["violations"] }).then((r) => {
		axed = r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + " " + n.html.slice(0, 140) + " " + (n.any[0]?.message ?? n.all[0]?.message ?? "")));
	}, (error) => { axed = [String(error)]; }), 1)`)
	p.until("axe has looked", "window.axed")
	return has[[]string](p, "axed")
}

// look is a way in which a user sees the pages.
type look struct {
	width, height int64
	colours       string // light, dark or forced
}

func (l look) String() string { return fmt.Sprintf("%d px wide, %s", l.width, l.colours) }

// allLooks are all widths in all colours. The first two are the most common.
func allLooks() (all []look) {
	for _, colours := range []string{"light", "dark", "forced"} {
		for _, size := range [][2]int64{{1440, 900}, {390, 844}, {320, 700}, {768, 1024}, {1024, 768}} {
			all = append(all, look{size[0], size[1], colours})
		}
	}
	return all
}

// looksOf are the looks for the n-th view: in make soak all, otherwise one of the first two
// and one of the others.
func looksOf(n int) []look {
	all := allLooks()
	if soak.On() {
		return all
	}
	others := all[2:]
	return []look{all[n%2], others[n%len(others)]}
}

// usableIn checks the n-th view in its looks. axe takes a third of a second of CPU time, so in make
// test it checks only one of them, each in turn.
func (p *tab) usableIn(n int, at string) {
	p.t.Helper()
	looks := looksOf(n)
	for i, l := range looks {
		at := at + ", " + l.String()
		p.fits(l, at)
		if !soak.On() && i != n/2%len(looks) {
			continue
		}
		for _, found := range p.violations(wcagRules) {
			p.t.Errorf("%s: %s", at, found)
		}
	}
}

// The pages are accessible: no violation of WCAG A and AA on any page or dialog, from 320
// to 1440 px, in light, dark and forced colours; and nothing scrolls sideways.
func TestEverybodyCanUseThePages(t *testing.T) {
	tool := axe(t)
	s := newStage(t, "coder", "writer")
	s.end(s.c, s.task("coder", "sleep 1ms, fail"))
	failed := s.end(s.c, s.task("coder", "sleep 1ms, fail")).QueueID
	written := s.completed(s.c, s.task("writer", "sleep 1ms, write it down in a sentence that is as long as those of people are"))
	talk := "/ui/agents/writer/conversations/" + written.SessionID
	changed := s.changed(someChanges())
	running := s.running("coder", "sleep 1ms"+strings.Repeat(", call search_code for 1m", 20)) // a minute is the longest wait of one call
	waiting := s.task("coder", "sleep 10m, upgrade the billing service")
	if _, err := s.c.Pause(s.ctx(), pauseOf("agent:writer", "the disk is being changed")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.CreateSchedule(s.ctx(), api.NewSchedule{Name: "nightly", CronExpression: "0 3 * * *", Message: "Tidy up", Timezone: "Europe/Berlin"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.PutUser(s.ctx(), "clerk", api.PutUser{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.TriggerSchedule(s.ctx(), "nightly"); err != nil {
		t.Fatal(err)
	}
	s.speaker("painter", `i=0; while [ $i -lt 108 ]; do printf '\033[%dmink %d\033[0m \033[%dmpaper\033[0m \033[7;%dmboth\033[0m\n' $i $i $((i+10)) $i; i=$((i+1)); done`)
	painted := s.completed(s.c, s.task("painter", "paint it")).QueueID
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
		{"/ui/tasks", short(failed), nil}, {"/ui/tasks?group=cause&sort=-ended", "2 ×", nil}, {"/ui/tasks?group=none", short(failed), press(".searches button", "Views")},
		{"/ui/tasks", short(failed), func(p *tab) {
			p.does("type", `document.getElementById("search").focus()`)
			p.keys("s")
			p.until("completions", `document.querySelector("[role=listbox]")`)
		}},
		{"/ui/tasks", short(failed), func(p *tab) { p.click(".searches button", "Views"); press("[role=menuitem]", "Save as a view…")(p) }},
		{"/ui/tasks/" + waiting, "Why is it", press(".task-actions button", "Change…")},
		{"/ui/users", "clerk", nil}, {"/ui/users", "clerk", press("button", "New user")}, {"/ui/tokens", "of-coder", nil}, {"/ui/tokens", "of-coder", press("button", "New token")},
		{"/ui/tasks/" + running, "Prompt", nil}, {"/ui/tasks/" + running, "Prompt", press("button", "Cancel…")},
		{"/ui/tasks/" + failed, "The command failed", nil}, {"/ui/tasks/" + failed, "Retry…", press("button", "Retry…")}, {"/ui/tasks/" + waiting, "Why is it", nil},
		{"/ui/tasks/" + painted, "ink 107", func(p *tab) {
			p.click(".output-tools button", "Lines")
			p.click(".output-tools button", "Times")
			p.keyUntil("f", "the search", `document.activeElement?.id === "output-find"`)
			p.keys("", "ink 3")
			p.showsIn(".output-bar", "Copy link")
		}},
		{"/ui/tasks/" + changed, "onerror", nil}, {"/ui/tasks/" + changed, "onerror", press(".diff-n button", "2")},
		{"/ui/agents", "Last heartbeat", nil}, {"/ui/agents/coder", "Last 4 runs", nil}, {"/ui/agents/writer/conversations/new", "Ctrl+Enter", nil}, {talk, "write it down", nil}, {"/ui/capacity", "search_code", nil},
		{"/ui/schedules", "nightly", nil}, {"/ui/schedules", "nightly", press("button", "New schedule")}, {"/ui/schedules/nightly", "Tidy up", nil},
		{"/ui/usage", "Tokens by day", nil}, {"/ui/usage?by=user&days=7", "Share", nil}, {"/ui/audit", "Chain", nil}, {"/ui/nowhere", "", nil}, {"/login", "You are logged in as the owner", nil},
	}
	p := s.ownWindow(s.d.url).tabWith("/ui/", tabOptions{tool: tool})
	for n, v := range views {
		p.seenAs(looksOf(n)[0])
		p.goTo(v.path)
		p.until(v.path+" is there", fmt.Sprintf(`e2e.text("main").includes(%s) && !document.querySelector("[aria-busy=true]")`, jsText(v.there)))
		if v.dialog != nil {
			v.dialog(p)
		}
		p.usableIn(n, fmt.Sprintf("%s (with a dialog: %t)", v.path, v.dialog != nil))
	}
}

// fits checks that nothing on the page scrolls sideways, also right to left.
func (p *tab) fits(l look, at string) {
	p.t.Helper()
	p.seenAs(l)
	has[any](p, `(window.drawn = false, requestAnimationFrame(() => requestAnimationFrame(() => { drawn = true; })), 1)`)
	p.until("it is drawn, "+l.String(), fmt.Sprintf(`window.drawn && matchMedia("(width: %dpx)").matches && matchMedia("(forced-colors: active)").matches === %t && matchMedia("(prefers-color-scheme: dark)").matches === %t`, l.width, l.colours == "forced", l.colours == "dark"))
	if wide := has[[]string](p, sideways); len(wide) > 0 {
		p.t.Errorf("%s: it scrolls sideways because of %q", at, wide)
	}
	if over := has[[]string](p, overflowing); len(over) > 0 {
		p.t.Errorf("%s: rows reach into the next until they are drawn: %q", at, over)
	}
	has[any](p, `(document.documentElement.dir = "rtl", 1)`)
	if wide := has[[]string](p, sideways); len(wide) > 0 {
		p.t.Errorf("%s, read from the right: it scrolls sideways because of %q", at, wide)
	}
	has[any](p, `(document.documentElement.dir = "", 1)`)
}

// overflowing lists rows of long lists that are higher than the height that
// is reserved until they are drawn, according to a copy that is never drawn.
const overflowing = `[...document.querySelectorAll("li")].filter((li) => getComputedStyle(li).contentVisibility === "auto").flatMap((li) => {
	const copy = li.cloneNode(true);
	copy.style.contentVisibility = "hidden";
	li.after(copy);
	const kept = copy.getBoundingClientRect().height, needed = li.getBoundingClientRect().height;
	copy.remove();
	return kept + 1 < needed ? [li.className + ": " + kept + "px of " + needed + "px"] : [];
})`

// sideways lists what reaches beyond an edge to which the page can be
// scrolled. A phone shrinks such a page: innerWidth grows with it.
const sideways = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
	["it is " + document.documentElement.scrollWidth + " px wide", ...[...document.querySelectorAll("main *, header *, dialog *")].filter((el) => { const r = el.getBoundingClientRect(); return r.right > document.documentElement.clientWidth + 1 || r.left < -1; }).slice(0, 4).map((el) => el.outerHTML.slice(0, 100))]`

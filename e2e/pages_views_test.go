package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Each search shows the number of matches; waiting and running tasks are
// shown together.
func TestSearchesAreCounted(t *testing.T) {
	s := newStage(t, "coder")
	s.completed(s.c, s.task("coder", "sleep 1ms, draft"))
	s.end(s.c, s.task("coder", "sleep 1ms, fail at billing"))
	s.running("coder", "sleep 10m, hold")
	s.crowd(3)
	p := s.open("/ui/tasks")
	for _, chip := range []string{"all 6", "waiting 3", "running 1", "done 1", "failed today 1", "schedules 0"} {
		p.until(chip, fmt.Sprintf(`e2e.find(".searches a", %q)`, chip))
	}
	asked := `performance.getEntriesByName(location.origin + "/api/search/counts").length`
	before := has[int](p, asked)
	s.crowd(2)
	p.until("the list of waiting tasks is live", `e2e.find(".searches a", "waiting 5")`)
	if now := has[int](p, asked); now != before {
		t.Errorf("it was counted %d more times though the board knows the number", now-before)
	}
}

// rows waits until the rows are these.
func (p *tab) rows(want ...string) {
	p.t.Helper()
	p.until(fmt.Sprintf("the rows are %v", want), fmt.Sprintf(`[...document.querySelectorAll(".table-body .row")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector(".col-id a")?.innerText ?? "group").join(" ") === %q`, strings.Join(want, " ")))
}

// The list is sorted, with its head, with keys and with a menu; the order is stored
// in the URL.
func TestTheListOfTasksIsSorted(t *testing.T) {
	s := newStage(t, "coder", "writer")
	long := s.completed(s.c, s.task("writer", "sleep 3s, long")).QueueID
	brief := s.completed(s.c, s.task("coder", "sleep 1ms, brief")).QueueID
	middle := s.completed(s.c, s.task("coder", "sleep 1s, middle")).QueueID
	waits := s.submit(s.c, api.SubmitRequest{Prompt: "waits", Kind: "nobody"})
	window := s.ownWindow(s.d.url)
	p := window.tab("/ui/tasks")
	l, b, m, w := short(long), short(brief), short(middle), short(waits)
	p.rows(w, m, b, l)
	p.click(".table-head button", "Duration")
	p.at("/ui/tasks?sort=-duration")
	p.rows(l, m, b, w)
	sorted := func(column, how string) {
		t.Helper()
		p.until(column+" says so", fmt.Sprintf(`document.querySelector("[role=columnheader].col-%s").ariaSort === %q`, column, how))
	}
	sorted("took", "descending")
	sorted("time", "none")
	p.does("with the keyboard", `e2e.find(".table-head button", "Duration").focus()`)
	p.keys(kb.Enter)
	p.at("/ui/tasks?sort=duration")
	p.rows(b, m, l, w)
	sorted("took", "ascending")
	p.keys(kb.Enter)
	p.rows(w, m, b, l)
	sorted("took", "none")
	p.click(".table-head button", "Where")
	p.rows(m, b, l, w)
	sorted("where", "ascending")
	p.click(".list-bar button", "Sort")
	p.click("[role=menuitemcheckbox]", "Longest wait")
	p.at("/ui/tasks?sort=-wait")
	p.until("what still waits is first", fmt.Sprintf(`e2e.text(".table-body [aria-rowindex='2']").includes(%q)`, w))
	// Back restores the previous order, and a reload keeps it.
	has[any](p, "(history.back(), 1)")
	p.rows(m, b, l, w)
	p.goTo("/ui/tasks?q=state:completed&sort=-duration")
	p.rows(l, m, b)
	found, err := s.c.Search(s.ctx(), "state:completed", client.SearchOptions{Sort: "-duration", Limit: 1})
	if err != nil || found.Sort != "-duration" || len(found.Tasks) != 1 || found.Tasks[0].QueueID != long || found.Next == "" {
		t.Errorf("the API finds %+v, %v", found, err)
	}
	said := s.want(0, "search", "state:completed", "--sort=-duration", "--director", s.d.url).out
	if i, j := strings.Index(said, long), strings.Index(said, brief); i < 0 || j < i {
		t.Errorf("the command line finds\n%s", said)
	}
	if said := s.want(2, "search", "--sort", "durations", "--director", s.d.url).err; !strings.Contains(said, "did you mean duration?") {
		t.Errorf("the command line says %s", said)
	}
	p.allow("400")
	p.goTo("/ui/tasks?sort=durations")
	p.showsIn(".error", "did you mean duration?")

	// On a phone, where the list has no head, only with the menu.
	phone := window.tabWith("/ui/tasks?q=state:completed", tabOptions{width: 390, height: 844})
	phone.click(".list-bar button", "Sort")
	phone.until("the menu is in sight", `((b) => b.left >= 0 && b.right <= innerWidth)(document.querySelector("[role=menu]").getBoundingClientRect())`)
	phone.click("[role=menuitemcheckbox]", "Shortest run")
	phone.rows(b, m, l)
}

// Keys and values of the query are completed, with keys and with the mouse, without a
// request for each letter.
func TestTheQueryIsCompleted(t *testing.T) {
	s := newStage(t, "coder", "writer")
	s.completed(s.c, s.task("writer", "sleep 1ms, draft"))
	p := s.open("/ui/tasks")
	p.live()
	p.showsIn("#search-keys", "cause")
	value := func(want string) {
		t.Helper()
		p.until("the field has "+want, fmt.Sprintf(`document.getElementById("search").value === %q`, want))
	}
	option := func(words, on string) {
		t.Helper()
		p.until(words+" is offered", fmt.Sprintf(`((o) => o && o.ariaSelected === %q && (%q === "false" || document.getElementById("search").getAttribute("aria-activedescendant") === o.id))(e2e.find("#search-options [role=option]", %q))`, on, on, words))
	}
	p.does("focus", `document.getElementById("search").focus()`)
	p.until("it is folded", `document.getElementById("search").ariaExpanded === "false" && !document.getElementById("search-options")`)
	p.keys("s")
	option("state: a state", "false")
	p.keys(kb.ArrowDown)
	option("state: a state", "true")
	p.keys(kb.Enter)
	value("state:")
	option("completed", "false")
	p.keys("com")
	p.keys(kb.Tab)
	value("state:completed")
	p.until("the list has gone", `!document.getElementById("search-options")`)
	p.at("/ui/tasks?q=state:completed")
	p.keys(" agent:wr")
	p.click("#search-options [role=option]", "writer")
	value("state:completed agent:writer")
	p.until("the field keeps the focus", `document.activeElement.id === "search"`)
	p.at("/ui/tasks?q=state:completed agent:writer")
	p.showsIn(".page-head", "1 task")
	p.keys(" -so")
	option("source:", "false")
	p.keys(kb.Escape)
	p.until("only the list is closed", `!document.getElementById("search-options") && document.activeElement.id === "search"`)
	p.keys(kb.ArrowDown)
	option("source:", "false")
	p.keys(kb.ArrowUp, kb.Enter)
	value("state:completed agent:writer -source:")
	asked := has[int](p, `performance.getEntriesByType("resource").filter((e) => /api.search.keys|api.schedules/.test(e.name)).length`)
	if asked != 1 {
		t.Errorf("%d requests for suggestions", asked)
	}
	p.keys(kb.Escape, kb.Escape)
	p.until("the field is left", `document.activeElement.id !== "search"`)
}

// A view has a name, its query, order, grouping and columns, and a URL that shows the same
// to other users.
func TestViewsAreSaved(t *testing.T) {
	s := newStage(t, "coder")
	s.completed(s.c, s.task("coder", "sleep 1ms, draft"))
	s.completed(s.c, s.task("coder", "sleep 1ms, draft again"))
	w := s.ownWindow(s.d.url)
	p := w.tab("/ui/tasks?q=state:completed&sort=-duration")
	p.click(".list-bar button", "Columns")
	p.click("[role=menuitemcheckbox]", "Time")
	save := func(name string) {
		t.Helper()
		p.click(".searches button", "Views")
		p.click("[role=menuitem]", "view…")
		p.fill("Name", name)
		p.click("dialog button", "Save")
		p.noDialog()
	}
	save("slow <b>ones</b>")
	chip := `e2e.find(".searches a", "slow <b>ones</b> 2")`
	p.until("it has a chip with its count", chip+`?.ariaCurrent === "true"`)
	address := has[string](p, `location.pathname + location.search`)
	p.click(".searches a", "all")
	p.until("another search", chip+` && !`+chip+`.ariaCurrent && !new URLSearchParams(location.search).get("q")`)
	p.click(".list-bar button", "Columns")
	p.click("[role=menuitemcheckbox]", "Time")
	p.until("the column is there", `document.querySelector(".row .col-time")`)
	p.click(".searches a", "slow")
	p.until("the view as it was", `!document.querySelector(".row .col-time") && document.querySelector(".col-took[aria-sort=descending]") && location.pathname + location.search === `+jsText(address))
	p.click(".searches button", "Views")
	p.click("[role=menuitem]", "Rename…")
	p.fill("Name", "slowest")
	p.click("dialog button", "Save")
	p.goTo("/ui/tasks")
	p.until("it has the name after a reload", `e2e.find(".searches a", "slowest 2") && !e2e.find(".searches a", "slow <b>")`)
	// The URL is enough for a user who does not have the view.
	other := s.ownWindow(s.d.url).tab(address)
	other.until("the same list", `document.querySelector(".row") && !document.querySelector(".row .col-time") && document.querySelector(".col-took[aria-sort=descending]") && !e2e.find(".searches a", "slowest")`)
	p.click(".searches a", "slowest")
	p.click(".searches button", "Views")
	p.click("[role=menuitem]", "Delete")
	p.until("it is gone", `!e2e.find(".searches a", "slowest")`)
	p.showsIn(".toasts", "slowest is deleted")
	// There are at most twenty.
	p.does("have many", `localStorage.setItem("signalbox.tasks.views", JSON.stringify(Array.from({ length: 20 }, (_, i) => ({ name: "view " + i, q: "view" + i, sort: "", group: "none", hide: "none" }))))`)
	p.goTo("/ui/tasks")
	p.until("all are there", `e2e.all(".searches a", "view ").length === 20`)
	p.click(".searches button", "Views")
	p.until("one more cannot be saved", `e2e.find("[role=menuitem]", "Save as a view…")?.ariaDisabled === "true"`)
}

// Adjacent equal failures are one row, with actions for all of them.
func TestEqualFailuresAreOneRow(t *testing.T) {
	s := newStage(t, "coder")
	var failed []string
	for range 3 {
		failed = append(failed, s.end(s.c, s.task("coder", "sleep 1ms, fail at billing")).QueueID)
	}
	done := s.completed(s.c, s.task("coder", "sleep 1ms, draft")).QueueID
	alone := s.end(s.c, s.task("coder", "sleep 1ms, fail")).QueueID
	p := s.open("/ui/tasks")
	slices.Reverse(failed)
	one := []string{short(alone), short(done)}
	all := append(slices.Clone(one), short(failed[0]), short(failed[1]), short(failed[2]))
	p.rows(all...)
	p.click(".list-bar button", "Group failures")
	p.at("/ui/tasks?group=cause")
	p.rows(append(slices.Clone(one), "group")...)
	p.showsIn(".is-group", "3 ×")
	p.showsIn(".is-group", "asked to fail")
	p.goTo("/ui/tasks") // the grouping is remembered
	p.rows(append(slices.Clone(one), "group")...)
	unfolded := append(slices.Clone(one), "group", short(failed[0]), short(failed[1]), short(failed[2]))
	p.click(".is-group button", "3 ×")
	p.rows(unfolded...)
	p.until("it says that it is unfolded", `document.querySelector(".group-open").ariaExpanded === "true"`)
	p.click(".is-group .col-time", "")
	p.rows(append(slices.Clone(one), "group")...)
	// With keys: select all of it, and open it.
	for range 3 {
		p.keys("j")
	}
	p.until("the keyboard selection is on it", `document.querySelector(".is-group.row-cursor")`)
	p.keys("x")
	p.showsIn(".bulk", "3 selected")
	p.keys(kb.Enter)
	p.rows(unfolded...)
	p.keys("x", kb.Enter)
	p.showsIn(".bulk", "Select rows")
	p.click(".is-group button", "Retry all…")
	p.showsIn("dialog", "Retry 3 tasks")
	p.click("dialog button", "Retry 3 tasks")
	p.noDialog()
	p.showsIn(".toasts", "3 tasks tried again")
	for _, id := range failed {
		again, err := s.c.Search(s.ctx(), "billing", client.SearchOptions{})
		if err != nil || !slices.ContainsFunc(again.Tasks, func(t api.LiveTask) bool { return t.RetryOf == id }) {
			t.Errorf("%s was not retried: %+v, %v", id, again.Tasks, err)
		}
	}
	p.click(".list-bar button", "Group failures")
	p.until("they are single rows again", `!document.querySelector(".is-group") && document.querySelectorAll(".row").length > 5`)
}

// The lists of agents and schedules can be filtered and sorted; the URL has the
// settings.
func TestAgentsAndSchedulesAreSortedAndFiltered(t *testing.T) {
	s := newStage(t, "coder", "builder", "writer")
	s.running("writer", "sleep 10m, hold the ledger")
	s.task("writer", "sleep 10m, next")
	w := s.ownWindow(s.d.url)
	p := w.tab("/ui/agents")
	names := func(selector string, want ...string) {
		t.Helper()
		p.until(fmt.Sprintf("%s are %v", selector, want), fmt.Sprintf(`e2e.all(%q).map((el) => e2e.plain(el.innerText)).join(" ") === %q`, selector, strings.Join(want, " ")))
	}
	names(".agent-row h2", "builder", "coder", "writer")
	p.click(".listing .sort", "Waiting")
	p.at("/ui/agents?sort=-waiting")
	names(".agent-row h2", "writer", "builder", "coder")
	p.fill("Filter agents", "LEDGER")
	names(".agent-row h2", "writer")
	p.at("/ui/agents?filter=LEDGER&sort=-waiting")
	p.fill("Filter agents", "nobody")
	p.showsIn("main", "No agent matches “nobody”.")
	p.goTo("/ui/agents?filter=er&sort=state")
	names(".agent-row h2", "writer", "builder", "coder")

	for name, cron := range map[string]string{"a-year": "0 0 1 1 *", "minutely": "* * * * *", "off": "* * * * *"} {
		if _, err := s.c.CreateSchedule(s.ctx(), api.NewSchedule{Name: name, CronExpression: cron, Message: "Tidy up " + name, Timezone: "UTC"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.c.DisableSchedule(s.ctx(), "off"); err != nil {
		t.Fatal(err)
	}
	p.goTo("/ui/schedules")
	names(".listing-schedules h2", "a-year", "minutely", "off")
	p.click(".listing .sort", "Next")
	p.at("/ui/schedules?sort=next")
	names(".listing-schedules h2", "minutely", "a-year", "off")
	p.fill("Filter schedules", "year TIDY")
	names(".listing-schedules h2", "a-year")
	p.fill("Filter schedules", "")
	p.click(".listing .sort", "Schedule")
	names(".listing-schedules h2", "a-year", "minutely", "off")
	p.until("the filter is still there", `e2e.find("input", "Filter schedules")`)
}

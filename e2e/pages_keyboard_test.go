package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signalbox-ai/signalbox/api"
)

// named is the condition that an element matches the selector and has these
// words.
func named(selector, words string) string {
	return fmt.Sprintf("el.matches(%s) && e2e.name(el).includes(%s)", jsText(selector), jsText(words))
}

// The main action of each page works without a mouse; the focus is always
// visible, and returns from dialogs.
func TestKeyboardAlone(t *testing.T) {
	s := newStage(t, "coder")
	running := s.running("coder", "sleep 1ms, call search_code for 10m")
	second, third := s.task("coder", "sleep 10m, second"), s.task("coder", "sleep 10m, third")
	p := s.open("/ui/")
	p.live()
	p.showsIn(".card-queue", short(third))

	// Now: why does it wait, and cancel it.
	p.tabTo("the way past the header", named("a.skip", "Skip to the page"))
	p.keys(kb.Enter)
	p.tabTo("Why?", named("button", "Why does "+short(third)+" wait?"))
	p.keys(kb.Enter)
	p.showsIn(".card-why", "Picked: "+short(third))
	p.tabTo("Cancel", named("button", "Cancel "+short(third)))
	p.keys(kb.Enter)
	s.becomes(third, "cancelled")

	// A new task, from anywhere.
	p.keyUntil("n", "the dialog has the focus", `document.activeElement.matches("dialog textarea")`)
	p.keys("sleep 10m, by hand")
	p.tabTo("Submit", named("button", "Submit"))
	p.keys(kb.Enter)
	p.at("/ui/tasks/queue-")
	made := strings.TrimPrefix(p.path(), "/ui/tasks/")
	p.showsIn("h1", "sleep 10m, by hand")
	p.noDialog()
	p.keyUntil("c", "it asks", `e2e.text("dialog").includes("It leaves the line and never starts")`)
	p.keys(kb.Escape)
	p.noDialog()
	p.keyUntil("c", "it asks again", `e2e.text("dialog").includes("It leaves the line")`)
	p.tabTo("Cancel it", named("dialog button", "Cancel it"))
	p.keys(kb.Enter)
	s.becomes(made, "cancelled")
	p.noDialog()

	// Tasks: a row is selected, and the selection is cancelled.
	p.keys("g", "t")
	p.showsIn("h1", "Tasks")
	p.showsIn(".table-tasks .table-body", short(second))
	p.keys("/")
	p.until("the search has the focus", `document.activeElement.id === "search"`)
	p.allow("/api/search?") // on a busy machine it searches for half-typed text
	p.keys("state:pending")
	p.showsIn(".page-head", "1 task")
	p.keys(kb.Escape, "j", "x")
	p.showsIn(".bulk", "1 selected")
	p.tabTo("Cancel 1…", named("button", "Cancel 1"))
	p.keys(kb.Enter)
	p.until("it asks, once it has counted them", `e2e.text("dialog[open]").includes("Cancel 1 task")`)
	p.tabTo("the answer", named("dialog button", "Cancel 1 task"))
	p.keys(kb.Enter)
	s.becomes(second, "cancelled")
	p.noDialog()

	// Capacity: who holds the slot.
	p.keys("g", "c")
	p.showsIn("#queue-github", short(running))
	p.tabTo("the holder", named("#queue-github a", short(running)))
	p.keys(kb.Enter)
	p.at("/ui/tasks/" + running)

	// Agents: a menu with the arrow keys, and a dialog that Enter sends.
	p.keys("g", "a")
	p.showsIn("h1", "Agents")
	p.tabTo("the menu", named(".agents button", "Actions for coder"))
	p.keys(kb.Enter)
	p.until("the menu has the focus", `document.activeElement.matches("[role=menuitem]")`)
	p.keys(kb.ArrowDown, kb.Home, kb.Enter)
	p.until("the dialog has the focus", `document.activeElement.matches("dialog input")`)
	p.keys("a change of the disk", kb.Enter)
	s.until("it is paused", func() bool { return len(s.pauses()) == 1 })
	p.until("the focus is back", `!document.querySelector("dialog[open]") && document.activeElement.ariaLabel === "Actions for coder"`)

	// Schedules: one is created.
	p.keys("g", "s")
	p.showsIn("h1", "Schedules")
	p.tabTo("New schedule", named("button", "New schedule"))
	p.keys(kb.Enter)
	p.until("the name has the focus", `document.activeElement.name === "name"`)
	p.keys("nightly")
	p.tabTo("what it does", `el.name === "message"`)
	p.keys("tidy up")
	p.tabTo("Create schedule", named("dialog button", "Create schedule"))
	p.keys(kb.Enter)
	p.showsIn(`[aria-label="Schedule nightly"]`, "tidy up")

	// Audit: the details of a row.
	p.keys("g", "l")
	p.showsIn(".audit-item", "pause")
	p.tabTo("a row", named("button.audit-open", "Row"))
	p.keys(kb.Enter)
	p.until("it is open", `document.activeElement.ariaExpanded === "true" && document.querySelector(".audit-all")`)

	// The keys are listed, and can be switched off.
	p.keyUntil("?", "the help", `e2e.text("dialog").includes("new task")`)
	p.keys(" ", kb.Escape)
	p.noDialog()
	p.keys("g", "n", "n")
	if at := p.path(); at != "/ui/audit" || has[bool](p, `Boolean(document.querySelector("dialog[open]"))`) {
		t.Errorf("the keys still work: the tab is at %s", at)
	}
}

// Nothing moves under the pointer: while it points at a list, changes are
// only counted.
func TestNothingMovesUnderThePointer(t *testing.T) {
	s := newStage(t, "coder")
	s.running("coder", "sleep 10m, first")
	second := s.task("coder", "sleep 10m, second")
	s.task("coder", "sleep 10m, third")
	p := s.open("/ui/")
	lane := `[aria-label="Agent coder"]`
	p.showsIn(lane+" .chips", "2 sleep 10m, third")
	p.point(lane + " .chips")
	if _, err := s.c.Cancel(s.ctx(), second); err != nil {
		t.Fatal(err)
	}
	p.showsIn(lane+" .changes", "1 change")
	p.showsIn(lane+" .gone", "second")
	p.showsIn(lane+" .chips", "third")
	p.point(".brand")
	p.hides(lane+" .chips", "second")
	p.showsIn(lane+" .chips", "1 sleep 10m, third")
}

// The login: a wrong password, the return to the previous page, actions that
// a user may not take, and the logout.
func TestLoginPage(t *testing.T) {
	s := newStage(t, "coder")
	const password = "correct horse battery"
	made, err := s.c.CreateToken(s.ctx(), api.NewToken{Name: "of-the-test", Scopes: []string{"admin"}}) // closes the director
	if err != nil {
		t.Fatal(err)
	}
	s.vars["SIGNALBOX_TOKEN"] = made.Secret
	s.c = s.client(s.d.url)
	for _, user := range []struct{ id, role string }{{"clerk", "user"}, {"keeper", "admin"}} {
		if _, err := s.c.PutUser(s.ctx(), user.id, api.PutUser{Role: user.role, Password: password}); err != nil {
			t.Fatal(err)
		}
	}
	w := s.window(s.d.url)
	p := w.tabWith("/login", tabOptions{})
	p.allow("401")
	p.goTo("/ui/agents?q=1")
	p.at("/login?next=/ui/agents")
	p.fill("User", "clerk")
	p.fill("Password", "wrong horse battery")
	p.keys(kb.Enter)
	p.until("it says what is wrong", `e2e.text("#wrong") !== ""`)
	p.fill("Password", password)
	p.keys(kb.Enter)
	p.at("/ui/agents")
	p.live()
	p.showsIn(".top", "clerk")
	// A user may not pause or release: the button is disabled, and says why.
	p.until("what it may not do is off", `(() => { const b = e2e.find("button", "Pause everything…"); return b?.disabled && b.title.includes("You lack the scope “admin”"); })()`)
	p.click(".agents button", "Actions for coder")
	p.until("the menu too", `e2e.all("[role=menuitem]", "Force release…").every((b) => b.ariaDisabled === "true" && e2e.plain(b.innerText).includes("You lack the scope")) && e2e.all("[role=menuitem]").length > 2`)
	p.click(".nav a", "Audit")
	p.showsIn("main", "This is for admins")
	// A user may submit, and is recorded as the submitter.
	p.keyUntil("n", "the dialog", `document.querySelector("dialog[open]")`)
	p.fill("Prompt", "sleep 10m, for the clerk")
	p.click("dialog button", "Submit")
	p.at("/ui/tasks/queue-")
	p.showsIn(".facts", "clerk")
	// The logout ends the stream of all tabs, and leads to the login page.
	other := w.tab("/ui/")
	other.allow("401")
	other.live()
	p.click(".top button", "clerk")
	p.click("[role=menuitem]", "Log out…")
	p.at("/login")
	p.click("#logout", "Log out")
	p.until("the form is there", `e2e.shown(document.querySelector("#login"))`)
	other.at("/login?next=/ui/")
	// A hostile next parameter leads nowhere.
	p.goTo("/login?next=" + "%2F%5Cexample.org%2F")
	p.fill("User", "keeper")
	p.fill("Password", password)
	p.keys(kb.Enter)
	p.at("/ui/")
	p.click(".nav a", "Audit")
	p.showsIn(".audit", "clerk")
}

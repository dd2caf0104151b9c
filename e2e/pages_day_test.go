package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The page of a failed task opens at the line with the reason; that of a completed
// one, at its end.
func TestOutputOpensWhereItMatters(t *testing.T) {
	s := newStage(t)
	s.speaker("builder", `
i=0
while [ $i -lt 400 ]; do i=$((i+1)); echo "step $i"; done
echo 'Traceback (most recent call last):'
echo '  File "/srv/app/billing.py", line 481, in run'
echo 'jobs.errors.ChargeError: card_declined'
while [ $i -lt 600 ]; do i=$((i+1)); echo "clean up $i"; done
exit 3`)
	s.speaker("writer", `
i=0
while [ $i -lt 600 ]; do i=$((i+1)); echo "line $i"; done`)
	failed, done := s.task("builder", "bill it"), s.task("writer", "write it")
	s.becomes(failed, "failed")
	s.becomes(done, "completed")
	p := s.open("/ui/tasks/" + failed)
	p.showsIn(".output-failure", "Most likely cause: jobs.errors.ChargeError: card_declined")
	p.until("the line that says why is in sight", inSight(`.output-box .is-marked`))
	if top := has[int](p, `Math.round(scrollY)`); top != 0 {
		t.Errorf("the page itself has scrolled by %d", top)
	}
	p.goTo("/ui/tasks/" + done)
	p.until("the end is in sight", inSight(`.output-box > div:nth-last-child(2)`))
}

// inSight is true if an element is within the visible part of the output.
func inSight(selector string) string {
	return fmt.Sprintf(`(() => {
		const one = document.querySelector(%q), box = document.querySelector(".output-box")?.getBoundingClientRect(), at = one?.getBoundingClientRect();
		return Boolean(at && at.height > 0 && at.top >= box.top && at.bottom <= box.bottom);
	})()`, selector)
}

// A list can be processed task by task: a click anywhere on a row opens it, the
// tab's title has the task, keys move on, and Back restores the list.
func TestAListIsGoneThroughOneByOne(t *testing.T) {
	s := newStage(t, "coder")
	var tasks []api.SubmitResponse
	for i := range 45 {
		made, err := s.c.Submit(s.ctx(), api.SubmitRequest{Prompt: fmt.Sprintf("review page %02d", i), Kind: "nobody"}, client.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, made)
	}
	p := s.ownWindow(s.d.url).tabWith("/ui/tasks?q=state:pending", tabOptions{width: 1280, height: 500})
	p.until("all are listed", `document.querySelector(".table-tasks")?.getAttribute("aria-rowcount") === "46"`)
	p.does("scroll", `scrollTo(0, 900)`)
	p.until("a row in the middle is there", `[...document.querySelectorAll(".row-title")].some((a) => a.textContent === "review page 30")`)
	at := has[int](p, `Math.round(scrollY)`)
	p.does("click beside the words of a row", `[...document.querySelectorAll(".row")].find((r) => r.textContent.includes("review page 30")).querySelector(".col-time").click()`)
	p.at("/ui/tasks/" + tasks[30].QueueID)
	p.until("the tab says which task", `document.title.includes("review page 30 · Signalbox")`)
	p.keyUntil("]", "the next one is shown", fmt.Sprintf(`location.pathname.endsWith(%q)`, tasks[31].QueueID))
	p.click(".neighbours a", "Previous")
	p.at("/ui/tasks/" + tasks[30].QueueID)
	p.does("go back", `history.back()`)
	p.at("/ui/tasks")
	p.until("the list is where it was", fmt.Sprintf(`Math.abs(scrollY - %d) < 2 && [...document.querySelectorAll(".row-title")].some((a) => a.textContent === "review page 30")`, at))
	p.click(".row-title", "review page 31")
	p.at("/ui/tasks/" + tasks[31].QueueID)
}

// The draft of a new task is restored after Esc, a click beside the dialog
// and a page load, until it is discarded or sent.
func TestADraftIsKept(t *testing.T) {
	s := newStage(t, "coder")
	p := s.open("/ui/")
	open := func() {
		p.keyUntil("n", "the dialog is open", `document.querySelector("dialog[open] textarea")`)
	}
	draft := func(want string) {
		p.until("the draft is "+want, fmt.Sprintf(`document.querySelector("dialog[open] textarea")?.value === %q`, want))
	}
	open()
	p.fill("Prompt", "a long prompt")
	p.keys(kb.Escape)
	p.showsIn(".toasts", "The draft is kept")
	open()
	draft("a long prompt")
	p.does("click beside it", `document.querySelector("dialog[open]").dispatchEvent(new MouseEvent("mousedown", { bubbles: true }))`)
	p.noDialog()
	p.goTo("/ui/agents")
	p.showsIn("h1", "Agents")
	open()
	draft("a long prompt")
	p.click("dialog button", "Discard")
	open()
	draft("")
	p.fill("Prompt", "sleep 1ms, and say done")
	p.click("dialog button", "Submit")
	p.until("it is shown", `location.pathname.startsWith("/ui/tasks/queue-")`)
	open()
	draft("")
}

// What is typed right after / goes into the search, every letter of it, on
// any page.
func TestASearchLosesNoLetter(t *testing.T) {
	s := newStage(t, "coder")
	p := s.open("/ui/")
	theme := has[string](p, `document.documentElement.dataset.theme ?? ""`)
	p.live()
	for _, text := range []string{"coder nightly test", "state:failed"} {
		p.keys("/", text)
		p.until("the search has all of it", fmt.Sprintf(`document.getElementById("search")?.value === %q && new URLSearchParams(location.search).get("q") === %q`, text, text))
		p.does("leave the field", `document.activeElement.blur()`)
	}
	if now := has[string](p, `document.documentElement.dataset.theme ?? ""`); now != theme {
		t.Errorf("the colours were changed to %q", now)
	}
}

// Every entry of the navigation is always visible, and nothing scrolls sideways.
func TestTheNavigationIsAlwaysThere(t *testing.T) {
	s := newStage(t, "coder")
	p := s.ownWindow(s.d.url).tabWith("/ui/", tabOptions{width: 1280, height: 800})
	p.live()
	for _, width := range []int64{320, 390, 721, 768, 834, 900, 1024, 1100, 1280} {
		p.seenAs(look{width, 800, "light"})
		p.until("it is as wide", fmt.Sprintf(`matchMedia("(width: %dpx)").matches`, width))
		hidden := has[[]string](p, `[...document.querySelectorAll(".nav a")].filter((a) => { const r = a.getBoundingClientRect(); return r.left < 0 || r.right > innerWidth || document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)?.closest("a") !== a; }).map((a) => a.textContent)`)
		if len(hidden) > 0 {
			t.Errorf("at %d px one cannot see %s", width, strings.Join(hidden, ", "))
		}
		if over := has[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("at %d px the page is %d px too wide", width, over)
		}
	}
}

package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Output has the colours of its program; other escape sequences have no effect.
func TestOutputHasItsColours(t *testing.T) {
	s := newStage(t)
	s.speaker("builder", `printf 'plain \033[1;31mred\033[0m \033[2J\033]0;title\007<b>text</b>\n\033[44;7mswapped\nstill\033[0m\n'`)
	id := s.task("builder", "build it")
	s.becomes(id, "completed")
	p := s.open("/ui/tasks/" + id)
	p.until("the red word is red and bold", `(() => {
		const one = [...document.querySelectorAll(".output-box span")].find((e) => e.textContent === "red"), look = one && getComputedStyle(one);
		return look && look.fontWeight === "700" && look.color !== getComputedStyle(one.parentElement).color;
	})()`)
	p.until("the rest is plain text", `document.querySelector(".output-box > div").textContent === "plain red <b>text</b>" && !document.querySelector(".output-box b")`)
	p.until("a colour goes on in the next line", `[...document.querySelectorAll(".output-box .sgr-inverse")].map((e) => e.textContent).join() === "swapped,still"`)
}

// Output is searched with a key, including lines that are out of view.
func TestOutputCanBeSearched(t *testing.T) {
	s := newStage(t)
	s.speaker("builder", `i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf 'Line \033[31m%d\033[0m\n' $i; done`)
	id := s.task("builder", "build it")
	s.becomes(id, "completed")
	p := s.open("/ui/tasks/" + id)
	p.until("the end is there", `document.querySelector(".output-box > div:nth-last-child(2)")?.textContent === "Line 3000"`)
	p.does("scroll to the first line", `document.querySelector(".output-box").scrollTop = 0`) // a search begins at the visible part
	p.keyUntil("f", "the field is there", `document.activeElement?.id === "output-find"`)
	p.keys("", "line 29") // the page keeps lines 1,001 to 3,000: 2,900 to 2,999 match
	marked := func(n string) {
		p.until("line "+n+" is marked and in sight", `document.querySelector(".output-box .is-marked")?.textContent === "Line `+n+`" && `+inSight(`.output-box .is-marked`))
	}
	p.showsIn(".output-bar [role=status]", "1 of 100")
	marked("2900")
	p.until("all are painted", `CSS.highlights.get("found").size === 100`)
	p.keys(kb.Enter)
	p.showsIn(".output-bar [role=status]", "2 of 100")
	p.does("press Shift+Enter", `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", shiftKey: true, bubbles: true, cancelable: true }))`)
	p.showsIn(".output-bar [role=status]", "1 of 100")
	p.click(".output-bar button", "Previous")
	p.showsIn(".output-bar [role=status]", "100 of 100")
	marked("2999")
	p.keys("", "no such")
	p.keys(kb.Escape)
	p.until("the search has ended", `!document.getElementById("output-find") && CSS.highlights.get("found").size === 0 && document.activeElement.className.includes("output-box")`)
}

// Each line has a URL, with its number in the whole log, even if the beginning of the log is
// no longer kept.
func TestLinesOfOutputHaveAddresses(t *testing.T) {
	s := newStage(t)
	s.speaker("builder", `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "this is line $i"; done`)
	id := s.task("builder", "build it")
	s.becomes(id, "completed")
	p := s.open("/ui/tasks/" + id + "#L19500")
	marked := func(texts string) {
		p.until(texts+" is marked and in sight", `[...document.querySelectorAll(".output-box .is-marked")].map((e) => e.textContent).join() === "`+texts+`" && `+inSight(`.output-box .is-marked`))
	}
	marked("this is line 19500")
	p.until("lines have their numbers", `getComputedStyle(document.querySelector(".output-box .is-marked .output-n"), "::before").content.includes("19500")`)
	p.does("click a number", `document.querySelector(".output-n[data-n='19503']").click()`)
	marked("this is line 19503")
	p.until("it is in the address", `location.hash === "#L19503"`)
	p.does("shift-click a number", `document.querySelector(".output-n[data-n='19501']").dispatchEvent(new MouseEvent("click", { shiftKey: true, bubbles: true, cancelable: true }))`)
	marked("this is line 19501,this is line 19502,this is line 19503")
	p.until("they are in the address", `location.hash === "#L19501-L19503"`)
	p.showsIn(".output-bar", "Lines 19501 to 19503")
	p.until("the link can be copied", `document.querySelector(".output-bar button")?.getAttribute("aria-label").endsWith("/ui/tasks/`+id+`#L19501-L19503")`)
	p.does("go elsewhere by the address", `location.hash = "#L19900"`)
	marked("this is line 19900")
	p.click(".output-bar button", "Clear")
	p.until("nothing is marked", `location.hash === "" && !document.querySelector(".output-box .is-marked")`)
	p.does("go to a line that is not kept", `location.hash = "#L7"`)
	p.showsIn(".output", "Line 7 is not kept here.")
	p.click(".output-bar button", "Show the whole log")
	p.showsIn(".output-state", "the whole log")
	marked("this is line 7")
	p.until("all lines are there", `document.querySelectorAll(".output-box > div:not([hidden])").length === 20000`)
	p.click(".output-bar button", "Show the end")
	p.showsIn(".output-state", "ended")
	p.does("catch the file", `window.saved = [], URL.createObjectURL = (blob) => (blob.text().then((text) => saved.push(text)), "data:,")`)
	p.click(".output-bar button", "Download the whole log")
	p.until("the file has all of it", `saved[0]?.startsWith("this is line 1\n") && saved[0].endsWith("this is line 20000\n") && saved[0].split("\n").length === 20001`)
	p.allow("503 (Service Unavailable)")
	s.agents["builder"].kill()
	p.click(".output-bar button", "Show the whole log")
	p.showsIn(".output .error", "agent builder does not give the log")
	p.showsIn(".output .error", "output.log")
}

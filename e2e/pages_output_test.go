package e2e_test

import "testing"

// Output has the colours of its program, and nothing else of its escape sequences.
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

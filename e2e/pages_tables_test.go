package e2e_test

import (
	"fmt"
	"testing"
)

// The list of tasks on one long page: what stays in sight, what a row offers and when.
func TestTheListOfTasks(t *testing.T) {
	s := newStage(t, "coder")
	done := s.completed(s.c, s.task("coder", "sleep 1ms, draft"))
	s.running("coder", "sleep 10m, hold")
	s.crowd(45)
	w := s.ownWindow(s.d.url)
	p := w.tabWith("/ui/tasks", tabOptions{width: 1280, height: 700})
	p.showsIn(".page-head", "47 tasks")

	// The search, the bar and the head of the table stay where the list scrolls.
	p.does("scroll", `scrollTo(0, 700)`)
	for _, part := range []string{"#search", ".bulk", ".table-head [role=columnheader].col-what"} {
		p.until(part+" is in sight", fmt.Sprintf(`((el) => { const b = el.getBoundingClientRect(); return b.top > 40 && b.top < 260 && el.contains(document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)); })(document.querySelector(%q))`, part))
	}
	p.does("scroll to the top", `scrollTo(0, 0)`)
	p.keyUntil("j", "the keys stand at a row", `document.querySelector(".row-cursor")`)
	for range 30 {
		p.keys("j")
	}
	p.until("far down", `scrollY > 300`)
	for range 25 {
		p.keys("k")
	}
	p.until("the row at the keys is below the head", `(() => {
		const row = document.querySelector(".row-cursor")?.getBoundingClientRect(), head = document.querySelector(".table-head").getBoundingClientRect();
		return row && row.top >= head.bottom - 1 && row.bottom <= innerHeight; })()`)
	_ = done
}

package e2e_test

import "testing"

// A task's page shows when it waited and ran, and its output when each line came.
func TestTheCourseOfATask(t *testing.T) {
	s := newStage(t)
	s.speaker("writer", `echo first; echo second`)
	id := s.task("writer", "write it")
	s.becomes(id, "completed")
	p := s.open("/ui/tasks/" + id)
	p.showsIn(".timeline", "Queued")
	p.showsIn(".timeline", "Run on writer")
	p.click(".output-tools button", "Times")
	p.until("each line says when it came", `[...document.querySelectorAll(".output-box.has-times > div:not([hidden])")].slice(0, 2).every((d) => /^\d\d:\d\d:\d\d$/.test(d.dataset.at))`)
	p.click(".output-tools button", "Wrap")
	p.until("long lines are not wrapped", `getComputedStyle(document.querySelector(".output-box")).whiteSpace === "pre"`)
}

package e2e_test

import "testing"

// A task's page shows when it waited and ran, with its tool calls, and its output when each
// line came.
func TestTheCourseOfATask(t *testing.T) {
	s := newStage(t, "coder")
	s.speaker("writer", `echo first; echo second`)
	printed, calling := s.task("writer", "write it"), s.task("coder", "sleep 1ms, call search_code for 200ms, call search_code for 100ms")
	s.becomes(printed, "completed")
	done := s.completed(s.c, calling)
	if len(done.Calls) != 2 || done.Calls[0].Tool != "search_code" || done.Calls[0].Outcome != "ok" || done.Calls[0].TookSeconds < .2 || done.Calls[0].Queue == "" {
		t.Errorf("the calls of the task: %+v", done.Calls)
	}
	p := s.open("/ui/tasks/" + printed)
	p.showsIn(".timeline", "Queued")
	p.showsIn(".timeline", "Run on writer")
	p.click(".output-tools button", "Times")
	p.until("each line says when it came", `[...document.querySelectorAll(".output-box.has-times > div:not([hidden])")].slice(0, 2).every((d) => /^\d\d:\d\d:\d\d$/.test(d.dataset.at))`)
	p.click(".output-tools button", "Wrap")
	p.until("long lines are not wrapped", `getComputedStyle(document.querySelector(".output-box")).whiteSpace === "pre"`)
	p.goTo("/ui/tasks/" + calling)
	p.until("each call is a bar", `[...document.querySelectorAll(".timeline-row")].filter((r) => r.textContent.includes("search_code")).length >= 2`)
}

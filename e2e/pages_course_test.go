package e2e_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// A task's page shows when it waited and ran, with its tool calls, and the time of each
// line of its output.
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

// The timeline says why a task had to wait, as far as that is stored: its position, and
// the task on the agent whose end let it start.
func TestTheTimelineSaysWhyATaskWaited(t *testing.T) {
	s := newStage(t)
	gate, command := s.gated()
	s.agents["writer"] = s.agent("writer", s.d.url, command...)
	first := gate.holdWith(s.c, "the long one")
	reply, err := s.c.Chat(s.ctx(), "writer", api.ChatRequest{Message: "and you?"}, client.ChatOptions{Async: true})
	if err != nil {
		t.Fatal(err)
	}
	id := reply.Accepted.Execution.ID
	p := s.open("/ui/tasks/" + id)
	p.until("it has waited for more than a second", `/waited [1-9][0-9.]*(s|m)\b/.test(document.querySelector("#timeline-head + span")?.textContent)`)
	p.showsIn(".timeline", "Number 1 in line when it was submitted.")
	gate.open()
	s.completed(s.c, first)
	s.completed(s.c, id)
	p.until("it says what it waited for", `document.querySelector(".timeline-note a")?.textContent === "gate the long one" && document.querySelector(".timeline-note").textContent.includes("Before it writer ran")`)
	if got := s.want(0, "status", id); !strings.Contains(got.out, "position 1 when it was submitted") {
		t.Errorf("status: %s", got.out)
	}
}

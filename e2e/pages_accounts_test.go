package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// A run reaches the limit of its account: the pages and status say until when, what waits,
// and what a user can do. When the account is opened, the task continues where it stopped.
func TestAnAccountAtItsLimitOnThePages(t *testing.T) {
	tool := axe(t)
	s := newStage(t)
	reset := time.Now().Add(40 * time.Minute).UTC().Truncate(time.Second)
	writer := agenttest.New(t, agenttest.Options{
		Name: "writer", Kind: "claude", Account: "claude-max",
		Windows: []api.AccountWindow{{Name: "five_hour", UsedPercent: 97.6, ResetsAt: &reset}, {Name: "seven_day", UsedPercent: 31}},
	})
	if _, err := s.c.RegisterAgent(s.ctx(), api.RegisterAgent{Name: "writer", Kind: "claude", URL: writer.URL()}); err != nil {
		t.Fatal(err)
	}
	p := s.ownWindow(s.d.url).tabWith("/ui/", tabOptions{tool: tool})
	p.showsIn(".card-accounts", "claude-max")
	p.until("its windows are bars", `[...document.querySelectorAll(".account .bars")].map((b) => b.getAttribute("aria-label")).join() === "five_hour: 98% used,seven_day: 31% used"`)
	p.showsIn(".attention", "All is well")

	id := s.task("writer", "write the report")
	run, behind := writer.AwaitStart(1), s.task("writer", "write the summary")
	writer.Finish(run.TaskID, agenttest.End{
		State: "failed", Error: &api.AgentError{Type: "usage_limit", Message: "You've hit your limit"},
		Limit: &api.AgentLimit{Window: "five_hour", ResetsAt: &reset, Source: "event", Text: "You've hit your limit", Began: true},
	})
	s.becomes(id, "parked")
	s.until("status names the account, the instant and what waits", func() bool {
		said := s.want(0, "status").out
		return strings.Contains(said, "Account claude-max is closed until "+reset.Format("2006-01-02T15:04")) && strings.Contains(said, "(five_hour): 2 tasks wait")
	})
	until := reset.Format("15:04")
	p.until("Now names the account, the instant and what waits", `(() => {
		const says = (selector, ...words) => words.every((word) => document.querySelector(selector)?.textContent.includes(word));
		return says(".attention-item", "Account claude-max", "closed until `+until+`", "2 tasks wait") && says(".account", "Closed until `+until+`", "2 tasks wait, 1 of them parked", "You've hit your limit")
			&& says(".lane", "Account claude-max is closed until `+until+`", "parked");
	})()`)
	for n, path := range []string{"/ui/", "/ui/capacity", "/ui/tasks/" + id, "/ui/tasks?q=state:parked"} {
		p.goTo(path)
		p.showsIn("main", map[bool]string{true: "parked", false: "claude-max"}[strings.Contains(path, "?")])
		p.usableIn(n, path)
	}
	p.seenAs(look{1280, 900, "light"})
	p.until("the search has the parked task alone", `[...document.querySelectorAll("main a.row-title")].map((a) => a.textContent).join() === "write the report"`)

	// The task says what it waits for. An admin closes the account indefinitely, and opens
	// it.
	p.goTo("/ui/tasks/" + id)
	p.showsIn(".head-line .state", "parked")
	p.until("the task says until when it waits", `(() => {
		const note = document.querySelector(".note.is-warn")?.textContent ?? "";
		return note.includes("Waits for account claude-max until `+until+`") && note.includes("It continues where it stopped.");
	})()`)
	p.until("its timeline has the run and the wait", `[...document.querySelectorAll(".timeline-row > .cut")].map((r) => r.textContent).slice(-2).join() === "Run on writer,Parked"`)
	p.goTo("/ui/capacity")
	p.click(".account button", "Close account… claude-max")
	p.fill("Reason, which others see", "a release")
	p.click("dialog button", "Close account")
	p.showsIn(".card-accounts .account", "Closed until someone opens it: a release · by")
	p.showsIn(".card-gates", "Account claude-max is closed until someone opens it (a release): 2 tasks wait, 1 of them parked")
	p.goTo("/ui/tasks/" + id)
	p.click(".note button", "Open account")
	for n, resumed := 2, false; n <= 3; n++ {
		next := writer.AwaitStart(n)
		if next.QueueID == id {
			resumed = next.Resume != nil && next.Resume.Began && next.Session == run.Answered
		}
		writer.Finish(next.TaskID, agenttest.End{Output: "done"})
		if n == 3 && !resumed {
			t.Errorf("the parked task did not go on in its conversation: %+v", writer.Executions())
		}
	}
	s.becomes(id, "completed")
	s.becomes(behind, "completed")
	p.until("the timeline has both runs", `[...document.querySelectorAll(".timeline-row > .cut")].map((r) => r.textContent).filter((text) => text !== "Handed over" && text !== "Queued").join() === "Run on writer,Parked,Run on writer"`)
	p.goTo("/ui/")
	p.until("all is well again", `document.querySelector(".attention").textContent.includes("All is well") && document.querySelector(".account .state").textContent === "open"`)
}

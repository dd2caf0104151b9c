package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/client"
)

// Schedules: plain words, time zone, the next three times, the result of each
// time, and the overlap policy. Mistakes are shown while typing.
func TestNeedSchedules(t *testing.T) {
	s := newStage(t, "coder")
	p := s.open("/ui/schedules")
	p.allow("/api/cron?") // what is typed so far may be invalid
	p.showsIn(".empty", "signalbox schedules add")
	p.click("button", "New schedule")
	p.fill("Name", "stand-up")
	p.fill("When", "0 0 31 2 *")
	p.showsIn("dialog .wrong", "never")
	p.fill("When", "30 8 * * 1-5")
	p.fill("Time zone", "Europe/Berlin")
	p.showsIn("dialog .checked", "Europe/Berlin Next:")
	p.fill("Prompt", "sleep 1ms, summarise the day")
	p.choose("If it overlaps", "skipped")
	p.click("dialog button", "Create schedule")
	card := `[aria-label="Schedule stand-up"]`
	p.showsIn(card, "Europe/Berlin")
	made, err := s.c.Schedule(s.ctx(), "stand-up")
	if err != nil || made.CronExpression != "30 8 * * 1-5" || made.Overlap != "skip" || made.Timezone != "Europe/Berlin" || made.Message != "sleep 1ms, summarise the day" {
		t.Fatalf("the API has %+v, %v", made, err)
	}
	p.showsIn(card, made.Words)
	p.until("the next three", fmt.Sprintf(`document.querySelectorAll('%s .next').length === 3`, card))
	p.click(card+" button", "Run now")
	p.until("a mark shows its result", fmt.Sprintf(`/: completed, by hand/.test(document.querySelector('%s .mark')?.title ?? "")`, card))
	runs, err := s.c.Executions(s.ctx(), made.ID, 10)
	if err != nil || len(runs.Executions) != 1 || runs.Executions[0].Trigger != "manual" {
		t.Fatalf("the API has %+v, %v", runs, err)
	}
	p.click(card+" button", "Actions for stand-up")
	p.click("[role=menuitem]", "Disable")
	p.showsIn(card, "disabled")
	if off, err := s.c.Schedule(s.ctx(), "stand-up"); err != nil || off.Enabled {
		t.Errorf("the API has %+v, %v", off, err)
	}
	p.click(card+" a", "stand-up")
	p.at("/ui/schedules/" + made.ID)
	p.showsIn(".firings", "by hand")
	p.showsIn(".facts", "is skipped while the previous run goes on")
	p.click(".firings a", short(runs.Executions[0].QueueID))
	p.at("/ui/tasks/" + runs.Executions[0].QueueID)
	p.showsIn("main", "schedule stand-up")
	// Removed in the list.
	p.goTo("/ui/schedules")
	p.click(card+" button", "Actions for stand-up")
	p.click("[role=menuitem]", "Remove…")
	p.click("dialog button", "Remove it")
	p.showsIn(".empty", "No schedules yet")
}

// Search: one grammar in page, command line and API, stored in the URL.
func TestNeedSearch(t *testing.T) {
	s := newStage(t, "coder", "writer")
	failed := s.end(s.c, s.task("coder", "sleep 1ms, fail at billing")).QueueID
	s.end(s.c, s.task("writer", "sleep 1ms, fail at billing"))
	s.completed(s.c, s.task("coder", "sleep 1ms, billing again"))
	p := s.open("/ui/")
	p.live()
	p.keyUntil("/", "the box has the focus", `document.activeElement.id === "search"`)
	p.at("/ui/tasks")
	p.keys(`agent:coder state:failed since:2h "billing"`)
	p.at(`/ui/tasks?q=agent:coder state:failed since:2h "billing"`)
	p.showsIn(".page-head", "1 task")
	p.showsIn(".table-tasks .table-body", short(failed))
	found, err := s.c.Search(s.ctx(), `agent:coder state:failed since:2h "billing"`, client.SearchOptions{})
	if err != nil || found.Total != 1 || found.Tasks[0].QueueID != failed {
		t.Errorf("the API finds %+v, %v", found, err)
	}
	if said := s.want(0, "search", "agent:coder", "state:failed", "since:2h", "billing", "--director", s.d.url).out; !strings.Contains(said, failed[len(failed)-4:]) {
		t.Errorf("the command line finds %s", said)
	}
	// The URL contains the search: in another tab, and after Back.
	p.click(".table-tasks a", short(failed))
	p.at("/ui/tasks/" + failed)
	has[any](p, "(history.back(), 1)")
	p.at("/ui/tasks?q=agent:coder")
	p.showsIn(".table-tasks .table-body", short(failed))
	// A mistake is named, with the probable meaning.
	p.allow("422", "400")
	p.fill("Search tasks", "agnt:coder")
	p.showsIn("#search-note", "agnt")
	p.showsIn("#search-note", "agent")
	p.fill("Search tasks", "-agent:coder billing")
	p.showsIn(".page-head", "1 task")
	p.showsIn(".table-tasks .table-body", "writer")
}

// Audit: who did what, how and why, and the state before and after.
func TestNeedAudit(t *testing.T) {
	s := newStage(t, "coder")
	if _, err := s.c.Pause(s.ctx(), pauseOf("agent:coder", "a word to those who wonder")); err != nil {
		t.Fatal(err)
	}
	s.want(0, "resume", "agent:coder", "--director", s.d.url)
	p := s.open("/ui/agents")
	p.click(`[aria-label="Agent coder"] button`, "Actions for coder")
	p.click("[role=menuitem]", "Pause…")
	p.fill("Reason", "by the page")
	p.click("dialog button", "Pause")
	s.until("it is paused", func() bool { return len(s.pauses()) == 1 })
	p.click(".nav a", "Audit")
	p.until("the newest first, by which way", `/pause.*“by the page”/.test(e2e.plain(document.querySelector(".audit-item")?.innerText))`)
	p.showsIn(".audit-item", "a page")
	p.showsIn(".audit-item", "the command line")
	p.showsIn(".audit-item", "“a word to those who wonder”")
	p.click(".audit-item button.audit-open", "Row")
	p.showsIn(".audit-change", "What Before After")
	p.showsIn(".audit-all", "Mozilla/")
	p.fill("Find in the loaded rows", "mozilla the page PAUSE")
	p.until("one row is left", `document.querySelectorAll(".audit-item").length === 1`)
	p.showsIn(".audit-tools", "1 of the")
	p.fill("Find in the loaded rows", "")
	p.click(".audit-tools button", "Export")
	p.click("[role=menuitem]", "CSV")
	p.showsIn(".toasts", "rows were exported")
	p.choose("Kind", "schedule")
	p.at("/ui/audit?event_type=schedule")
	p.showsIn(".empty", "Nothing matches")
	p.click("button", "All of it")
	head, err := s.c.AuditHead(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	p.showsIn(".page-head", fmt.Sprintf("%s…", head.Hash[:12]))
	p.showsIn(".page-head", fmt.Sprintf("Chain: %d rows", head.Seq))
}

// Bulk: all matching tasks, counted before the action.
func TestNeedBulk(t *testing.T) {
	s := newStage(t, "coder")
	s.running("coder", "sleep 10m, hold")
	var doomed []string
	for i := range 12 {
		doomed = append(doomed, s.task("coder", fmt.Sprintf("sleep 10m, report %d", i)))
	}
	kept := s.task("coder", "sleep 10m, keep me")
	p := s.open("/ui/tasks?q=" + "state%3Apending+report")
	p.showsIn(".page-head", "12 tasks")
	p.click(".bulk button", "Cancel…")
	p.showsIn("dialog", "Cancel 12 tasks")
	p.showsIn("dialog", "All tasks that match: state:pending report")
	if s.state(doomed[0]) != "pending" {
		t.Error("something was cancelled before it was confirmed")
	}
	// Another task appears in the meanwhile: the page asks again, with the new
	// number.
	doomed = append(doomed, s.task("coder", "sleep 10m, report 12"))
	p.allow("409")
	p.click("dialog button", "Cancel 12 tasks")
	p.showsIn("dialog", "There were 12 when you were asked; nothing has been done yet.")
	p.click("dialog button", "Cancel 13 tasks")
	for _, id := range doomed {
		s.becomes(id, "cancelled")
	}
	p.showsIn(".toasts", "13 tasks cancelled")
	if s.state(kept) != "pending" {
		t.Error("a task that did not match was cancelled")
	}
	// Selected ones: two of them are retried.
	p.fill("Search tasks", "state:cancelled report")
	p.showsIn(".page-head", "13 tasks")
	p.click(".table-tasks input", "Select "+short(doomed[0]))
	p.click(".table-tasks input", "Select "+short(doomed[1]))
	p.click(".bulk button", "Retry 2…")
	p.click("dialog button", "Retry 2 tasks")
	s.until("two are tried again", func() bool {
		found, err := s.c.Search(s.ctx(), "state:pending report", client.SearchOptions{})
		return err == nil && found.Total == 2
	})
}

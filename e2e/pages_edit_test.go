package e2e_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// A waiting task is moved to the top and changed on its page; the queue and the agent that
// takes the task see the change; a concurrent change is reported.
func TestChangeAWaitingTask(t *testing.T) {
	s := newStage(t, "coder", "writer")
	running := s.running("coder", "sleep 10m, first")
	second := s.task("coder", "sleep 10m, second")
	third := s.task("coder", "sleep 10m, third")
	p := s.open("/ui/tasks/" + third)
	p.showsIn(".facts", "2")
	p.click(".task-actions button", "To the top")
	p.until("it is the first in the queue", `[...document.querySelectorAll(".task-actions button")].some((b) => b.title === "It is the first in line.")`)
	lane, err := s.c.Lane(s.ctx(), "coder")
	if err != nil || len(lane.QueuedExecutions) != 2 || lane.QueuedExecutions[0].ID != third {
		t.Errorf("the line of coder: %+v, %v", lane.QueuedExecutions, err)
	}

	p.goTo("/ui/tasks/" + second)
	p.click(".task-actions button", "Change…")
	p.fill("Prompt", "sleep 1ms, rewritten")
	p.choose("Who may take it", "writer")
	now, err := s.c.Task(s.ctx(), second)
	if err != nil {
		t.Fatal(err)
	}
	five := 5
	if _, err := s.c.Edit(s.ctx(), second, api.EditRequest{Revision: now.Revision, Priority: &five}); err != nil {
		t.Fatal(err)
	}
	p.allow("409")
	p.click("dialog button", "Save")
	p.showsIn("dialog", "Somebody changed the task meanwhile")
	p.click("dialog button", "Save")
	done := s.becomes(second, "completed")
	if done.Agent != "writer" || done.Prompt != "sleep 1ms, rewritten" || done.Priority != 5 || done.EditedAt == nil {
		t.Errorf("what was run: %+v", done)
	}
	p.showsIn("h1", "rewritten")
	p.noDialog()

	// It starts before the change is saved.
	p.goTo("/ui/tasks/" + third)
	p.click(".task-actions button", "Change…")
	p.fill("Prompt", "too late")
	if _, err := s.c.Cancel(s.ctx(), running); err != nil {
		t.Fatal(err)
	}
	s.becomes(third, "working")
	p.click("dialog button", "Save")
	p.showsIn("dialog", "The task was not changed")
	p.showsIn("dialog", "is working")
}

// A new task can have everything that the command line offers.
func TestNewTaskWithAllFields(t *testing.T) {
	s := newStage(t, "coder")
	p := s.open("/ui/")
	p.live()
	p.click("header button", "New task")
	p.fill("Prompt", "sleep 1ms, with more")
	p.click("dialog summary", "More")
	p.fill("Tier", "heavy")
	p.fill("Give up after waiting, minutes", "43201")
	p.choose("Thinking", "off")
	p.click("dialog button", "Submit")
	p.showsIn("dialog .wrong", "0 to 43200 minutes")
	p.fill("Give up after waiting, minutes", "5")
	p.click("dialog button", "Submit")
	p.until("its page is shown", `location.pathname.startsWith("/ui/tasks/queue-")`)
	task := s.completed(s.c, p.path()[len("/ui/tasks/"):])
	if task.Tier != "heavy" || task.Thinking == nil || *task.Thinking || task.Source != "web" {
		t.Errorf("%+v", task)
	}
}

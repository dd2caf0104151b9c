package e2e_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/client"
)

// Work is landed from the page of its task. If it needs a user, this page and the first page say
// so, and offer a retry or a drop. The agent has no worktree for it, and so refuses each time.
func TestWorkIsLandedFromThePageOfItsTask(t *testing.T) {
	s := newStage(t, "coder")
	nothing := s.left(1, func(r *signalbox.Result) {
		r.Changes = &signalbox.Changes{Workspace: "folder", BaseBranch: "main", Commits: 1, FilesChanged: 1}
	})
	id := s.left(2, func(r *signalbox.Result) {
		r.Changes = &signalbox.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1}
	})
	p := s.open("/ui/tasks/" + nothing)
	p.showsIn("#prompt-head", "Prompt")
	p.until("changes in the agent's own folder cannot land", `!document.querySelector(".landing")`)

	p.allow("400 (Bad Request)") // because of the invalid name
	p.goTo("/ui/tasks/" + id)
	p.seenAs(look{390, 844, "light"})
	p.until("the branch of its worktree is proposed", `document.querySelector(".landing input").value === "main"`)
	p.fill("Branch", "bad..name")
	p.click(".landing button", "Land")
	p.showsIn(".landing .wrong", "must be the name of a branch")
	p.fill("Branch", "release")
	p.click(".landing button", "Land")
	p.showsIn(".landing .card-head", "needs you")
	p.showsIn(".landing", "It has not landed on release, and needs you: the agent has no worktree of "+id)
	p.until("it fits on a phone", `document.documentElement.scrollWidth <= innerWidth`)
	task, err := s.c.Task(s.ctx(), id)
	if err != nil || task.Landing == nil || task.Landing.LandTask == "" {
		t.Fatalf("%+v, %v", task.Landing, err)
	}
	p.until("the landing task is a link", `[...document.querySelectorAll(".landing a")].some((a) => a.getAttribute("href").endsWith("`+task.Landing.LandTask+`"))`)
	p.click(".landing button", "Try again")
	p.until("another task was to land it", `document.querySelector(".landing .card-head").textContent.includes("needs you") && ![...document.querySelectorAll(".landing a")].some((a) => a.getAttribute("href").endsWith("`+task.Landing.LandTask+`"))`)

	s.until("it needs attention, and nothing else does", func() bool {
		status, err := s.c.Status(s.ctx())
		return err == nil && len(status.Health.Attention) == 1 && status.Health.Attention[0].Kind == "landing_stands"
	})
	if got := s.want(0, "status"); !strings.Contains(got.out, id+" has not landed on release, and needs you") || !strings.Contains(got.out, "signalbox land "+id+" --drop gives up") {
		t.Errorf("status: %s", got.out)
	}
	p.goTo("/ui/")
	p.showsIn(".attention-list", "has not landed on release, and needs you")
	p.until("it fits on a phone", `document.documentElement.scrollWidth <= innerWidth`)
	p.click(".attention-list button", "Land again")
	p.showsIn("main, [role=status], .toasts", "lands next")
	s.until("it is tried a third time, without success", func() bool {
		lands, err := s.c.Search(s.ctx(), "mode:land", client.SearchOptions{})
		task, terr := s.c.Task(s.ctx(), id)
		return err == nil && terr == nil && len(lands.Tasks) == 3 && task.Landing.State == "stands"
	})
	p.showsIn(".attention-list", "has not landed on release, and needs you")
	p.click(".attention-list a", "Open")
	p.at("/ui/tasks/" + id)
	p.click(".landing button", "Drop")
	p.showsIn(".landing .card-head", "dropped")
	p.showsIn(".landing", "It does not land: dropped by")
	p.until("it can be asked for again", `document.querySelector(".landing input").value === "release"`)
	p.goTo("/ui/")
	p.showsIn(".attention", "All is well")
	if got, err := s.c.Search(s.ctx(), "mode:land", client.SearchOptions{}); err != nil || len(got.Tasks) != 3 {
		t.Errorf("landing tasks: %+v, %v", got, err)
	}
}

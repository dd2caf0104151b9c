package httpapi_test

import (
	"github.com/signalbox-ai/signalbox"
)

// landingStory lands the work of a task, and leaves neither agents nor waiting tasks.
func (s *session) landingStory() {
	a := s.AddAgent("claude-2", 1)
	id := s.Submit(`{"prompt":"Fix the login form","agent":"claude-2"}`).QueueID
	s.FinishTask(s.Run(a), signalbox.ReasonCompleted, signalbox.Result{Output: "Fixed.", Changes: &signalbox.Changes{
		Workspace: "worktree", Branch: "signalbox/k2m9", BaseBranch: "main", Commits: 1, FilesChanged: 2, Insertions: 12, Deletions: 3,
	}})
	s.ask("land", "", "/api/queue/"+id+"/land", `{"onto":"main"}`)
	s.ask("land", "A branch that cannot be one", "/api/queue/"+s.ended()+"/land", `{"onto":"--main"}`)
	s.ask("landings", "", "/api/landings", "")
	s.ask("dropLanding", "", "/api/queue/"+id+"/land", "")
	s.Do("DELETE", "/api/agents/claude-2", "").Want(s.T, 204, nil)
	s.Live.Remove("claude-2")
}

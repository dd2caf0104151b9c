package httpapi_test

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// accountStory lets a run meet the limit of its account, closes and opens the account by hand,
// and leaves neither agents nor waiting tasks.
func (s *session) accountStory() {
	s.AddAgent("claude-1", 1)
	a := s.ReportAccount("claude-1", []signalbox.AccountWindow{
		{Name: "five_hour", UsedPercent: 97.5, ResetsAt: s.clock.Now().Add(40 * time.Minute)},
		{Name: "seven_day", UsedPercent: 31},
	})
	id := s.Submit(`{"prompt":"Update the changelog","agent":"claude-1"}`).QueueID
	s.Park(s.Run(a), 40*time.Minute)
	s.ask("gates", "", "/api/gates", "")
	s.ask("accounts", "", "/api/accounts", "")
	s.ask("task", "Parked at a limit of its provider", "/api/queue/"+id, "")
	s.ask("why", "Parked", "/api/queue/"+id+"/why", "")
	s.ask("budgets", "", "/api/budgets", "")
	s.ask("resources", "", "/api/resources", "")
	s.ask("openAccount", "", "/api/accounts/claude-1/open", "")
	s.ask("closeAccount", "", "/api/accounts/claude-1/close", `{"until":"2025-01-17T18:00:00Z","reason":"left for the release"}`)
	s.ask("closeAccount", "An account that is not known", "/api/accounts/claude-9/close", "")
	s.ask("unpark", "", "/api/queue/"+id+"/unpark", "")
	s.ask("unpark", "A task that has ended", "/api/queue/"+s.ended()+"/unpark", "")
	s.Park(s.Run(a), 40*time.Minute)
	s.ask("cancel", "A parked task", "/api/queue/"+id+"/cancel", "")
	s.Do("DELETE", "/api/agents/claude-1", "").Want(s.T, 204, nil)
	s.ask("removeAccount", "While an agent spends it", "/api/accounts/claude-1", "")
	s.Live.Remove("claude-1")
	s.ask("removeAccount", "", "/api/accounts/claude-1", "")
}

// ended returns the id of an ended task.
func (s *session) ended() string {
	var h api.History
	s.Do("GET", "/api/history?limit=1", "").Want(s.T, 200, &h)
	return h.Tasks[0].QueueID
}

package httpapi_test

import "github.com/signalbox-ai/signalbox/internal/httpapi/apitest"

// searchStory finds tasks, and cancels those that match.
func (s *session) searchStory() {
	refreshLive(s.Fixture)
	s.ask("search", "", `/api/search?q=state:ended+agent:coder+since:2h&limit=1`, "")
	s.ask("search", "A word that is wrong", `/api/search?q=agnet:coder`, "")
	s.ask("bulk", "How many it would be", "/api/queue/bulk", `{"query":"state:waiting source:api","action":"cancel"}`)
	s.ask("bulk", "Another number than was expected", "/api/queue/bulk", `{"query":"state:waiting source:api","action":"cancel","expect":100}`)
	s.ask("bulk", "", "/api/queue/bulk", `{"query":"state:failed","action":"retry","expect":0}`)
}

// liveStory comes when the director has stopped: the stream ends once it has
// said what there is.
func (s *session) liveStory() {
	refreshLive(s.Fixture)
	s.Server.SetPlace("k2m9q7rt4v", 41)
	s.ask("live", "", "/api/live", "", apitest.Header("Accept", "text/event-stream"))
	s.ask("live", "From a place that this director does not have", "/api/live", "", apitest.Header("Last-Event-ID", "other.7"))
}

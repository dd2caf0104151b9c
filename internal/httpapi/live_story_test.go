package httpapi_test

import (
	"regexp"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// searchStory searches tasks, and cancels the matches.
func (s *session) searchStory() {
	s.RefreshLive()
	s.ask("search", "", `/api/search?q=state:ended+agent:coder+since:2h&limit=1`, "")
	s.ask("search", "A word that is wrong", `/api/search?q=agnet:coder`, "")
	s.ask("search", "In another order", `/api/search?q=state:ended&sort=-duration&limit=1`, "")
	s.ask("searchCounts", "", "/api/search/counts", `{"queries":["state:waiting","state:failed since:24h"]}`)
	s.ask("searchKeys", "", "/api/search/keys", "")
	s.ask("bulk", "How many it would be", "/api/queue/bulk", `{"query":"state:waiting source:api","action":"cancel"}`)
	s.ask("bulk", "Another number than was expected", "/api/queue/bulk", `{"query":"state:waiting source:api","action":"cancel","expect":100}`)
	s.ask("bulk", "", "/api/queue/bulk", `{"query":"state:failed","action":"retry","expect":0}`)
}

// liveStory runs after the director has stopped, so that the stream ends after the snapshot. Its
// id differs between runs and is replaced.
func (s *session) liveStory() {
	s.RefreshLive()
	from := len(s.exchanges)
	s.ask("live", "", "/api/live", "", apitest.Header("Accept", "text/event-stream"))
	s.ask("live", "From a place that this director does not have", "/api/live", "", apitest.Header("Last-Event-ID", "other.7"))
	for i := range s.exchanges[from:] {
		body := &s.exchanges[from+i].answer.Body
		place := livePlace.FindSubmatch(*body)
		if place == nil {
			s.T.Fatalf("no place in %s", *body)
		}
		*body = []byte(strings.NewReplacer(string(place[1]), "k2m9q7rt4v", "."+string(place[2])+"\n", ".41\n", `"revision":`+string(place[2])+",", `"revision":41,`).Replace(string(*body)))
	}
}

var livePlace = regexp.MustCompile(`(?m)^id: (\w+)\.(\d+)$`)

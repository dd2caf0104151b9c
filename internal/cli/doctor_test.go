package cli_test

import (
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// doctorRoutes are the fake director's routes of directors and doctor. With a paused queue it
// warns, with a full one it fails.
func (f *fake) doctorRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"directors": func(w http.ResponseWriter, _ *http.Request) {
		ends := noon.Add(-7 * time.Minute)
		answer(w, 200, api.Directors{Directors: []api.Director{
			{
				Instance: "alfa:8080", URL: "http://alfa:8080", Version: "1.2.3", StartedAt: noon.Add(-3 * time.Hour), Alive: true, This: true,
				Agents: []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7"},
			},
			{Instance: "bravo:8080", URL: "http://bravo:8080", Version: "1.2.2", StartedAt: noon.Add(-time.Hour), LeaseExpires: &ends, Agents: []string{}},
		}})
	}, "doctor": func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		out := api.Doctor{Checks: []api.Check{{Area: "store", State: "ok", Text: "sqlite: kept\x1b[31m"}}}
		if len(f.paused) > 0 {
			out.Checks = append(out.Checks, api.Check{Area: "queue", State: "warn", Text: "all queues are paused", Cure: "signalbox resume"})
		}
		if f.max == 0 {
			out.Checks = append(out.Checks, api.Check{Area: "queue", State: "fail", Text: "0 of 0 places", Cure: "raise queue.max_size"})
		}
		answer(w, 200, out)
	}}
}

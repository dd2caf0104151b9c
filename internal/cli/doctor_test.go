package cli_test

import (
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
)

// doctoring is the fake director's route of the doctor. With a paused queue it
// warns, with a full one it fails.
func (f *fake) doctoring() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"doctor": func(w http.ResponseWriter, _ *http.Request) {
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

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// The table showed when an agent was last seen, but not that its run was stuck.
func TestAgentsShowsASilentRun(t *testing.T) {
	now := time.Date(2025, 1, 17, 10, 0, 0, 0, time.UTC)
	a := &app{io: IO{Now: func() time.Time { return now }}}
	started := now.Add(-2 * time.Second)
	before := now.Add(-time.Hour)
	g := api.Agent{State: "working", LastProgress: &before, Running: []api.RunningTask{{QueueID: "queue-1", StartedAt: &started}}}
	if got := a.runningText(g); strings.Contains(got, "nothing") {
		t.Errorf("a run that has just begun: %q", got)
	}
	for still, want := range map[time.Duration]string{5 * time.Second: "", 4 * time.Minute: "printed nothing for 4 min"} {
		last := now.Add(-still)
		g := api.Agent{State: "working", LastProgress: &last}
		if got := a.runningText(g); got != want {
			t.Errorf("%s after its last output: %q, want %q", still, got, want)
		}
		g.State = "idle"
		if got := a.runningText(g); got != "" {
			t.Errorf("an idle agent: %q", got)
		}
	}
}

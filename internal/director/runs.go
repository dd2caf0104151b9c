package director

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Runs is what the dispatcher knows of executions under way.
type Runs interface {
	// Output returns what is known of the log of a running task from byte
	// after. When nothing is there yet it waits until there is, the run ends,
	// wait is over or ctx ends. ok is false if no run of that task is
	// followed (the stored result is the truth then).
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
	// Heartbeat notes that an agent was heard, and what it says of itself.
	Heartbeat(name string, beat api.Heartbeat)
	// HeartbeatInterval is how often agents should beat.
	HeartbeatInterval() time.Duration
}

// noRuns stands in where nothing is dispatched.
type noRuns struct{}

func (noRuns) Output(context.Context, string, int64, time.Duration) (api.Output, bool) {
	return api.Output{}, false
}
func (noRuns) Heartbeat(string, api.Heartbeat)  {}
func (noRuns) HeartbeatInterval() time.Duration { return 5 * time.Second }

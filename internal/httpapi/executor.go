package httpapi

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// noAgent returns an error if a name is that of an executor, with a hint on what to do
// instead.
func noAgent(name string) error {
	kind, _ := signalbox.ExecutorKind(name)
	return httpio.Refuse(signalbox.CodeNotFound,
		"signalbox tools tasks lists what it runs, signalbox cancel ID ends one of them, signalbox pause "+kind+" stops it from starting others",
		"%s is not an agent: it is the director's own executor, which runs tool tasks", httpio.Clip(name))
}

// ownQueue is the queue that only an agent, or a part of the executor, serves in its
// director.
func ownQueue(name string) string {
	if kind, ok := signalbox.ExecutorKind(name); ok {
		return kind
	}
	return signalbox.AgentQueue(name)
}

// splitExecutors separates the rows of the director's own executor from those of agents.
func splitExecutors(views []api.Agent) (agents, executors []api.Agent) {
	agents = []api.Agent{}
	for _, v := range views {
		if kind, ok := signalbox.ExecutorKind(v.Name); ok {
			v.Kind = kind
			executors = append(executors, v)
		} else {
			agents = append(agents, v)
		}
	}
	return agents, executors
}

// withoutExecutors removes the director's own executor from a list of live agents.
func withoutExecutors(live []engine.LiveAgent) []engine.LiveAgent {
	return slices.DeleteFunc(slices.Clone(live), func(a engine.LiveAgent) bool { return signalbox.IsExecutor(a.Name) })
}

// toolTaskCounts counts the tool tasks; nil if there are none and there can be none. At
// other directors, running ones are counted by their slots.
func toolTaskCounts(ctx context.Context, e *engine.Engine, peers forward.Peers, c store.Counts, live []engine.LiveAgent) (*api.ToolTaskCounts, error) {
	out := api.ToolTaskCounts{Waiting: c.WaitingCalls()}
	known := out.Waiting > 0
	for _, a := range live {
		if signalbox.IsExecutor(a.Name) {
			known = true
			out.Running += a.InUse
		}
	}
	if !known {
		return nil, nil
	}
	if peers == nil {
		return &out, nil
	}
	slots, err := e.Read().Slots(ctx)
	out.Running = 0
	for i := range slots {
		if signalbox.IsExecutor(slots[i].Agent) {
			out.Running++
		}
	}
	return &out, err
}

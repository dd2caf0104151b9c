package httpapi

import (
	"context"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
)

// Runs is what the dispatcher knows of executions under way.
type Runs interface {
	stream.Runs
	// Heartbeat notes that an agent was heard, and what it says of itself. ok
	// is false where the agent of that name lives at another address.
	Heartbeat(name string, beat api.Heartbeat) (ok bool)
	// Answers asks the agent of that name, at the address that is known,
	// whether it is there.
	Answers(ctx context.Context, name string) bool
	// Workspaces asks an agent for its worktrees. Code CodeAgentDown.
	Workspaces(ctx context.Context, agent string) (api.AgentWorkspaces, error)
	// DiscardWorkspace has an agent discard one. Codes: CodeNotFound; CodeConflict: it is in
	// use, or something would be lost that how does not name; CodeAgentDown.
	DiscardWorkspace(ctx context.Context, agent, name string, how api.DiscardWorkspace) (api.WorkspaceDiscarded, error)
	// HeartbeatInterval is how often agents should beat.
	HeartbeatInterval() time.Duration
}

// allRuns are those that the dispatcher follows, with those of agents that pull
// and those of the director itself; either part may be nil.
type allRuns struct {
	Runs
	pull  Pull
	tools ToolTasks
}

func (r allRuns) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	if r.tools != nil {
		out, ok = r.tools.Output(ctx, id, after, wait)
	}
	if !ok && r.pull != nil {
		out, ok = r.pull.Output(ctx, id, after, wait)
	}
	if ok {
		return out, true
	}
	return r.Runs.Output(ctx, id, after, wait)
}

func (r allRuns) Answers(ctx context.Context, name string) bool {
	if r.pull != nil {
		if there, ok := r.pull.Answers(name); ok {
			return there
		}
	}
	return r.Runs.Answers(ctx, name)
}

// noRuns stands in where nothing is dispatched.
type noRuns struct{}

func (noRuns) Output(context.Context, string, int64, time.Duration) (api.Output, bool) {
	return api.Output{}, false
}
func (noRuns) WholeLog(_ context.Context, t *signalbox.Task, _ int64) (api.AgentOutput, error) {
	return api.AgentOutput{}, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not registered", t.Agent)
}
func (noRuns) Patch(_ context.Context, t *signalbox.Task, _ int64) (io.ReadCloser, error) {
	return nil, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not registered", t.Agent)
}
func (noRuns) Workspaces(_ context.Context, agent string) (api.AgentWorkspaces, error) {
	return api.AgentWorkspaces{}, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not registered", agent)
}
func (noRuns) DiscardWorkspace(_ context.Context, agent, _ string, _ api.DiscardWorkspace) (api.WorkspaceDiscarded, error) {
	return api.WorkspaceDiscarded{}, signalbox.Errorf(signalbox.CodeAgentDown, "agent %s is not registered", agent)
}
func (noRuns) Heartbeat(string, api.Heartbeat) bool { return true }
func (noRuns) Answers(context.Context, string) bool { return false }
func (noRuns) HeartbeatInterval() time.Duration     { return 5 * time.Second }

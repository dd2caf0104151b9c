package httpapi

import (
	"context"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
)

// Runs gives access to executions in flight at the dispatcher.
type Runs interface {
	stream.Runs
	// Heartbeat records a heartbeat of an agent. ok is false if the agent with that
	// name is at another address.
	Heartbeat(name string, beat api.Heartbeat) (ok bool)
	// Answers reports whether the agent with that name answers at its known address.
	Answers(ctx context.Context, name string) bool
	// Workspaces returns the worktrees of an agent. Errors: CodeAgentDown.
	Workspaces(ctx context.Context, agent string) (api.AgentWorkspaces, error)
	// DiscardWorkspace makes an agent discard a worktree. Errors: CodeNotFound; CodeConflict
	// if it is in use, or if something would be lost that how does not name; CodeAgentDown.
	DiscardWorkspace(ctx context.Context, agent, name string, how api.DiscardWorkspace) (api.WorkspaceDiscarded, error)
	// HeartbeatInterval is the interval at which agents should send heartbeats.
	HeartbeatInterval() time.Duration
}

// allRuns combines the runs that the dispatcher follows, those of agents that pull, and those
// of the director itself. Each part may be nil.
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

// noRuns is used if nothing is dispatched.
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

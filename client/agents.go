package client

import (
	"context"

	"github.com/signalbox-ai/signalbox/api"
)

// Agents returns the agents and what they do.
func (c *Client) Agents(ctx context.Context) ([]api.Agent, error) {
	out, err := c.AgentsAndExecutors(ctx)
	return out.Agents, err
}

// AgentsAndExecutors is Agents with the director's own executors, which run
// tool calls that are tasks.
func (c *Client) AgentsAndExecutors(ctx context.Context) (api.Agents, error) {
	return ask[api.Agents](ctx, c, get("/api/agents", nil))
}

// RegisterAgent makes an agent known to the director, or tells it the new
// address of one that is known. Code conflict: the name belongs to another.
func (c *Client) RegisterAgent(ctx context.Context, agent api.RegisterAgent) (api.Agent, error) {
	return ask[api.Agent](ctx, c, post("/api/agents", agent))
}

// Heartbeat says that an agent lives and what it does; the answer says when
// to beat again. Code not_found: the director does not know the agent, which
// has to register.
func (c *Client) Heartbeat(ctx context.Context, name string, beat api.Heartbeat) (api.HeartbeatAnswer, error) {
	return ask[api.HeartbeatAnswer](ctx, c, post(agentPath(name, "/heartbeat"), beat))
}

// RemoveAgent makes the director forget an agent. Codes: not_found,
// conflict (it runs a task, or stands in the configuration).
func (c *Client) RemoveAgent(ctx context.Context, name string) error {
	return c.do(ctx, remove(agentPath(name, "")), nil)
}

// ClearLane cancels all that waits in the queue of an agent.
func (c *Client) ClearLane(ctx context.Context, name string) (api.LaneCleared, error) {
	return ask[api.LaneCleared](ctx, c, post(agentPath(name, "/queue/clear"), nil))
}

// ReleaseLane takes the slots of an agent away from the tasks that hold
// them, which end as released; what they still report is discarded.
func (c *Client) ReleaseLane(ctx context.Context, name string) (api.Released, error) {
	return ask[api.Released](ctx, c, post(agentPath(name, "/queue/release"), nil))
}

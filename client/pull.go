package client

import (
	"context"
	"net/url"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Claim asks for a task as an agent that pulls, and waits that long for one.
// Where none came, the answer is empty. Codes: not_found (the director does not
// know the agent, which has to register), conflict (another one has its name).
func (c *Client) Claim(ctx context.Context, name string, claim api.PullClaim, wait time.Duration) (api.PullAnswer, error) {
	req := post(agentPath(name, "/claim"), claim)
	req.query, req.wait = url.Values{"wait": {wait.String()}}, wait
	return ask[api.PullAnswer](ctx, c, req)
}

// Report says how a task fares that the agent has claimed. It returns when the
// director has stored it. Codes: stale_fence (the execution has been taken
// away: there is nothing more to say about it), not_found (so is its task, or
// the agent is not known), conflict (another agent has its name).
func (c *Client) Report(ctx context.Context, name, queueID string, report api.PullReport) (api.PullReported, error) {
	return ask[api.PullReported](ctx, c, post(agentPath(name, "/tasks/"+url.PathEscape(queueID)+"/report"), report))
}

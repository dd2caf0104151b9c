package client

import (
	"context"
	"net/url"

	"github.com/signalbox-ai/signalbox/api"
)

// Lane returns what an agent runs and what waits for it. Code not_found.
func (c *Client) Lane(ctx context.Context, agent string) (api.Lane, error) {
	return ask[api.Lane](ctx, c, get(agentPath(agent, "/queue"), nil))
}

// SessionsOptions say which conversations Sessions returns. Empty fields do
// not restrict.
type SessionsOptions struct {
	Agent  string
	Source string // by which way the task came that began it
	Owner  string // who began it, such as user:ID
	State  string // active (which "" is too), archived, gone or all
	Limit  int    // of one page, 1 to 1000; 0: 100
	Before string // cursor: Next of the page before
}

// Sessions returns one page of the conversations of the agents, the last used
// first.
func (c *Client) Sessions(ctx context.Context, opts SessionsOptions) (api.Sessions, error) {
	query := values("agent", opts.Agent, "source", opts.Source, "owner", opts.Owner, "state", opts.State,
		"limit", number(opts.Limit), "before", opts.Before)
	return ask[api.Sessions](ctx, c, get("/api/sessions", query))
}

// ArchiveSession puts a conversation away: chats no longer go on with it.
// Codes: not_found, conflict (a turn of it waits or runs).
func (c *Client) ArchiveSession(ctx context.Context, id string) (api.Session, error) {
	return c.sessionCall(ctx, id, "/archive")
}

// RestoreSession makes a conversation the current one of its agent again.
// Codes: not_found, conflict (the agent no longer has it).
func (c *Client) RestoreSession(ctx context.Context, id string) (api.Session, error) {
	return c.sessionCall(ctx, id, "/restore")
}

func (c *Client) sessionCall(ctx context.Context, id, verb string) (api.Session, error) {
	path := "/api/sessions/" + url.PathEscape(id) + verb
	return ask[api.Session](ctx, c, post(path, nil))
}

// ActivitiesOptions say which activities Activities returns. Empty fields do
// not restrict.
type ActivitiesOptions struct {
	Agent  string
	Type   string // chat_start, task_start, schedule_start or agent_collaboration
	State  string // queued, started, completed or failed
	Limit  int    // of one page, 1 to 1000; 0: 100
	Before string // cursor: Next of the page before
}

// Activities returns one page of what was done, newest first.
func (c *Client) Activities(ctx context.Context, opts ActivitiesOptions) (api.Activities, error) {
	query := values("agent", opts.Agent, "type", opts.Type, "state", opts.State, "limit", number(opts.Limit), "before", opts.Before)
	return ask[api.Activities](ctx, c, get("/api/activities", query))
}

// Activity returns an activity with the tree below it. Code not_found.
func (c *Client) Activity(ctx context.Context, id string) (api.Activity, error) {
	return ask[api.Activity](ctx, c, get("/api/activities/"+url.PathEscape(id), nil))
}

// OpenTerminal returns a ticket for one terminal of an agent: the first
// message on the WebSocket at its URL carries it. Codes: not_found,
// unsupported (terminals are off), agent_down.
func (c *Client) OpenTerminal(ctx context.Context, agent string) (api.TerminalTicket, error) {
	return ask[api.TerminalTicket](ctx, c, post(agentPath(agent, "/terminal"), nil))
}

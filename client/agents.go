package client

import (
	"context"
	"iter"
	"net/url"
	"time"

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

// RegisterAgent registers an agent at the director, or updates the address of a
// known one. Code conflict: the name belongs to another agent.
func (c *Client) RegisterAgent(ctx context.Context, agent api.RegisterAgent) (api.Agent, error) {
	return ask[api.Agent](ctx, c, post("/api/agents", agent))
}

// Heartbeat reports that an agent is alive and what it does. The answer says when
// to send the next one. Code not_found: the director does not know the agent,
// which has to register.
func (c *Client) Heartbeat(ctx context.Context, name string, beat api.Heartbeat) (api.HeartbeatAnswer, error) {
	return ask[api.HeartbeatAnswer](ctx, c, post(agentPath(name, "/heartbeat"), beat))
}

// RemoveAgent removes an agent from the director. Codes: not_found, conflict (it
// runs a task, or it is in the configuration).
func (c *Client) RemoveAgent(ctx context.Context, name string) error {
	return c.do(ctx, remove(agentPath(name, "")), nil)
}

// Workspaces returns the worktrees that one agent has made; "" means all agents.
func (c *Client) Workspaces(ctx context.Context, agent string) (api.Workspaces, error) {
	return ask[api.Workspaces](ctx, c, get("/api/workspaces", values("agent", agent)))
}

// DiscardWorkspace discards a worktree of an agent. Codes: not_found; conflict: it is in use,
// or something would be lost that how.Seen does not cover; agent_down; unsupported: the agent
// pulls its tasks and cannot be asked.
func (c *Client) DiscardWorkspace(ctx context.Context, agent, name string, how api.DiscardWorkspace) (api.WorkspaceDiscarded, error) {
	query := values("seen", how.Seen)
	if how.DeleteBranch {
		query.Set("delete_branch", "true")
	}
	q := remove(agentPath(agent, "/workspaces/"+url.PathEscape(name)))
	q.query = query
	return ask[api.WorkspaceDiscarded](ctx, c, q)
}

// ClearLane cancels all tasks that wait in the queue of an agent.
func (c *Client) ClearLane(ctx context.Context, name string) (api.LaneCleared, error) {
	return ask[api.LaneCleared](ctx, c, post(agentPath(name, "/queue/clear"), nil))
}

// ReleaseLane releases the slots of an agent. The tasks that hold them end as
// released, and their later reports do not count.
func (c *Client) ReleaseLane(ctx context.Context, name string) (api.Released, error) {
	return ask[api.Released](ctx, c, post(agentPath(name, "/queue/release"), nil))
}

// Lane returns what an agent runs and what waits for it. Code not_found.
func (c *Client) Lane(ctx context.Context, agent string) (api.Lane, error) {
	return ask[api.Lane](ctx, c, get(agentPath(agent, "/queue"), nil))
}

// SessionsOptions select the conversations that Sessions returns. Empty fields do
// not restrict.
type SessionsOptions struct {
	Agent  string
	Source string // source of the task that began it
	Owner  string // who began it, such as user:ID
	State  string // active, archived, gone or all; "": active
	Limit  int    // of one page, 1 to 1000; 0: 100
	Before string // cursor: Next of the page before
}

// Sessions returns one page of the conversations of the agents, last used first.
func (c *Client) Sessions(ctx context.Context, opts SessionsOptions) (api.Sessions, error) {
	query := values("agent", opts.Agent, "source", opts.Source, "owner", opts.Owner, "state", opts.State,
		"limit", number(opts.Limit), "before", opts.Before)
	return ask[api.Sessions](ctx, c, get("/api/sessions", query))
}

// ArchiveSession archives a conversation: chats no longer continue it.
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

// ActivitiesOptions select the activities that Activities returns. Empty fields do
// not restrict.
type ActivitiesOptions struct {
	Agent  string
	Type   string // chat_start, task_start, schedule_start or agent_collaboration
	State  string // queued, started, completed or failed
	Limit  int    // of one page, 1 to 1000; 0: 100
	Before string // cursor: Next of the page before
}

// Activities returns one page of activities, newest first.
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

// Claim requests a task for an agent that pulls, and waits for up to wait. The
// answer is empty if there was none. Codes: not_found (the director does not know
// the agent, which has to register), conflict (another agent has its name).
func (c *Client) Claim(ctx context.Context, name string, claim api.PullClaim, wait time.Duration) (api.PullAnswer, error) {
	req := post(agentPath(name, "/claim"), claim)
	req.query, req.wait = url.Values{"wait": {wait.String()}}, wait
	return ask[api.PullAnswer](ctx, c, req)
}

// Report reports on a task that the agent has claimed. It returns when the
// director has stored the report. Codes: stale_fence (the execution no longer
// holds its slot; no further reports are needed), not_found (the task is gone or
// the agent is not known), conflict (another agent has its name).
func (c *Client) Report(ctx context.Context, name, queueID string, report api.PullReport) (api.PullReported, error) {
	return ask[api.PullReported](ctx, c, post(agentPath(name, "/tasks/"+url.PathEscape(queueID)+"/report"), report))
}

// SchedulesOptions select the schedules that Schedules returns. Empty fields do not
// restrict.
type SchedulesOptions struct {
	Agent    string
	Name     string
	Enabled  string // true or false
	Outcomes int    // firings to show of each, at most 20
	Limit    int    // of one page, 1 to 1000; 0: 100
	After    string // cursor: Next of the page before
}

// Schedules returns one page of the schedules, by name.
func (c *Client) Schedules(ctx context.Context, opts SchedulesOptions) (api.Schedules, error) {
	query := values("agent", opts.Agent, "name", opts.Name, "enabled", opts.Enabled, "outcomes", number(opts.Outcomes),
		"limit", number(opts.Limit), "after", opts.After)
	return ask[api.Schedules](ctx, c, get("/api/schedules", query))
}

// AllSchedules iterates over all pages of Schedules. An error is the last pair.
func (c *Client) AllSchedules(ctx context.Context, opts SchedulesOptions) iter.Seq2[api.Schedule, error] {
	return pages(opts.After, func(after string) ([]api.Schedule, string, error) {
		opts.After = after
		page, err := c.Schedules(ctx, opts)
		return page.Schedules, page.Next, err
	})
}

// Schedule returns a schedule by its id or name, with its newest firings.
func (c *Client) Schedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, get(schedulePath(ref, ""), nil))
}

// CreateSchedule creates a schedule. Codes: validation_error with the field,
// not_found (the agent), conflict (the name is taken).
func (c *Client) CreateSchedule(ctx context.Context, s api.NewSchedule) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post("/api/schedules", s))
}

// PutSchedule replaces a schedule. Codes: those of CreateSchedule, forbidden (it has
// another owner), conflict (it is in the director's configuration).
func (c *Client) PutSchedule(ctx context.Context, ref string, s api.NewSchedule) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, put(schedulePath(ref, ""), s))
}

// RemoveSchedule removes a schedule. Its tasks are kept.
func (c *Client) RemoveSchedule(ctx context.Context, ref string) error {
	return c.do(ctx, remove(schedulePath(ref, "")), nil)
}

// EnableSchedule lets a schedule fire from now on.
func (c *Client) EnableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post(schedulePath(ref, "/enable"), nil))
}

// DisableSchedule stops a schedule from firing.
func (c *Client) DisableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post(schedulePath(ref, "/disable"), nil))
}

// TriggerSchedule fires a schedule now, in addition to its instants. It is not
// repeated after a lost reply: Executions has the outcome. Codes: not_found,
// forbidden, queue_full, conflict (a firing of it is open, its previous task has
// not ended and its overlap policy is skip, or the submit was refused).
func (c *Client) TriggerSchedule(ctx context.Context, ref string) (api.Triggered, error) {
	return ask[api.Triggered](ctx, c, post(schedulePath(ref, "/trigger"), nil))
}

// Executions returns the firings of a schedule, newest first; limit is 1 to
// 100, 0 is 20.
func (c *Client) Executions(ctx context.Context, ref string, limit int) (api.Executions, error) {
	return ask[api.Executions](ctx, c, get(schedulePath(ref, "/executions"), values("limit", number(limit))))
}

// CheckCron says what a cron expression means in a time zone ("": that of the
// director's schedules), with its next n instants (0: 3).
func (c *Client) CheckCron(ctx context.Context, expression, timezone string, n int) (api.CronCheck, error) {
	query := values("expression", expression, "timezone", timezone, "n", number(n))
	return ask[api.CronCheck](ctx, c, get("/api/cron", query))
}

func schedulePath(ref, below string) string { return "/api/schedules/" + url.PathEscape(ref) + below }

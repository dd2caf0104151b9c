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

// Workspaces returns the worktrees that agents have made, of one agent or ("") of all.
func (c *Client) Workspaces(ctx context.Context, agent string) (api.Workspaces, error) {
	return ask[api.Workspaces](ctx, c, get("/api/workspaces", values("agent", agent)))
}

// DiscardWorkspace discards a worktree of an agent. Codes: not_found; conflict: it is in use,
// or something would be lost that how.Seen does not stand for; agent_down; unsupported: the
// agent asks for its tasks itself, and cannot be asked.
func (c *Client) DiscardWorkspace(ctx context.Context, agent, name string, how api.DiscardWorkspace) (api.WorkspaceDiscarded, error) {
	query := values("seen", how.Seen)
	if how.DeleteBranch {
		query.Set("delete_branch", "true")
	}
	q := remove(agentPath(agent, "/workspaces/"+url.PathEscape(name)))
	q.query = query
	return ask[api.WorkspaceDiscarded](ctx, c, q)
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

// SchedulesOptions say which schedules Schedules returns. Empty fields do not
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

// AllSchedules goes through all pages of Schedules. An error is its last pair.
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

// CreateSchedule makes a schedule. Codes: validation_error with the field,
// not_found (the agent), conflict (the name is taken).
func (c *Client) CreateSchedule(ctx context.Context, s api.NewSchedule) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post("/api/schedules", s))
}

// PutSchedule changes a schedule: the whole of it. Codes: those of
// CreateSchedule, forbidden (it is somebody else's), conflict (it stands in the
// director's configuration).
func (c *Client) PutSchedule(ctx context.Context, ref string, s api.NewSchedule) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, put(schedulePath(ref, ""), s))
}

// RemoveSchedule forgets a schedule. Its tasks stay.
func (c *Client) RemoveSchedule(ctx context.Context, ref string) error {
	return c.do(ctx, remove(schedulePath(ref, "")), nil)
}

// EnableSchedule lets a schedule fire from now on.
func (c *Client) EnableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post(schedulePath(ref, "/enable"), nil))
}

// DisableSchedule lets a schedule fire no more.
func (c *Client) DisableSchedule(ctx context.Context, ref string) (api.Schedule, error) {
	return ask[api.Schedule](ctx, c, post(schedulePath(ref, "/disable"), nil))
}

// TriggerSchedule fires a schedule now, beside its instants. A reply that is
// lost is not asked for again: Executions has what became of it. Codes:
// not_found, forbidden, queue_full, conflict (a firing of it is open, or its
// task before has not ended and it is to skip, or the submit was refused).
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

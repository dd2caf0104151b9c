package api

import "time"

// Error is the body of every error answer.
type Error struct {
	Error      string   `json:"error"`                 // code
	Message    string   `json:"message"`               // what was wrong, what was expected
	Field      string   `json:"field,omitempty"`       // part of the request that is wrong
	Hint       string   `json:"hint,omitempty"`        // what to do
	Retryable  bool     `json:"retryable"`             // the same request may succeed later
	RetryAfter int      `json:"retry_after,omitempty"` // seconds, as in the Retry-After header
	RequestID  string   `json:"request_id,omitempty"`
	Matches    []string `json:"matches,omitempty"` // for ambiguous
}

// Status is the answer to GET /status of a director.
type Status struct {
	Type          string      `json:"type"`       // "view"
	Interfaces    []string    `json:"interfaces"` // statusable, observable, taskable
	Version       string      `json:"version"`
	State         string      `json:"state"` // running or draining
	UptimeSeconds float64     `json:"uptime_seconds"`
	Queue         QueueStatus `json:"queue"`
	Agents        AgentCounts `json:"agents"`
	// Tools counts the tool calls that are tasks, if the director runs any.
	Tools *ToolTaskCounts `json:"tool_tasks,omitempty"`
	Store StoreStatus     `json:"store"`
	Open  bool            `json:"open"` // no token is required
	// Health is the first sentence of the dashboard.
	Health    *Verdict         `json:"health,omitempty"`
	Scheduler *SchedulerCounts `json:"scheduler,omitempty"` // absent if no scheduler runs here
}

// SchedulerCounts is the scheduler block of Status.
type SchedulerCounts struct {
	Schedules int        `json:"schedules"`
	Enabled   int        `json:"enabled"`
	Failing   int        `json:"failing"` // enabled schedules whose newest task failed, or whose newest firing should have created one but did not
	NextRun   *time.Time `json:"next_run,omitempty"`
}

// QueueStatus is the queue block of Status.
type QueueStatus struct {
	Depth            int   `json:"depth"` // pending tasks, without tool calls
	MaxSize          int   `json:"max_size"`
	OldestAgeSeconds int64 `json:"oldest_age_seconds"`
	DispatchedCount  int   `json:"dispatched_count"`
}

// AgentCounts says how many agents there are.
type AgentCounts struct {
	Total   int `json:"total"`
	Up      int `json:"up"`
	Idle    int `json:"idle"`
	Working int `json:"working"`
}

// StoreStatus describes the store and its guarantees.
type StoreStatus struct {
	Kind       string `json:"kind"`
	Durability string `json:"durability"`
}

// Agents is the answer to GET /api/agents.
type Agents struct {
	Agents []Agent `json:"agents"`
	// Executors are the director's own and run tool calls that are tasks. They are
	// not agents, and nothing can be submitted to them. Absent without tools.
	Executors []Agent `json:"executors,omitempty"`
}

// Agent is an agent as the director sees it now.
type Agent struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	URL     string `json:"url,omitempty"` // absent for executors and agents that pull
	State   string `json:"state"`         // idle, working, withheld (busy with something else, or not known to be free), closed, down
	Message string `json:"message,omitempty"`
	Slots   int    `json:"slots"`
	InUse   int    `json:"in_use"`
	Fencing bool   `json:"fencing"`
	Source  string `json:"source"` // config, registered, discovered, child, pull, internal
	Version string `json:"version,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
	Waiting int    `json:"waiting"` // pending tasks in its own queue
	// LastHeard is when it last answered (in the live stream it is updated only with
	// other changes while an agent is idle and on time). LastProgress is when its
	// running task last printed something.
	LastHeard    *time.Time    `json:"last_heard,omitempty"`
	LastProgress *time.Time    `json:"last_progress,omitempty"`
	Running      []RunningTask `json:"running,omitempty"`
	// The bypass: isolated executions in addition to the slots.
	IsolatedSlots int             `json:"isolated_slots,omitempty"`
	Isolated      []RunningTask   `json:"isolated,omitempty"`
	Terminal      bool            `json:"terminal,omitempty"` // it offers a terminal
	Terminals     []AgentTerminal `json:"terminals,omitempty"`
	Closed        *AgentClosed    `json:"closed,omitempty"` // it temporarily gets no tasks
}

// AgentClosed says why an agent temporarily gets no tasks: it failed in a way that
// is caused by the agent, not by its tasks.
type AgentClosed struct {
	Reason   string    `json:"reason"`
	Failures int       `json:"failures"` // in a row
	Since    time.Time `json:"since"`
	RetryAt  time.Time `json:"retry_at,omitzero"` // when it is tried with one task; absent: with the next task
}

// RunningTask is a task in a slot.
type RunningTask struct {
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"`
	Slot          int        `json:"slot"`
	Fence         int64      `json:"fence"`
	PromptPreview string     `json:"prompt_preview,omitempty"`
	StartedAt     *time.Time `json:"started_at,omitempty"`
	Withheld      bool       `json:"withheld,omitempty"` // the task has ended as lost; the agent has not reported the slot free
	Note          string     `json:"note,omitempty"`     // the problem that its agent reports
}

// RegisterAgent is the body of POST /api/agents: 201, or 200 if the agent was
// known and at most its address changed.
type RegisterAgent struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	URL     string `json:"url,omitempty"` // http(s)://host:port; empty for an agent that pulls
	Slots   int    `json:"slots,omitempty"`
	Fencing bool   `json:"fencing,omitempty"`
	Proof   bool   `json:"proof,omitempty"` // the agent proves on each connection that it knows token; nothing is sent to url before that
	Token   string `json:"token,omitempty"` // which the director must present; never returned
	Version string `json:"version,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
	Child   bool   `json:"child,omitempty"` // started by signalbox up on the director's own host

	// Pull says that the agent cannot be connected to and polls for its tasks.
	// Instance distinguishes it from others with the same name and does not change
	// with a restart: 8 to 64 letters, digits or hyphens.
	Pull     bool   `json:"pull,omitempty"`
	Instance string `json:"instance,omitempty"`
}

// Heartbeat is the body of POST /api/agents/{name}/heartbeat.
type Heartbeat struct {
	State        string             `json:"state"`         // idle or working; stopping: it goes away for a while
	URL          string             `json:"url,omitempty"` // as registered; 409 if it differs
	CurrentTasks []AgentCurrentTask `json:"current_tasks,omitempty"`
	Account      *AgentAccount      `json:"account,omitempty"` // as in AgentStatus; absent: unchanged
	Full         string             `json:"full,omitempty"`    // as in AgentStatus

	// For an agent that pulls: its instance and all its executions.
	Instance string    `json:"instance,omitempty"`
	Runs     []PullRun `json:"runs,omitempty"`
}

// HeartbeatAnswer tells the agent when to send the next heartbeat.
type HeartbeatAnswer struct {
	IntervalSeconds int        `json:"interval_seconds"`
	Stop            []PullStop `json:"stop,omitempty"` // for an agent that pulls: runs to end
}

// LaneCleared is the answer to POST /api/agents/{name}/queue/clear.
type LaneCleared struct {
	Status       string `json:"status"` // "cleared"
	Agent        string `json:"agent"`
	ClearedCount int    `json:"cleared_count"`
}

// Released is the answer to POST /api/agents/{name}/queue/release.
type Released struct {
	Status     string   `json:"status"` // "released"
	Agent      string   `json:"agent"`
	WasRunning bool     `json:"was_running"`
	Warning    string   `json:"warning,omitempty"`
	QueueIDs   []string `json:"queue_ids,omitempty"` // tasks that lost their slot
}

// Health is the answer to GET /healthz and GET /readyz.
type Health struct {
	Status string `json:"status"` // ok, or what is wrong
}

// Event is one event of GET /api/events: the data of a server-sent event whose id
// is seq and whose name is kind. A stream has no gaps. If events are missing, an
// event named reset comes first, with the seq at which the stream continues.
type Event struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`
	QueueID  string    `json:"queue_id,omitempty"`
	State    string    `json:"state,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Fence    int64     `json:"fence,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	Source   string    `json:"source,omitempty"`
	By       string    `json:"by,omitempty"`
	Owner    string    `json:"owner,omitempty"`    // who submitted the task
	Schedule string    `json:"schedule,omitempty"` // name of the schedule that it is about
	RetryOf  string    `json:"retry_of,omitempty"` // submit: the task that it repeats
	Account  string    `json:"account,omitempty"`  // account: name of the account

	// Events requested with ?include= are transient: they have no seq and are not
	// replayed after a reconnect.
	Position  int    `json:"position,omitempty"`  // position: its place in line
	After     int64  `json:"after,omitempty"`     // output: position of text in the whole log
	Text      string `json:"text,omitempty"`      // output
	Truncated bool   `json:"truncated,omitempty"` // output: earlier output is omitted
}

// DirectorFile is ~/.signalbox/director.json, in which a running director publishes
// how to reach it.
type DirectorFile struct {
	URL       string    `json:"url"`
	PID       int       `json:"pid"`
	Data      string    `json:"data"`
	StartedAt time.Time `json:"started_at"`
	TokenFile string    `json:"token_file,omitempty"` // where the CLI of the same user finds the token
}

// Directors is the answer to GET /api/directors, by instance.
type Directors struct {
	Directors []Director `json:"directors"`
}

// Director is one of the directors that share a store.
type Director struct {
	Instance  string    `json:"instance"`
	URL       string    `json:"url,omitempty"` // where the other directors reach it
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	// Alive says that its lease is valid; LeaseExpires is when the lease ends unless
	// renewed. The only director of a store has no lease.
	Alive        bool       `json:"alive"`
	LeaseExpires *time.Time `json:"lease_expires_at,omitempty"`
	Draining     bool       `json:"draining,omitempty"` // it is about to stop and accepts no more agents
	// Agents are the agents that it dispatches to, limited to those that the caller may use.
	Agents []string `json:"agents"`
	This   bool     `json:"this,omitempty"` // it is the director that answers
}

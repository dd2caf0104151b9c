package api

import "time"

// Error is the body of every answer that is not a success.
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
	// Tools are the tool calls that are tasks, where there can be any.
	Tools *ToolTaskCounts `json:"tool_tasks,omitempty"`
	Store StoreStatus     `json:"store"`
	Open  bool            `json:"open"` // no token is asked for
	// Health is the sentence that the pages begin with.
	Health    *Verdict         `json:"health,omitempty"`
	Scheduler *SchedulerCounts `json:"scheduler,omitempty"` // absent where none runs here
}

// SchedulerCounts is the scheduler block of Status.
type SchedulerCounts struct {
	Schedules int        `json:"schedules"`
	Enabled   int        `json:"enabled"`
	Failing   int        `json:"failing"` // enabled ones whose newest task failed, or whose newest firing should have made one and did not
	NextRun   *time.Time `json:"next_run,omitempty"`
}

// QueueStatus is the queue block of Status.
type QueueStatus struct {
	Depth            int   `json:"depth"` // pending tasks, tool calls apart
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

// StoreStatus says what the store is and promises.
type StoreStatus struct {
	Kind       string `json:"kind"`
	Durability string `json:"durability"`
}

// Agents is the answer to GET /api/agents.
type Agents struct {
	Agents []Agent `json:"agents"`
	// Executors are the director's own, which run tool calls that are tasks;
	// they are no agents, and nothing can be submitted to them. Where there are
	// no tools there is none.
	Executors []Agent `json:"executors,omitempty"`
}

// Agent is an agent as the director sees it now.
type Agent struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	URL     string `json:"url,omitempty"` // an executor has none, nor has an agent that pulls
	State   string `json:"state"`         // idle, working, withheld (busy with something else, or not yet known to be free), closed, down
	Message string `json:"message,omitempty"`
	Slots   int    `json:"slots"`
	InUse   int    `json:"in_use"`
	Fencing bool   `json:"fencing"`
	Source  string `json:"source"` // config, registered, discovered, child, pull, internal
	Version string `json:"version,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
	Waiting int    `json:"waiting"` // pending tasks in its own queue
	// LastHeard is when it last answered anything (in the live stream, of an idle
	// agent that is on time: by its last change); LastProgress when the task that
	// it runs last printed anything.
	LastHeard    *time.Time    `json:"last_heard,omitempty"`
	LastProgress *time.Time    `json:"last_progress,omitempty"`
	Running      []RunningTask `json:"running,omitempty"`
	// The bypass: isolated executions beside the slots.
	IsolatedSlots int             `json:"isolated_slots,omitempty"`
	Isolated      []RunningTask   `json:"isolated,omitempty"`
	Terminal      bool            `json:"terminal,omitempty"` // it offers one
	Terminals     []AgentTerminal `json:"terminals,omitempty"`
	Closed        *AgentClosed    `json:"closed,omitempty"` // it is given nothing for a while
}

// AgentClosed says why an agent is given nothing for a while: it failed, in a
// way that speaks of the agent and not of its tasks.
type AgentClosed struct {
	Reason   string    `json:"reason"`
	Failures int       `json:"failures"` // in a row
	Since    time.Time `json:"since"`
	RetryAt  time.Time `json:"retry_at,omitzero"` // it is tried with one task then; absent: the next task tries it
}

// RunningTask is a task in a slot.
type RunningTask struct {
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"`
	Slot          int        `json:"slot"`
	Fence         int64      `json:"fence"`
	PromptPreview string     `json:"prompt_preview,omitempty"`
	StartedAt     *time.Time `json:"started_at,omitempty"`
	Withheld      bool       `json:"withheld,omitempty"` // it has ended here as lost; the agent has not said that it is free
	Note          string     `json:"note,omitempty"`     // the trouble that its agent tells of
}

// RegisterAgent is the body of POST /api/agents: 201, or 200 when the agent
// was known and nothing but its address changed.
type RegisterAgent struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	URL     string `json:"url,omitempty"` // http(s)://host:port; none for an agent that pulls
	Slots   int    `json:"slots,omitempty"`
	Fencing bool   `json:"fencing,omitempty"`
	Proof   bool   `json:"proof,omitempty"` // it proves on each connection that it knows Token; nothing is sent to url before that
	Token   string `json:"token,omitempty"` // that the director must present; never returned
	Version string `json:"version,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
	Child   bool   `json:"child,omitempty"` // started by signalbox up on the director's own host

	// Pull says that nobody can connect to the agent: it asks for its tasks.
	// Instance tells it from others that go by its name, and stays the same
	// when it is restarted: 8 to 64 letters, digits or hyphens.
	Pull     bool   `json:"pull,omitempty"`
	Instance string `json:"instance,omitempty"`
}

// Heartbeat is the body of POST /api/agents/{name}/heartbeat.
type Heartbeat struct {
	State        string             `json:"state"`         // idle or working; stopping: it will not be back for a while
	URL          string             `json:"url,omitempty"` // as registered: where it differs from what is known, 409
	CurrentTasks []AgentCurrentTask `json:"current_tasks,omitempty"`
	Account      *AgentAccount      `json:"account,omitempty"` // as in AgentStatus; absent: as it was
	Full         string             `json:"full,omitempty"`    // as in AgentStatus

	// Of an agent that pulls: who it is, and all executions in its hands.
	Instance string    `json:"instance,omitempty"`
	Runs     []PullRun `json:"runs,omitempty"`
}

// HeartbeatAnswer tells the agent when to beat again.
type HeartbeatAnswer struct {
	IntervalSeconds int        `json:"interval_seconds"`
	Stop            []PullStop `json:"stop,omitempty"` // to an agent that pulls: runs to end
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

// Event is one event of GET /api/events, in the data of a server-sent event
// whose id is seq and whose name is kind. A stream is gap-free; where it
// cannot be, an event named reset comes first, with the seq at which the
// stream goes on.
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
	Account  string    `json:"account,omitempty"`  // account: its name

	// The events that a reader asks for with ?include= are of the moment: they
	// have no seq and are not repeated to one that comes back.
	Position  int    `json:"position,omitempty"`  // position: its place in line
	After     int64  `json:"after,omitempty"`     // output: position of text in the whole log
	Text      string `json:"text,omitempty"`      // output
	Truncated bool   `json:"truncated,omitempty"` // output: what lies before it is left out
}

// DirectorFile is ~/.signalbox/director.json, where a running director says
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

// Director is one of the directors over a store.
type Director struct {
	Instance  string    `json:"instance"`
	URL       string    `json:"url,omitempty"` // where the other directors reach it
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	// Alive says that its lease holds; LeaseExpires is when it ends unless it is
	// renewed. A director that is alone has no lease.
	Alive        bool       `json:"alive"`
	LeaseExpires *time.Time `json:"lease_expires_at,omitempty"`
	Draining     bool       `json:"draining,omitempty"` // it is about to stop, and takes no more agents
	// Agents are those that it dispatches to, of those that the caller may use.
	Agents []string `json:"agents"`
	This   bool     `json:"this,omitempty"` // it is the one that answers
}

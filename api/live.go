package api

import "time"

// Live is the data of the live stream, GET /api/live, which feeds the dashboard,
// signalbox top and every --watch: a snapshot, then its changes, as server-sent
// events.
//
//	event     id        data
//	snapshot  revision  Live: everything
//	change    revision  Live: the changed entities, complete, and the keys of removed ones
//	resync    revision  Live: everything again, because the changes in between are no longer known
//	beat                Beat: nothing changed, and the director is alive
//
// Revisions grow by one from event to event. An entity changes at most five
// times a second. A reader that reconnects with Last-Event-ID gets what it missed
// as one change, or a resync. There is at least one event per second. All counts
// of one event are consistent with one state of the store.
//
// Entities that a reader may not see are omitted. Health and Totals are the same
// for all readers, as in GET /status.
type Live struct {
	Revision  int64          `json:"revision"`
	At        time.Time      `json:"at"`
	Epoch     string         `json:"epoch"` // identifies the director's process and the reader's permissions; revisions restart with a new epoch
	Totals    *Totals        `json:"totals,omitempty"`
	Health    *Verdict       `json:"health,omitempty"`
	Agents    []LiveAgent    `json:"agents,omitempty"`    // key: name
	Queues    []LiveQueue    `json:"queues,omitempty"`    // key: name; lines that no agent owns: work, pools, commands, calls
	Capacity  []ToolQueue    `json:"capacity,omitempty"`  // key: name
	Accounts  []Account      `json:"accounts,omitempty"`  // key: name
	Tasks     []LiveTask     `json:"tasks,omitempty"`     // key: queue_id; in a change the changed ones (tasks that only moved up are in their line), in a snapshot those in flight
	Schedules []LiveSchedule `json:"schedules,omitempty"` // key: id; those that fired or changed; none in a snapshot
	Pauses    *[]Pause       `json:"paused,omitempty"`    // all pauses in force
	Gates     *[]ClosedGate  `json:"gates,omitempty"`     // all closed gates, as in GET /api/gates
	Pressure  []Pressure     `json:"pressure,omitempty"`  // in a snapshot up to 30 minutes, oldest first; in a change the newest
	// Gone lists removed keys: agent:NAME, queue:NAME, capacity:NAME,
	// account:NAME, schedule:ID, task:ID.
	Gone []string `json:"gone,omitempty"`
}

// Beat is the data of the event beat.
type Beat struct {
	Revision int64     `json:"revision"`
	At       time.Time `json:"at"`
	Epoch    string    `json:"epoch"`
}

// Totals are the overall figures at one moment.
type Totals struct {
	Pending          int   `json:"pending"`  // all waiting tasks, without tool calls
	Running          int   `json:"running"`  // dispatching, working and cancelling at agents
	Slots            int   `json:"slots"`    // of agents that are up, and slots still held at others: running never exceeds it
	Isolated         int   `json:"isolated"` // those of running that are in bypass slots
	MaxSize          int   `json:"max_size"` // of the queue
	OldestAgeSeconds int64 `json:"oldest_age_seconds"`
	ToolsRunning     int   `json:"tools_running"` // tool calls that are tasks
	ToolsWaiting     int   `json:"tools_waiting"`
	Done24h          int   `json:"done_24h"`   // completed in the last 24 hours, without tool calls
	Failed24h        int   `json:"failed_24h"` // failed or timed out
	// EndedSince is the time from which these two counts are complete, Unix ms. It is set
	// if more tasks ended in 24 hours than a director reads when it starts.
	EndedSince int64 `json:"ended_since_ms,omitempty"`
	AgentsUp   int   `json:"agents_up"`
	Agents     int   `json:"agents"`
}

// Verdict says in one sentence whether a person is needed.
type Verdict struct {
	OK        bool        `json:"ok"`
	Text      string      `json:"text"`      // one sentence: the worst problem with its cause, and how many more there are
	Attention []Attention `json:"attention"` // worst first, at most 20
	More      int         `json:"more,omitempty"`
	// Notes need no action by a person: pauses that someone has set, tool queues that are
	// full or closed, accounts that are closed or being tried, and tasks that are parked
	// until a time. At most 20, with level info.
	Notes []Attention `json:"notes,omitempty"`
}

// Attention is something that needs a person.
type Attention struct {
	// Kind is agent_silent, agent_down, agent_closed, no_agent, stuck, outlasted,
	// run_trouble, cancel_unconfirmed, withheld, queue_full, schedule_overdue,
	// schedule_failing, tasks_failed, tool_down, account_signed_out, account_closed,
	// landing_stands or store;
	// for a note it is paused, capacity_full, account_closed, account_trying, tool_closed or
	// tasks_parked.
	Kind    string    `json:"kind"`
	Level   string    `json:"level"`              // warning or error; info for a note
	Subject string    `json:"subject"`            // the name that the sentence begins with: an agent, a tool queue, a schedule
	Text    string    `json:"text"`               // the rest of the sentence, with its numbers
	Cure    string    `json:"cure,omitempty"`     // what a person can do; a command if there is one
	TaskID  string    `json:"queue_id,omitempty"` // for failures: the newest task
	Since   time.Time `json:"since"`

	// For failures: tasks_failed counts those of the last hour with one cause, without tasks
	// that were retried or whose schedule has since completed a task.
	Count     int       `json:"count,omitempty"`
	Last      time.Time `json:"last,omitzero"` // since is the first
	Cause     string    `json:"cause,omitempty"`
	Agents    string    `json:"agents,omitempty"`    // for people: at most three names, and how many more
	Schedules string    `json:"schedules,omitempty"` // as agents
	Schedule  string    `json:"schedule,omitempty"`  // the one schedule that created them all, if this director has it
	Query     string    `json:"query,omitempty"`     // a search that finds them
}

// LiveAgent is an agent's lane: its running tasks, then its waiting tasks in order.
type LiveAgent struct {
	Agent
	// Face is the state shown to people: idle, running, waiting for
	// capacity, waiting for account, cancelling, stuck, paused, draining, down,
	// closed, withheld.
	Face     string     `json:"face"`
	FaceText string     `json:"face_text,omitempty"` // why, with numbers
	IdleAt   *time.Time `json:"idle_at,omitempty"`   // when its last run ended
	Pause    *Pause     `json:"pause,omitempty"`     // the pause that stops it
	Current  []LiveTask `json:"current"`             // running, dispatching, cancelling; isolated ones last
	Line     []LiveTask `json:"line"`                // its own queue, the first 10
	// Typical is the middle half of its last 40 run times; absent with fewer than five runs.
	Typical *ETA `json:"typical,omitempty"`
}

// LiveQueue is a line that no single agent owns.
type LiveQueue struct {
	Name    string     `json:"name"`
	Waiting int        `json:"waiting"`
	Line    []LiveTask `json:"line"` // the first 10
	Pause   *Pause     `json:"pause,omitempty"`
}

// LiveTask is a task as a row of a list.
type LiveTask struct {
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"`
	Reason        string     `json:"reason,omitempty"`
	Message       string     `json:"message,omitempty"`
	FailureLine   string     `json:"failure_line,omitempty"` // as in Task
	Cause         string     `json:"cause,omitempty"`        // as in Task
	Queue         string     `json:"queue"`
	Position      int        `json:"position,omitempty"` // among the first 10 of its line
	Agent         string     `json:"agent,omitempty"`
	Slot          int        `json:"slot"`
	Fence         int64      `json:"fence,omitempty"`
	Mode          string     `json:"mode"`
	Tool          string     `json:"tool,omitempty"`
	PromptPreview string     `json:"prompt_preview"`
	Source        string     `json:"source"`
	SourceJob     string     `json:"source_job,omitempty"`
	RetryOf       string     `json:"retry_of,omitempty"` // the task that it repeats
	By            string     `json:"by,omitempty"`       // who submitted it, for people
	Attempts      int        `json:"attempts,omitempty"`
	CreatedAt     time.Time  `json:"created_at"`
	StartedAt     *time.Time `json:"started_at,omitempty"`
	EndedAt       *time.Time `json:"ended_at,omitempty"`
	CancelledAt   *time.Time `json:"cancelling_since,omitempty"` // as this director saw it
	LastProgress  *time.Time `json:"last_progress,omitempty"`
	CostUSD       float64    `json:"cost_usd,omitempty"` // total of its runs, as far as their agents reported it
	Tokens        int64      `json:"tokens,omitempty"`   // the same, input and output
	Note          string     `json:"note,omitempty"`     // while it runs: the problem that its agent reports
	ETA           *ETA       `json:"eta,omitempty"`      // if it waits among the first 10
	// WaitingFor is the gate of a parked task, or of a task among the first 10 that waits
	// because its agents or their accounts are closed.
	WaitingFor *WaitingFor `json:"waiting_for,omitempty"`
	// Call is the tool call that it makes or waits for.
	Call *LiveCall `json:"call,omitempty"`
}

// LiveCall is what a running task does at a tool queue.
type LiveCall struct {
	Tool       string    `json:"tool"`
	Capacity   string    `json:"capacity"` // name of the tool queue
	Waiting    bool      `json:"waiting"`
	Since      time.Time `json:"since"`
	InUse      int       `json:"in_use"`
	Concurrent int       `json:"concurrent"`
}

// LiveSchedule says that a schedule changed: GET /api/schedules/{id} has it.
type LiveSchedule struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Enabled    bool   `json:"enabled"`
	LastStatus string `json:"last_status,omitempty"`
}

// Pressure is one sample of the load.
type Pressure struct {
	At               time.Time `json:"at"`
	Running          int       `json:"running"`
	Pending          int       `json:"pending"`
	OldestAgeSeconds int64     `json:"oldest_age_seconds"`
}

// BulkRequest is the body of POST /api/queue/bulk: an action on all matching
// tasks. Without expect nothing is changed; the answer counts the tasks.
type BulkRequest struct {
	Query  string `json:"query"`
	Action string `json:"action"`           // cancel or retry
	Expect *int   `json:"expect,omitempty"` // the count from the answer without expect; 409 if it has changed
}

// Bulk is the answer to POST /api/queue/bulk.
type Bulk struct {
	Query   string        `json:"query"`
	Action  string        `json:"action"`
	Count   int           `json:"count"`          // matching tasks that can be cancelled or retried; at most 10,000
	More    bool          `json:"more,omitempty"` // more tasks match; they are not changed
	Done    int           `json:"done"`
	Failed  int           `json:"failed"`
	Results []BulkOutcome `json:"results,omitempty"` // the failed ones, and the new ids of retries
}

// BulkOutcome is the outcome of a bulk action for one task.
type BulkOutcome struct {
	QueueID string `json:"queue_id"`
	NewID   string `json:"new_id,omitempty"` // of a retry
	Error   string `json:"error,omitempty"`  // code
	Message string `json:"message,omitempty"`
}

package api

import "time"

// NewSchedule is the body of POST /api/schedules and PUT /api/schedules/{id}.
// Fields with different names in the seeds are accepted under either name, but not
// both: schedule or cron_expression, prompt or message, agent or agent_name.
// Unknown fields are refused.
type NewSchedule struct {
	Name           string `json:"name"` // unique; 1 to 64 letters, digits, dots, underscores or hyphens
	Description    string `json:"description,omitempty"`
	CronExpression string `json:"cron_expression,omitempty"` // five fields, or @hourly, @daily, @weekly, @monthly, @yearly
	Schedule       string `json:"schedule,omitempty"`        // the same (seed work-queue)
	Timezone       string `json:"timezone,omitempty"`        // IANA name; default scheduler.timezone, UTC unless set
	Enabled        *bool  `json:"enabled,omitempty"`         // default true, or unchanged when a schedule is changed

	Message        string   `json:"message,omitempty"` // what the agent is to do
	Prompt         string   `json:"prompt,omitempty"`  // the same (seed work-queue)
	AgentName      string   `json:"agent_name,omitempty"`
	Agent          string   `json:"agent,omitempty"` // the same
	Kind           string   `json:"kind,omitempty"`  // only agents of this kind; not with an agent
	Model          string   `json:"model,omitempty"`
	Tier           string   `json:"tier,omitempty"`
	TimeoutSeconds int      `json:"timeout_seconds,omitempty"` // limit of the run, 0 to 604800; 0: the agent's default
	SessionID      string   `json:"session_id,omitempty"`      // conversation to continue
	Project        *Project `json:"project,omitempty"`
	Thinking       *bool    `json:"thinking,omitempty"`
	Workspace      string   `json:"workspace,omitempty"` // as SubmitRequest has it
	Repo           string   `json:"repo,omitempty"`
	Base           string   `json:"base,omitempty"`
	Delivery
	Priority int    `json:"priority,omitempty"` // -10 to 10
	OnLost   string `json:"on_lost,omitempty"`  // fail or requeue; default: queue.on_lost of the director that fires it

	Overlap             string `json:"overlap,omitempty"`               // queue (default), skip, cancel_previous or allow
	Missed              string `json:"missed,omitempty"`                // skip, once (default) or all
	MissedWindowSeconds int64  `json:"missed_window_seconds,omitempty"` // older instants are skipped, 60 to 31622400; default 86400
	OnFull              string `json:"on_full,omitempty"`               // skip (default) or retry, until its next instant
}

// Delivery says how the work of a schedule's tasks is checked and where it lands, as in SubmitRequest.
type Delivery struct {
	Checks       []TaskCheck `json:"checks,omitempty"`
	CheckRetries *int        `json:"check_retries,omitempty"` // 0 to 10
	Land         string      `json:"land,omitempty"`          // a branch, or pr
	LandMethod   string      `json:"land_method,omitempty"`   // rebase or squash
	FastForward  bool        `json:"fast_forward,omitempty"`
}

// Schedule is a schedule, in the terms of the seed execution-queue. The outcomes of
// its firings use the terms of the seed work-queue.
type Schedule struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	Description    string `json:"description,omitempty"`
	CronExpression string `json:"cron_expression"`
	Words          string `json:"words"` // the expression in plain words
	Timezone       string `json:"timezone"`
	Enabled        bool   `json:"enabled"`
	Source         string `json:"source"` // api, or config: it is changed only in the file
	OwnerID        string `json:"owner_id,omitempty"`

	Message        string   `json:"message"`
	AgentName      string   `json:"agent_name,omitempty"`
	Kind           string   `json:"kind,omitempty"`
	Model          string   `json:"model,omitempty"`
	Tier           string   `json:"tier,omitempty"`
	TimeoutSeconds int      `json:"timeout_seconds,omitempty"`
	SessionID      string   `json:"session_id,omitempty"`
	Project        *Project `json:"project,omitempty"`
	Thinking       *bool    `json:"thinking,omitempty"`
	Workspace      string   `json:"workspace,omitempty"` // as SubmitRequest has it
	Repo           string   `json:"repo,omitempty"`
	Base           string   `json:"base,omitempty"`
	Delivery
	Priority int    `json:"priority,omitempty"`
	OnLost   string `json:"on_lost,omitempty"`

	Overlap             string `json:"overlap"`
	Missed              string `json:"missed"`
	MissedWindowSeconds int64  `json:"missed_window_seconds"`
	OnFull              string `json:"on_full"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	NextRunAt   *time.Time  `json:"next_run_at,omitempty"` // while it is enabled
	NextRuns    []time.Time `json:"next_runs,omitempty"`   // three
	LastRunAt   *time.Time  `json:"last_run_at,omitempty"`
	LastStatus  string      `json:"last_status,omitempty"` // queued, skipped_queue_full, skipped_busy, skipped_missed, skipped_no_director, skipped_error; firing or held while undecided
	LastQueueID string      `json:"last_queue_id,omitempty"`
	LastError   string      `json:"last_error,omitempty"`
	// OverdueSeconds is how long ago its next instant was, if that is more than a
	// minute: no scheduler runs, or its clock went back.
	OverdueSeconds int64 `json:"overdue_seconds,omitempty"`
	// Outcomes are its newest firings, at most 20, newest first.
	Outcomes []ScheduleExecution `json:"outcomes,omitempty"`
}

// Schedules is the answer to GET /api/schedules, by name. Outcomes are included
// only with ?outcomes=N.
type Schedules struct {
	Schedules []Schedule `json:"schedules"`
	Next      string     `json:"next,omitempty"` // cursor: ask with ?after=
}

// ScheduleExecution is the record of one firing of a schedule.
type ScheduleExecution struct {
	ID         string    `json:"id"`
	ScheduleID string    `json:"schedule_id"`
	Nominal    time.Time `json:"nominal_at"` // the instant of the schedule
	FiredAt    time.Time `json:"fired_at"`
	Trigger    string    `json:"trigger"` // cron, missed or manual
	By         string    `json:"by,omitempty"`
	// Status is held, firing, queued, running, completed, failed, cancelled, timeout
	// or skipped. It is failed if the queue was full, as in the seed execution-queue,
	// and ended if the task has been pruned.
	Status  string `json:"status"`
	Outcome string `json:"outcome"` // the seed work-queue's status, as in last_status
	QueueID string `json:"queue_id,omitempty"`
	Error   string `json:"error,omitempty"`
	Missed  int    `json:"missed,omitempty"` // earlier instants that were skipped
}

// Executions is the answer to GET /api/schedules/{id}/executions, newest
// first.
type Executions struct {
	Executions []ScheduleExecution `json:"executions"`
}

// Triggered is the answer to POST /api/schedules/{id}/trigger.
type Triggered struct {
	Execution ScheduleExecution `json:"execution"`
	QueueID   string            `json:"queue_id,omitempty"` // absent while it is held; a firing that created no task is an error
}

// CronCheck is the answer to GET /api/cron.
type CronCheck struct {
	CronExpression string      `json:"cron_expression"`
	Timezone       string      `json:"timezone"`
	Words          string      `json:"words"`
	NextRuns       []time.Time `json:"next_runs"`
}

// SchedulerStatus is the answer to GET /status of a standalone scheduler, in the
// form of the seed work-queue.
type SchedulerStatus struct {
	Type       string         `json:"type"`       // "helper"
	Interfaces []string       `json:"interfaces"` // statusable, observable
	Version    string         `json:"version"`
	State      string         `json:"state"` // running or stopping
	Director   string         `json:"director_url,omitempty"`
	Jobs       []SchedulerJob `json:"jobs"` // by name
}

// SchedulerJob is a job of a standalone scheduler.
type SchedulerJob struct {
	Name        string      `json:"name"`
	Schedule    string      `json:"schedule"`
	Timezone    string      `json:"timezone"`
	Enabled     bool        `json:"enabled"`
	NextRun     *time.Time  `json:"next_run,omitempty"`
	NextRuns    []time.Time `json:"next_runs,omitempty"`
	LastRun     *time.Time  `json:"last_run,omitempty"`
	LastStatus  string      `json:"last_status,omitempty"`
	LastQueueID string      `json:"last_queue_id,omitempty"`
	LastError   string      `json:"last_error,omitempty"`
	IsRunning   bool        `json:"is_running"` // a firing is open, or its newest task has not ended
}

package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// SubmitRequest is the body of POST /api/queue/task and POST /api/task.
// Unknown fields are refused.
type SubmitRequest struct {
	Prompt         string            `json:"prompt,omitempty"`  // what the agent is to do; 1 byte to 1 MiB with the rest of the body
	Message        string            `json:"message,omitempty"` // alias of prompt; not both
	Model          string            `json:"model,omitempty"`
	Tier           string            `json:"tier,omitempty"`
	TimeoutSeconds int               `json:"timeout_seconds,omitempty"` // limit of the run, 0 to 604800; 0: the agent's default
	SessionID      string            `json:"session_id,omitempty"`      // conversation to continue
	Session        string            `json:"session,omitempty"`         // require (default) or prefer the agent that holds the session
	Project        *Project          `json:"project,omitempty"`
	Env            map[string]string `json:"env,omitempty"` // encrypted at rest, erased at the end, never returned
	Thinking       *bool             `json:"thinking,omitempty"`
	Workspace      string            `json:"workspace,omitempty"`     // where its run works: folder, worktree or clone; default: the agent's default
	Repo           string            `json:"repo,omitempty"`          // for a worktree a folder at the agent; for a clone the address of a repository, which the agent must allow
	Base           string            `json:"base,omitempty"`          // branch, tag or commit that a worktree is made from
	Source         string            `json:"source,omitempty"`        // web, scheduler, cli, agent, user, api; default api
	SourceJob      string            `json:"source_job,omitempty"`    // name of the scheduler's job
	Agent          string            `json:"agent,omitempty"`         // only this agent may take it
	Kind           string            `json:"kind,omitempty"`          // only agents of this kind may take it; not with agent
	Priority       int               `json:"priority,omitempty"`      // -10 to 10; one step overtakes tasks submitted up to age_step (60 s) before
	NotBefore      *time.Time        `json:"not_before,omitempty"`    // RFC 3339
	WaitTimeout    int               `json:"wait_timeout,omitempty"`  // seconds it may wait before it ends as timeout; 0: for ever
	OnLost         string            `json:"on_lost,omitempty"`       // fail or requeue, when its agent is lost; default: queue.on_lost of the director
	Overflow       string            `json:"overflow,omitempty"`      // persist (default); wait: wait_timeout is 120 s unless given; reject: 409 unless an agent is free for it
	Needs          map[string]int    `json:"needs,omitempty"`         // units of the director's resources that its run holds, by name, from 1
	Budget         *Budget           `json:"budget,omitempty"`        // limit on the total of its runs; default, and maximum for a caller who is not an admin: budgets.task of the director
	Checks         []TaskCheck       `json:"checks,omitempty"`        // commands that its agent runs after a successful run, at most 20; only from admins unless the agent allows others; default: those of the agent or the repository
	CheckRetries   *int              `json:"check_retries,omitempty"` // how often the output of failed checks becomes the next turn of the conversation, 0 to 10; default: the agent's default
	Land           string            `json:"land,omitempty"`          // branch on which its work lands after it completes, or pr for a pull request
	LandMethod     string            `json:"land_method,omitempty"`   // rebase or squash; default: the agent's default
	FastForward    bool              `json:"fast_forward,omitempty"`  // a clean checkout of the branch is fast-forwarded too
	Waits          bool              `json:"waits,omitempty"`         // the caller will wait for its end: a call by which an agent would wait for itself is refused
}

// SubmitResponse is the 201 answer to POST /api/queue/task and to a retry,
// and the 202 answer to POST /api/task.
type SubmitResponse struct {
	QueueID             string `json:"queue_id"`
	Position            int    `json:"position"` // in its queue, from 1; 0 once it no longer waits
	PositionApproximate bool   `json:"position_approximate,omitempty"`
	State               string `json:"state"`
	Queue               string `json:"queue"`
	ETA                 *ETA   `json:"eta,omitempty"`
	Message             string `json:"message,omitempty"`  // for example what happens if the agent of the conversation is gone
	Replayed            bool   `json:"replayed,omitempty"` // the Idempotency-Key was known: this is the existing task
	RetryOf             string `json:"retry_of,omitempty"`
}

// ETA is a range for the start of a waiting task, from the 25th to the 75th
// percentile of the last 40 runs of the agents that can take it. It is absent if
// fewer than five runs are known, or if the running tasks have exceeded their
// usual time.
type ETA struct {
	LowSeconds  float64 `json:"low_seconds"`
	HighSeconds float64 `json:"high_seconds"`
	Runs        int     `json:"runs"` // number of runs that it is based on
}

// Task is the answer to GET /api/queue/{id}.
type Task struct {
	QueueID             string      `json:"queue_id"`
	State               string      `json:"state"`
	WaitingFor          *WaitingFor `json:"waiting_for,omitempty"`  // set if it is parked, or pending because its agents or their accounts are closed or a budget is used up; in lists only for parked tasks
	Parks               int         `json:"parks,omitempty"`        // how often it was parked
	Reason              string      `json:"reason,omitempty"`       // once it has ended
	Message             string      `json:"message,omitempty"`      // why it ended, for people
	FailureLine         string      `json:"failure_line,omitempty"` // for a failed task: the line of its log, or of message, that most likely says why; at most 300 bytes
	Cause               string      `json:"cause,omitempty"`        // fingerprint of failure_line, the same for similar failures; search for cause:…
	Queue               string      `json:"queue"`
	Position            int         `json:"position,omitempty"` // while pending
	PositionApproximate bool        `json:"position_approximate,omitempty"`
	ETA                 *ETA        `json:"eta,omitempty"`
	CreatedAt           time.Time   `json:"created_at"`
	NotBefore           *time.Time  `json:"not_before,omitempty"`
	DispatchedAt        *time.Time  `json:"dispatched_at,omitempty"`
	StartedAt           *time.Time  `json:"started_at,omitempty"`
	EndedAt             *time.Time  `json:"ended_at,omitempty"`
	Attempts            int         `json:"attempts"`
	MaxAttempts         int         `json:"max_attempts,omitempty"`
	LastError           string      `json:"last_error,omitempty"`
	Source              string      `json:"source"`
	SourceJob           string      `json:"source_job,omitempty"`
	Priority            int         `json:"priority,omitempty"`
	OnLost              string      `json:"on_lost,omitempty"`
	SessionID           string      `json:"session_id,omitempty"`
	RetryOf             string      `json:"retry_of,omitempty"`
	CancelRequested     bool        `json:"cancel_requested,omitempty"`
	EditedAt            *time.Time  `json:"edited_at,omitempty"` // when it was last edited while it waited
	EditedBy            string      `json:"edited_by,omitempty"`
	Mode                string      `json:"mode"`           // queue, chat, bypass, tool or land
	Tool                string      `json:"tool,omitempty"` // the tool that it calls, for mode tool
	SourceUserID        string      `json:"source_user_id,omitempty"`
	SourceUserEmail     string      `json:"source_user_email,omitempty"`
	SourceAgent         string      `json:"source_agent,omitempty"`
	SourceService       string      `json:"source_service,omitempty"`
	ParentID            string      `json:"parent_id,omitempty"` // the task whose execution submitted this one
	Depth               int         `json:"depth,omitempty"`

	Agent    string `json:"agent,omitempty"`
	AgentURL string `json:"agent_url,omitempty"`
	TaskID   string `json:"task_id,omitempty"` // the agent's own id
	Fence    int64  `json:"fence,omitempty"`
	Revision int64  `json:"revision,omitempty"` // grows with each change; PATCH requires it; not in lists
	Note     string `json:"note,omitempty"`     // the problem that its agent reports, or what happens while the agent of its conversation is gone; not in lists

	TokenUsage *TokenUsage `json:"token_usage,omitempty"` // total of its runs, as far as their agents reported it
	CostUSD    float64     `json:"cost_usd,omitempty"`    // the same
	Budget     *Budget     `json:"budget,omitempty"`      // limit on the total of its runs

	Landing *Landing       `json:"landing,omitempty"` // the landing of its work on a branch
	Needs   map[string]int `json:"needs,omitempty"`   // units of the director's resources that its run holds, by name

	PromptPreview  string      `json:"prompt_preview"`
	Prompt         string      `json:"prompt,omitempty"` // not in lists
	Model          string      `json:"model,omitempty"`
	Tier           string      `json:"tier,omitempty"`
	TimeoutSeconds int         `json:"timeout_seconds,omitempty"`
	Project        *Project    `json:"project,omitempty"`
	Thinking       *bool       `json:"thinking,omitempty"`
	Checks         []TaskCheck `json:"checks,omitempty"` // checks that it was submitted with; not in lists
	CheckRetries   *int        `json:"check_retries,omitempty"`
	Workspace      string      `json:"workspace,omitempty"` // as SubmitRequest has it
	Repo           string      `json:"repo,omitempty"`
	Base           string      `json:"base,omitempty"`
	// For mode tool, not in lists: the arguments of the call without those that the tool
	// marks as secret. GET /api/tools/tasks/{id} has the whole answer.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"` // its own limit on the run

	// QueuedAs is its place in line when it was submitted. It is kept for chats and calls for
	// which no slot was free. Not in lists.
	QueuedAs int           `json:"queued_as,omitempty"`
	Requeues []Requeue     `json:"requeues,omitempty"` // its latest failed claims; not in lists
	Calls    []RunCall     `json:"calls,omitempty"`    // its ended tool calls, as far as known; not in lists
	Result   *Result       `json:"result,omitempty"`   // once it has ended; not in lists
	Stale    []StaleResult `json:"stale,omitempty"`    // reports of executions that had lost their slot; not in lists
}

// Requeue is a failed claim: the task went back to its queue.
type Requeue struct {
	Event     string     `json:"event"`           // busy, refuse, unsent, lost or release
	Agent     string     `json:"agent,omitempty"` // that held the claim
	ClaimedAt *time.Time `json:"claimed_at,omitempty"`
	At        time.Time  `json:"at"`
	Message   string     `json:"message,omitempty"`
}

// RunCall is an ended tool call that a run made through the director.
type RunCall struct {
	Tool          string    `json:"tool"`
	Queue         string    `json:"queue,omitempty"` // the tool queue that it went through
	Outcome       string    `json:"outcome"`         // ok, error, cancelled or an error code
	At            time.Time `json:"at"`              // when it was made
	WaitedSeconds float64   `json:"waited_seconds"`  // for a slot of its tool queue
	TookSeconds   float64   `json:"took_seconds"`    // in total, with the wait
}

// Result is what an ended task left behind.
type Result struct {
	Output          string      `json:"output"`              // the agent's answer, at most 1 MiB
	Tail            string      `json:"tail,omitempty"`      // end of its log, at most 128 KiB
	Truncated       bool        `json:"truncated,omitempty"` // the log was longer than tail
	ExitCode        *int        `json:"exit_code,omitempty"`
	TokenUsage      *TokenUsage `json:"token_usage,omitempty"`
	CostUSD         float64     `json:"cost_usd,omitempty"`
	ToolCount       int64       `json:"tool_count,omitempty"` // number of tool uses
	DurationSeconds float64     `json:"duration_seconds"`
	Model           string      `json:"model,omitempty"`      // the model that ran, as its agent reports it
	ErrorType       string      `json:"error_type,omitempty"` // the agent's own error type
	// Changes is what the run changed in its repository, without the patch and with at most
	// 100 files; GET /api/queue/{id}/diff has the rest. Absent: there was no repository, or the
	// agent does not report changes.
	Changes *Changes `json:"changes,omitempty"`
	// Checks is the outcome of the checks of its work; absent: there were none, or its agent
	// does not report them.
	Checks *AgentChecks `json:"checks,omitempty"`
}

// Summary returns the outcome of the checks on one line, such as "passed (test, lint) after 2
// rounds" or "unchecked: …".
func (c *AgentChecks) Summary() string {
	names := map[string][]string{}
	for _, r := range c.Results {
		state := r.State
		if state == CheckTimeout {
			state = CheckFailed
		}
		names[state] = append(names[state], r.Name)
	}
	if c.State != CheckPassed && c.State != CheckFailed {
		why := c.Message
		if why == "" {
			why = "no check could be run"
			if gone := names[CheckUnavailable]; len(gone) > 0 {
				why = strings.Join(gone, ", ") + " could not be run"
			}
		}
		return "unchecked: " + why
	}
	return fmt.Sprintf("%s (%s) after %s", c.State, strings.Join(names[c.State], ", "), counted(c.Rounds, "round"))
}

// Summary returns the changes of a run on one line, such as "3 files (+12 −4) on branch main, 1
// commit".
func (c *Changes) Summary() string {
	text := "no files"
	if c.FilesChanged > 0 {
		text = fmt.Sprintf("%s (+%d −%d)", counted(c.FilesChanged, "file"), c.Insertions, c.Deletions)
	}
	if c.Branch != "" {
		text += " on branch " + c.Branch
	}
	if c.Commits > 0 {
		text += ", " + counted(c.Commits, "commit")
	}
	return text
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Diff is the answer to GET /api/queue/{id}/diff: what the last run of a task changed in its
// repository. With Accept: text/x-diff or format=patch the answer is the patch itself. It is
// whole if its agent has it; otherwise PatchCutHeader says what is missing.
type Diff struct {
	QueueID string `json:"queue_id"`
	State   string `json:"state"`
	Agent   string `json:"agent,omitempty"`
	Changes
	Cut string `json:"cut,omitempty"` // why patch is not complete
}

// PatchCutHeader is the header that says why a patch is not complete.
const PatchCutHeader = "Signalbox-Patch-Cut"

// Queue is the answer to GET /api/queue: waiting and dispatching tasks in
// the order in which they will be claimed, and the seed's figures.
type Queue struct {
	Depth            int             `json:"depth"` // pending tasks, without tool calls
	MaxSize          int             `json:"max_size"`
	OldestAgeSeconds int64           `json:"oldest_age_seconds"`
	DispatchedCount  int             `json:"dispatched_count"`     // tasks that an agent has or is being sent
	Tools            *ToolTaskCounts `json:"tool_tasks,omitempty"` // tool calls that are tasks, if the director runs any
	Tasks            []Task          `json:"tasks"`
	Next             string          `json:"next,omitempty"` // cursor: ask with ?after=
	Paused           []Pause         `json:"paused,omitempty"`
}

// Cancelled is the answer to POST /api/queue/{id}/cancel: 200 with state
// cancelled, or the state in which the task ended first; 202 with state
// cancelling (or dispatching) when the agent has not confirmed within 5 s.
type Cancelled struct {
	QueueID       string `json:"queue_id"`
	State         string `json:"state"`
	WasDispatched bool   `json:"was_dispatched"`
	AgentURL      string `json:"agent_url,omitempty"`
	TaskID        string `json:"task_id,omitempty"`
	Message       string `json:"message,omitempty"`
}

// RetryRequest is the optional body of POST /api/queue/{id}/retry: the
// differences from the first task. Env must be given again if the task had any.
type RetryRequest struct {
	Prompt         string            `json:"prompt,omitempty"`
	Model          string            `json:"model,omitempty"`
	TimeoutSeconds int               `json:"timeout_seconds,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Agent          *string           `json:"agent,omitempty"` // with it and kind empty, any agent may take it
	Kind           *string           `json:"kind,omitempty"`
}

// EditRequest is the body of PATCH /api/queue/{id}: the changes of a waiting task.
// Omitted fields are not changed.
type EditRequest struct {
	Revision int64   `json:"revision"` // revision of the task as you read it; the edit is refused if it has changed since
	Prompt   string  `json:"prompt,omitempty"`
	Priority *int    `json:"priority,omitempty"` // -10 to 10; a task at the top of its queue goes back to its own place
	Agent    *string `json:"agent,omitempty"`    // with it and kind empty, any agent may take it
	Kind     *string `json:"kind,omitempty"`
	Place    string  `json:"place,omitempty"`  // top: ahead of all in its queue; back: behind all with its priority
	Budget   *Budget `json:"budget,omitempty"` // limit on the total of its runs, more than they have spent; 0 means no limit, or budgets.task of the director
}

// Why is the answer to GET /api/queue/{id}/why: the gates between a task and
// its start, in the order in which they are passed.
type Why struct {
	QueueID string `json:"queue_id"`
	State   string `json:"state"`
	Summary string `json:"summary"` // one sentence
	Gates   []Gate `json:"gates"`
	ETA     *ETA   `json:"eta,omitempty"`
	NoETA   string `json:"eta_unknown,omitempty"` // for a waiting task without eta: why its start is unknown
}

// Gate is one condition for the start of a task.
type Gate struct {
	Name   string `json:"name"`             // due, queue_open, session_free, agent_connected, agent_free, position; for a running task tool_capacity
	OK     bool   `json:"ok"`               //
	Text   string `json:"text"`             // the current condition, with its numbers
	Detail string `json:"detail,omitempty"` //
	Cure   string `json:"cure,omitempty"`   // what a person can do if it is not ok
	TaskID string `json:"task_id,omitempty"`
	Agent  string `json:"agent,omitempty"`
}

// Output is the answer to GET /api/queue/{id}/output?after=N&wait=30s: the
// log of a task from byte N. With Accept: text/event-stream the same comes as
// events named output, the last with done set.
type Output struct {
	QueueID   string `json:"queue_id"`
	State     string `json:"state"`
	Seq       int64  `json:"seq"` // position of the first byte of text in the whole log
	Text      string `json:"text"`
	Next      int64  `json:"next"`
	Truncated bool   `json:"truncated,omitempty"` // output between the requested position and seq is no longer available
	Done      bool   `json:"done,omitempty"`
	// Line is the number of the line in the whole log in which text begins, from 1; 0 if
	// unknown, for example after missed output.
	Line int64 `json:"line,omitempty"`
	// Times says when the text arrived: pairs of a position in the log and a time in
	// milliseconds since 1970, at most one per second. The first position may be before seq.
	Times [][2]int64 `json:"times,omitempty"`
	// Message says why output may be missing: the director that follows the task does
	// not answer.
	Message string `json:"message,omitempty"`
}

// History is the answer to GET /api/history, newest end first.
type History struct {
	Tasks []Task `json:"tasks"`
	Next  string `json:"next,omitempty"` // cursor: ask with ?before=; absent at the end
}

// PauseRequest is the body of POST /api/queue/pause and /resume. Queue ""
// means all queues.
type PauseRequest struct {
	Queue   string     `json:"queue,omitempty"`
	Reason  string     `json:"reason,omitempty"` // pause only
	Until   *time.Time `json:"until,omitempty"`  // pause only: resumes by itself
	Seconds int        `json:"seconds,omitempty"`
}

// Pause says that no tasks are claimed from a queue.
type Pause struct {
	Queue  string     `json:"queue"` // "" is all queues
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	Since  time.Time  `json:"since"`
	Until  *time.Time `json:"until,omitempty"`
}

// Paused is the answer to pause and resume: all pauses in force after it.
type Paused struct {
	Paused []Pause `json:"paused"`
}

// Project is the working context of a task: where the agent's CLI runs.
type Project struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"` // absolute, or relative to the agent's work folder; must exist there
}

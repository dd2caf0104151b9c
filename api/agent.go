package api

import (
	"encoding/json"
	"time"
)

// The agent HTTP API: the requests of a director to an agent. Any program that
// serves the paths not marked "signalbox" is an agent. Fields and paths marked
// "signalbox" are optional extensions.
//
//	POST /task               start a task                         201, 400, 409
//	GET  /task/{id}          its state; id is task_id or queue_id  200, 404
//	POST /task/{id}/cancel   stop it                              200, 202, 404, 409
//	GET  /task/{id}/output   its output (signalbox)               200, 404
//	GET  /task/{id}/patch    what it changed, as text (signalbox) 200, 404
//	GET  /status             idle or working, and on what         200
//	GET  /history            the ended tasks                      200
//	POST /shutdown           end the agent                        202, 409
//	GET  /sessions           the conversations it has (signalbox)  200
//	GET  /workspaces         the worktrees it has made (signalbox)  200
//	DELETE /workspaces/{name}  discard one (signalbox)             200, 404, 409
//	GET  /terminal           a terminal, as a WebSocket (signalbox) 101, 403, 409

// AgentTask is the body of POST /task on an agent.
type AgentTask struct {
	Prompt         string            `json:"prompt"`
	Model          string            `json:"model,omitempty"`
	Tier           string            `json:"tier,omitempty"`
	TimeoutSeconds int               `json:"timeout_seconds,omitempty"` // 0: the agent's own default
	SessionID      string            `json:"session_id,omitempty"`      // conversation to resume, or to create under this id
	Project        *Project          `json:"project,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Thinking       *bool             `json:"thinking,omitempty"`
	Source         string            `json:"source,omitempty"`
	SourceJob      string            `json:"source_job,omitempty"`

	// signalbox: identity of the execution. A repeated request with the same
	// queue_id and fence is the same execution and gets the same answer. A fence
	// below the highest seen from this director is refused (409 stale_fence). A
	// higher fence for a slot that is still running means that the old run is
	// void: the agent stops it, with proof, before it answers.
	QueueID  string `json:"queue_id,omitempty"`
	Fence    int64  `json:"fence,omitempty"`
	Slot     int    `json:"slot,omitempty"`     // 0-based
	Director string `json:"director,omitempty"` // identity of the director's store; fences are compared within it
	Isolated bool   `json:"isolated,omitempty"` // own working directory and CLI home, no conversation

	// signalbox: the token that the run uses at the director. It comes in the
	// header RunTokenHeader, or in PullAnswer for agents that pull. Agents without
	// fences do not get it. The agent puts it into the run's environment.
	RunToken string `json:"-"`

	// signalbox: who set env, "admin" or "caller", in the header EnvByHeader or in
	// PullAnswer. From a caller the agent accepts only the names that its
	// configuration allows. A direct request that names no director counts as admin.
	EnvBy string `json:"-"`

	// signalbox: with isolated, if the runner supports them (else 400).
	AllowedTools []string `json:"allowed_tools,omitempty"`
	SystemPrompt string   `json:"system_prompt,omitempty"`

	// signalbox: the run continues a run of the same task that was parked at a
	// limit. The agent resumes session_id and does not send the prompt again.
	Resume *AgentResume `json:"resume,omitempty"`

	// signalbox: what this run may spend. When its usage reaches one of the figures, the agent
	// sends no more requests to the model and ends the run, with proof and the error type
	// budget. It overspends by at most the request in flight.
	Budget *Budget `json:"budget,omitempty"`

	// signalbox: commands that the agent runs after the CLI has succeeded, before it reports
	// the end. Absent: those of the agent's configuration, else those of the repository if it
	// is trusted.
	Checks []TaskCheck `json:"checks,omitempty"`
	// signalbox: how often the output of failed checks becomes the next turn of the
	// conversation, 0 to 10. Absent: the agent's default.
	CheckRetries *int `json:"check_retries,omitempty"`

	// signalbox: where the run works: folder, worktree or clone; absent: the agent's default.
	// A conversation stays where it began. Repo is a folder that the agent may use or, for a
	// clone, an address that its configuration lists. Base is the branch, tag or commit that
	// a worktree is made from.
	Workspace string `json:"workspace,omitempty"`
	Repo      string `json:"repo,omitempty"`
	Base      string `json:"base,omitempty"`

	// signalbox: the run lands the work of another task and starts no CLI; with isolated.
	Land *AgentLand `json:"land,omitempty"`

	// signalbox: what the run holds until its end is known.
	Holds []AgentHold `json:"holds,omitempty"`
}

// AgentHold is what a run holds of a resource.
type AgentHold struct {
	Resource string   `json:"resource"`
	N        int      `json:"n"`
	Values   []string `json:"values,omitempty"` // N values, if the resource has any
	// Env is the variable in the run's environment: the values, separated by commas, or N.
	Env string `json:"env"`
}

// LandPR as AgentLand.Onto means: push the branch and open a pull request.
const LandPR = "pr"

// AgentLand says what lands, and where.
type AgentLand struct {
	Task        string `json:"task"`                   // queue_id of the task whose work lands
	SessionID   string `json:"session_id,omitempty"`   // its conversation, which owns the worktree
	Onto        string `json:"onto"`                   // branch, or LandPR
	Method      string `json:"method,omitempty"`       // rebase or squash; "": the agent's default
	FastForward bool   `json:"fast_forward,omitempty"` // a clean checkout of the branch is fast-forwarded too
	Title       string `json:"title,omitempty"`        // of a squashed commit or a pull request
}

// AgentLanded is where work has landed.
type AgentLanded struct {
	Onto    string `json:"onto"`              // branch
	Commit  string `json:"commit"`            // head of the branch with the work
	Was     string `json:"was,omitempty"`     // head of the branch before; "" for a pull request
	Commits int    `json:"commits"`           // commits that were added, at most 1,000
	Checked string `json:"checked,omitempty"` // passed or unavailable; "": there were no checks
	URL     string `json:"url,omitempty"`     // of the pull request
}

// TaskCheck is a command that verifies the work of a task.
type TaskCheck struct {
	Name           string `json:"name"`                      // 1 to 64 letters, digits, dots, underscores or hyphens; unique
	Run            string `json:"run"`                       // shell command, at most 4,096 bytes
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"` // 1 to 86,400; 0: 600
}

// AgentChecks is the outcome of the checks of a run, or why there is none.
type AgentChecks struct {
	// State is failed if a check failed or timed out, else unavailable if a check could not
	// run or none ran, else passed.
	State   string        `json:"state"`
	Results []CheckResult `json:"results,omitempty"` // of the last round, in order
	Rounds  int           `json:"rounds"`            // how often they ran
	Message string        `json:"message,omitempty"` // why the work was not checked
}

// CheckResult is the outcome of one check.
type CheckResult struct {
	Name string `json:"name"`
	// State is passed (exit status 0), failed (another exit status), timeout or unavailable.
	// Unavailable means that it could not be started, or that it exited with 126 or 127: the
	// shell could not run or find the program.
	State    string  `json:"state"`
	ExitCode *int    `json:"exit_code,omitempty"` // absent: it was stopped, or did not start
	Seconds  float64 `json:"seconds"`
	Output   string  `json:"output,omitempty"` // the end of its output, at most 8 KiB, without control characters
}

// The states of checks.
const (
	CheckPassed      = "passed"
	CheckFailed      = "failed"
	CheckTimeout     = "timeout"
	CheckUnavailable = "unavailable"
)

// Budget limits what runs may spend. 0 means no limit.
type Budget struct {
	USD    float64 `json:"usd,omitempty"`    // US dollars, above 0
	Tokens int64   `json:"tokens,omitempty"` // input and output together
}

// AgentResume says how a parked run continues.
type AgentResume struct {
	// Text is the prompt of the next turn of the conversation; "": the agent's own words for
	// "go on".
	Text string `json:"text,omitempty"`
	// Began says that the model had answered before the run was parked. If the agent no longer
	// has the conversation, the run then ends with the error type cannot_resume. Without Began
	// it starts with its prompt.
	Began bool `json:"began,omitempty"`
}

// RunTokenHeader is the header of POST /task on an agent that carries the token of
// the run. The token is valid for that execution only and ends with it.
const RunTokenHeader = "X-Signalbox-Run-Token"

// EnvByHeader is the header of POST /task on an agent that says who set env.
const EnvByHeader = "X-Signalbox-Env-By"

// AgentTaskAccepted is the 201 answer to POST /task on an agent.
type AgentTaskAccepted struct {
	TaskID    string `json:"task_id"` // "task-" and 8 hex digits or more
	SessionID string `json:"session_id"`
	Status    string `json:"status"` // "working"
	QueueID   string `json:"queue_id,omitempty"`
	Fence     int64  `json:"fence,omitempty"`
}

// AgentTaskStatus is the answer to GET /task/{id} on an agent. With
// ?wait=30s the agent answers when the task ends or the wait is over. With
// ?after=N too, it also answers as soon as output beyond byte N exists.
type AgentTaskStatus struct {
	TaskID          string      `json:"task_id"`
	State           string      `json:"state"` // working, completed, failed, cancelled
	ExitCode        *int        `json:"exit_code,omitempty"`
	Output          string      `json:"output"` // the answer; for a running task the output so far (bounded)
	SessionID       string      `json:"session_id,omitempty"`
	TokenUsage      *TokenUsage `json:"token_usage,omitempty"` // for a running task the usage so far, as in cost_usd
	DurationSeconds float64     `json:"duration_seconds"`
	StartedAt       *time.Time  `json:"started_at,omitempty"`
	CompletedAt     *time.Time  `json:"completed_at,omitempty"`
	Error           *AgentError `json:"error,omitempty"`

	QueueID        string     `json:"queue_id,omitempty"`         // signalbox, this and below
	Fence          int64      `json:"fence,omitempty"`            //
	CostUSD        float64    `json:"cost_usd,omitempty"`         //
	Model          string     `json:"model,omitempty"`            // the model that ran
	ToolCount      int64      `json:"tool_count,omitempty"`       // number of tool uses
	OutputSeq      int64      `json:"output_seq,omitempty"`       // bytes of output written so far
	LastProgressAt *time.Time `json:"last_progress_at,omitempty"` // last time the run printed anything

	// Note is for people: the current problem of a running task, such as a model that answers
	// 529, or what was refused to an ended task.
	Note string `json:"note,omitempty"`

	// Limit comes with the error types usage_limit, overloaded and login_refused: the run
	// ended with proof and can continue later.
	Limit *AgentLimit `json:"limit,omitempty"`
	// Account is what the run learned about the account that it spends.
	Account *AgentAccount `json:"account,omitempty"`

	// Changes is what an ended run changed in the repository that it worked in; absent: there
	// was none, or the changes could not be determined.
	Changes *Changes `json:"changes,omitempty"`

	// Checks is the outcome of the checks of an ended run; absent: it has no checks.
	Checks *AgentChecks `json:"checks,omitempty"`

	// Landed is where the work landed, for a completed run with land. A failed one has the
	// error type conflict, checks or land_refused.
	Landed *AgentLanded `json:"landed,omitempty"`
}

// Changes is what a run changed in the repository that it worked in, including untracked files
// but not ignored ones.
type Changes struct {
	Workspace string `json:"workspace"`        // folder: the agent's own folder, or the project's; worktree: its own worktree; clone: a worktree of a mirror
	Dir       string `json:"dir"`              // where it worked, on the agent's host
	Branch    string `json:"branch,omitempty"` // checked out at its end; "": none
	// BaseBranch is the branch that its worktree was made from; "": none, or a commit.
	BaseBranch string `json:"base_branch,omitempty"`
	Base       string `json:"base"`    // commit that it started from; "": there was none
	Head       string `json:"head"`    // commit at its end
	Commits    int    `json:"commits"` // from base to head, at most 1,000
	// Uncommitted says that the run left uncommitted changes. In a worktree the agent
	// committed them, and they are in head.
	Uncommitted bool `json:"uncommitted,omitempty"`

	FilesChanged int           `json:"files_changed"`
	Insertions   int64         `json:"insertions"`
	Deletions    int64         `json:"deletions"`
	Files        []ChangedFile `json:"files,omitempty"` // by path, at most 1,000

	// Patch is in git's format, at most 256 KiB: whole files, from the first. PatchBytes is the
	// size of the whole patch, which GET /task/{id}/patch returns up to 64 MiB.
	Patch      string `json:"patch,omitempty"`
	PatchBytes int64  `json:"patch_bytes"`
}

// ChangedFile is a file that a run changed.
type ChangedFile struct {
	Path       string `json:"path"`
	From       string `json:"from,omitempty"` // old path of a renamed or copied file
	Status     string `json:"status"`         // added, modified, deleted, renamed, copied or typechange
	Insertions int64  `json:"insertions"`     // lines; 0 for a binary file
	Deletions  int64  `json:"deletions"`
	Binary     bool   `json:"binary,omitempty"`
}

// MaxPatch bounds Changes.Patch, in bytes.
const MaxPatch = 256 << 10

// AgentError says why a task on an agent did not complete. Type is one of
// timeout, cancelled, max_turns, start_error, claude_error (kept from the
// seed for every CLI that reports its own error), exit_nonzero,
// no_result (the CLI ended without its terminal event), interrupted (the
// agent was restarted), stale_fence (a newer fence voided the run),
// login_refused (the model's API refused the CLI's key or login), usage_limit (the
// account has used up what its provider allows), overloaded (the provider is
// overloaded), cannot_resume (the conversation of a parked run is gone), unkillable,
// storage_error, budget (what the run may spend is used up), checks (the checks of its
// work failed); for a landing also conflict, land_refused and land_failed, and for a model with tools model_error, tools_error, max_tokens
// and refusal.
type AgentError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// AgentLimit describes the provider's limit that a run hit.
type AgentLimit struct {
	Window   string     `json:"window,omitempty"`    // which limit, as AccountWindow.Name; "": unknown
	ResetsAt *time.Time `json:"resets_at,omitempty"` // when the provider accepts requests again; absent: unknown
	// Source says how that is known: event (a structured event of the CLI), header (of the
	// provider's answer), text (of a message for people) or guess.
	Source string `json:"source"`
	Text   string `json:"text"` // in the words of the provider or CLI, one line of at most 300 bytes
	// Began says that the model had answered in this run or in a run that it continued: work
	// may have been done.
	Began bool `json:"began,omitempty"`
}

// AgentAccount is the account that an agent's runs spend, as the agent knows it.
type AgentAccount struct {
	// Name is the configured name, else made from the kind and the login: the same for all
	// agents with that login, on any host.
	Name  string `json:"name"`
	Login string `json:"login,omitempty"` // for people: an address, or the type of key; never the secret
	// Windows are the provider's limits as last reported.
	Windows []AccountWindow `json:"windows,omitempty"`
	// AnsweredAt is when the provider last answered a request successfully, by the agent's
	// clock.
	AnsweredAt *time.Time `json:"answered_at,omitempty"`
}

// AccountWindow is one limit of a provider.
type AccountWindow struct {
	Name        string     `json:"name"`                // five_hour, seven_day, requests, tokens, …, as the provider calls it
	UsedPercent float64    `json:"used_percent"`        // at least 0; may exceed 100
	ResetsAt    *time.Time `json:"resets_at,omitempty"` // absent: unknown
}

// TokenUsage counts model tokens.
type TokenUsage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// AgentOutput is the answer to GET /task/{id}/output?after=N&wait=30s on an
// agent: the log of a run from byte N. The agent keeps the last 128 KiB in
// memory and the whole log, up to a cap, on disk.
type AgentOutput struct {
	Seq       int64  `json:"seq"`                 // position of the first byte of Text in the whole log
	Text      string `json:"text"`                // valid UTF-8; invalid bytes are replaced
	Next      int64  `json:"next"`                // ask with after=Next for what follows
	Truncated bool   `json:"truncated,omitempty"` // bytes between the asked position and Seq are no longer there
	Done      bool   `json:"done,omitempty"`      // the run has ended and Text reaches its end
	Note      string `json:"note,omitempty"`      // for a running task, as AgentTaskStatus.Note

	// Account is what the running task has learned about its account; absent: nothing yet.
	Account *AgentAccount `json:"account,omitempty"`

	// TokenUsage and CostUSD are what the run has used so far, while it runs.
	TokenUsage *TokenUsage `json:"token_usage,omitempty"`
	CostUSD    float64     `json:"cost_usd,omitempty"`

	// Final is the answer of GET /task/{id} for the ended run. It comes with Done and saves
	// another request. An agent may omit it.
	Final *AgentTaskStatus `json:"final,omitempty"`
}

// AgentStatus is the answer to GET /status on an agent.
type AgentStatus struct {
	Type          string            `json:"type"`       // "agent"
	Interfaces    []string          `json:"interfaces"` // statusable, observable, taskable
	Version       string            `json:"version"`
	AgentKind     string            `json:"agent_kind"` // claude, codex, opencode, command, llm, demo
	State         string            `json:"state"`      // idle or working
	UptimeSeconds float64           `json:"uptime_seconds"`
	CurrentTask   *AgentCurrentTask `json:"current_task,omitempty"` // the first of current_tasks
	Config        AgentConfig       `json:"config"`

	Name         string             `json:"name,omitempty"`          // signalbox, this and below
	Slots        int                `json:"slots,omitempty"`         // executions it can run concurrently, 1 if absent
	Fencing      bool               `json:"fencing,omitempty"`       // understands fence on POST /task
	Proof        bool               `json:"proof,omitempty"`         // proves on each connection that it knows its token
	LongPoll     bool               `json:"long_poll,omitempty"`     // understands ?wait= on GET /task/{id}
	Progress     bool               `json:"progress,omitempty"`      // last_progress_at reflects all activity of its runs
	HighestFence int64              `json:"highest_fence,omitempty"` // highest fence seen from Director
	Director     string             `json:"director,omitempty"`      //
	CurrentTasks []AgentCurrentTask `json:"current_tasks,omitempty"` //
	WorkDir      string             `json:"work_dir,omitempty"`      //
	Workspace    string             `json:"workspace,omitempty"`     // default for tasks that set no workspace: folder (WorkDir; also if absent), worktree or clone
	FolderID     string             `json:"folder_id,omitempty"`     // identifies WorkDir, the same for all agents that work in it: one run at a time works there; absent: any number may

	IsolatedSlots int             `json:"isolated_slots,omitempty"` // isolated executions it can run in addition to its slots
	Landing       bool            `json:"landing,omitempty"`        // takes tasks with land
	Full          string          `json:"full,omitempty"`           // why it takes no tasks now, except isolated ones: there is no space for worktrees
	Sessions      bool            `json:"sessions,omitempty"`       // answers GET /sessions, and begins a conversation under the given id
	Terminal      bool            `json:"terminal,omitempty"`       // offers a terminal
	Terminals     []AgentTerminal `json:"terminals,omitempty"`      // open terminals
	TaskEnv       []string        `json:"task_env,omitempty"`       // names in env that it also accepts from callers who are not admins; * matches any characters
	TaskChecks    string          `json:"task_checks,omitempty"`    // from whom it accepts checks of a task: admins or everyone; absent: unknown
	Steps         *AgentSteps     `json:"steps,omitempty"`          // kind llm
	Account       *AgentAccount   `json:"account,omitempty"`        // absent: the account that its runs spend is unknown
}

// AgentSteps counts the tool calls in the steps of the runs of an agent of kind
// llm, since it started.
type AgentSteps struct {
	Limit         int   `json:"limit"`          // calls allowed in the current or next step
	Executed      int64 `json:"executed"`       // the tool answered
	Failed        int64 `json:"failed"`         // the tool could not be run
	Refused       int64 `json:"refused"`        // beyond the limit
	NeedsApproval int64 `json:"needs_approval"` // needed an approval that was not given
	Aborted       int64 `json:"aborted"`        // the run ended before them
	Queued        int64 `json:"queued"`         // among all these, calls beyond the limit that waited for others
	Exempt        int64 `json:"exempt"`         // among all these, calls that the limit does not count
}

// AgentCurrentTask is a task that an agent runs now.
type AgentCurrentTask struct {
	ID             string     `json:"id"`
	QueueID        string     `json:"queue_id,omitempty"`
	Fence          int64      `json:"fence,omitempty"`
	Slot           int        `json:"slot,omitempty"`
	Isolated       bool       `json:"isolated,omitempty"` // does not count against the slots
	StartedAt      time.Time  `json:"started_at"`
	PromptPreview  string     `json:"prompt_preview"`
	LastProgressAt *time.Time `json:"last_progress_at,omitempty"`
	Note           string     `json:"note,omitempty"` // its current problem
}

// UnmarshalJSON also accepts the id alone: agents of the work-queue seed give the
// task in a refusal as a string.
func (t *AgentCurrentTask) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &t.ID)
	}
	type plain AgentCurrentTask
	return json.Unmarshal(data, (*plain)(t))
}

// AgentConfig is the part of its configuration that an agent shows.
type AgentConfig struct {
	Port  int    `json:"port"`
	Model string `json:"model"`
}

// AgentHistory is the answer to GET /history?page&limit on an agent; it
// keeps the newest 100 entries.
type AgentHistory struct {
	Entries    []AgentTaskStatus `json:"entries"`
	Page       int               `json:"page"` // from 1
	Limit      int               `json:"limit"`
	Total      int               `json:"total"`
	TotalPages int               `json:"total_pages"`
}

// AgentCancelled is the answer to POST /task/{id}/cancel on an agent: 200
// with state "cancelled" once no process of the run is left, 202 with state
// "cancelling" if that takes longer than the agent waits.
type AgentCancelled struct {
	TaskID  string `json:"task_id"`
	State   string `json:"state"`
	Message string `json:"message"`
}

// AgentVoid is the body of POST /task/{queue_id}/void on an agent: the claim of
// that task under this fence is void, and the agent must refuse an offer of it
// that is still in flight (409 stale_fence). Its fields are those of the offer.
// If the agent has already accepted the offer, it answers 409 task_in_progress
// or already_completed, and nothing changes.
type AgentVoid struct {
	Fence    int64  `json:"fence"`          // from 1
	Slot     int    `json:"slot,omitempty"` // 0-based
	Director string `json:"director,omitempty"`
	Isolated bool   `json:"isolated,omitempty"`
}

// AgentVoided is the 200 answer to AgentVoid. The agent has stored the void durably.
type AgentVoided struct {
	QueueID string `json:"queue_id"`
	Fence   int64  `json:"fence"`
	Status  string `json:"status"` // StatusVoid
}

// StatusVoid is the status of a claim that its agent will never take.
const StatusVoid = "void"

// AgentRefusal is the body of a 4xx or 5xx answer of an agent. In addition to the
// codes listed at Error, our daemon answers too_large (413), unauthorized
// (401), host_not_allowed and cross_origin (403), method_not_allowed (405),
// storage_error and internal_error (500) and shutting_down (503). A valid POST
// /task can only get storage_error or shutting_down of these, and both mean that
// the task was not accepted.
type AgentRefusal struct {
	Error        string            `json:"error"` // agent_busy, stale_fence, validation_error, not_found, already_completed, task_in_progress
	Message      string            `json:"message"`
	CurrentTask  *AgentCurrentTask `json:"current_task,omitempty"`  // agent_busy
	HighestFence int64             `json:"highest_fence,omitempty"` // stale_fence
	FinalState   string            `json:"final_state,omitempty"`   // already_completed
}

// AgentShutdown is the body of POST /shutdown on an agent: 202, or 409
// task_in_progress when a task runs and force is not set.
type AgentShutdown struct {
	TimeoutSeconds int  `json:"timeout_seconds,omitempty"`
	Force          bool `json:"force,omitempty"`
}

package signalbox

import (
	"encoding/json"
	"strconv"
	"time"
)

// Source says how a task was submitted.
type Source string

// The sources of a task. The seeds' "schedule" is SourceScheduler here.
const (
	SourceWeb       Source = "web"
	SourceScheduler Source = "scheduler"
	SourceCLI       Source = "cli"
	SourceAgent     Source = "agent"
	SourceUser      Source = "user"
	SourceAPI       Source = "api"
)

// Sources lists all sources.
func Sources() []Source {
	return []Source{SourceWeb, SourceScheduler, SourceCLI, SourceAgent, SourceUser, SourceAPI}
}

// OnLost says what happens to a task whose agent is lost after it started.
type OnLost string

// The choices for a lost task.
const (
	LostFail    OnLost = "fail"    // it ends failed; the default
	LostRequeue OnLost = "requeue" // it goes to the back of its queue and costs an attempt
)

// SessionMode says how firmly a task is bound to the agent that holds its
// session.
type SessionMode string

// The choices for a task of a session whose agent is gone.
const (
	SessionRequire SessionMode = "require" // it ends failed after session_grace; the default
	SessionPrefer  SessionMode = "prefer"  // it moves to another agent after session_grace
)

// Mode says how a task was called.
type Mode string

// The ways to call an agent.
const (
	ModeQueue  Mode = ""       // submitted; the caller need not wait
	ModeChat   Mode = "chat"   // a turn of the agent's conversation, in the agent's own queue
	ModeBypass Mode = "bypass" // isolated, outside the queue, without a conversation
	ModeTool   Mode = "tool"   // a tool call as a task, run by the director's own executor
	ModeLand   Mode = "land"   // lands the work of another task, outside the queue like a bypass; Request.Land says which
)

// Overflow says what happens to a call that its agent cannot start at once.
type Overflow string

// The overflow policies.
const (
	OverflowReject  Overflow = "reject"  // it is refused with CodeAgentBusy, and nothing is stored
	OverflowWait    Overflow = "wait"    // it waits at most for its wait timeout
	OverflowPersist Overflow = "persist" // it waits in the backlog, under the limit "work", without a timeout
)

// MaxCallDepth is the maximum length of a chain of agents that call agents.
const MaxCallDepth = 8

// Project is the working context of a task: where the agent's CLI runs.
type Project struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
}

// Request is what the submitter asked for. It changes only by an edit, and
// SealedEnv is erased when the task ends.
type Request struct {
	Prompt         string   `json:"prompt"`
	Model          string   `json:"model,omitempty"`
	Tier           string   `json:"tier,omitempty"`
	TimeoutSeconds int      `json:"timeout_seconds,omitempty"` // limit of the run; 0: the agent's default
	Project        *Project `json:"project,omitempty"`
	Thinking       *bool    `json:"thinking,omitempty"`
	SessionID      string   `json:"session_id,omitempty"` // as asked for; Task.SessionID may be the agent's
	Queue          string   `json:"queue,omitempty"`      // as asked for; Task.Queue may be the session holder's
	HadEnv         bool     `json:"had_env,omitempty"`
	NewSession     bool     `json:"new_session,omitempty"` // a chat that begins a conversation
	// For ModeBypass, if the runner supports them.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	SystemPrompt string   `json:"system_prompt,omitempty"`
	// For ModeTool. Arguments is a JSON object with the arguments of the call,
	// without the properties that the tool marks as secret: those are in
	// SealedEnv, as JSON by name. Metadata is a JSON object or empty. TimeoutMS
	// limits the run; 0: the tool's limit.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	// Trace is the W3C traceparent of the span that submitted it. Later spans of the
	// task are its children, also after a restart. "" if tracing is off.
	Trace string `json:"trace,omitempty"`
	// SealedEnv is the task's environment, encrypted. The store keeps it
	// separately and erases it when the task ends.
	SealedEnv []byte `json:"-"`
	// EnvBy is EnvByCaller if no admin set the environment and the checks, else "".
	EnvBy     EnvBy      `json:"env_by,omitempty"`
	Checking  Checking   `json:"checking,omitzero"`
	Workspace *Workspace `json:"workspace,omitempty"` // nil: the agent's default
	// Land says what a task of ModeLand lands; nil in other modes.
	Land *Land `json:"land,omitempty"`
}

// rowSize is about how many bytes the rows of a task take in addition to its texts, with
// their indexes and journal entries.
const rowSize = 1 << 10

// Size returns about how many bytes the request and the row of its task take in a store. The
// environment is not counted, because it is erased when the task ends.
func (r *Request) Size() int64 {
	n := rowSize + len(r.Prompt) + len(r.SystemPrompt) + len(r.Arguments) + len(r.Metadata)
	for _, tool := range r.AllowedTools {
		n += len(tool)
	}
	for _, c := range r.Checking.Checks {
		n += len(c.Name) + len(c.Run)
	}
	return int64(n)
}

// Task is the row of a task. A store keeps its request and result separately,
// because they can be large.
type Task struct {
	ID  string
	Seq int64 // order of submission; set by the store
	Rev int64 // 1 at submit, one more with each change; set by the store

	State   State
	Reason  Reason // empty until terminal
	Message string // for people: why it ended, or what it waits for

	// Where it waits and in which order: the lowest OrderKey is first, then the
	// lowest Place.
	Queue      string
	Limit      string // the limit it counts against while pending
	Priority   int
	Bias       time.Duration // Priority × age step, fixed at submit
	EnqueuedAt time.Time     // never decreases from one enqueueing to the next; set by the store
	Place      int64         // order of enqueueing; set by the store
	NotBefore  time.Time     // zero: at once
	WaitUntil  time.Time     // zero: waits for ever
	// Ready says that it is in the claim index: it is pending, due, and the only
	// task of its session that is ready or in flight. Set by the store.
	Ready bool

	SessionID   string
	SessionMode SessionMode
	OnLost      OnLost
	MaxAttempts int
	HasEnv      bool
	RetryOf     string // id of the task that this one repeats
	Source      Source
	SourceJob   string
	Preview     string // the first line or so of the prompt
	// IdempotencyKey creates at most one task; IdempotencyHash is the hash of the
	// body that came with it.
	IdempotencyKey  string
	IdempotencyHash string

	Mode Mode
	// Tool is the tool that it calls, for ModeTool.
	Tool string
	// Owner is the key (Principal.Key) of the principal who submitted it, from the
	// authenticated identity, never from the body; "": unknown.
	Owner      string
	OwnerEmail string
	// ParentID is the task whose execution made this call, Depth the length of
	// the chain of calls that leads to it, Waits whether the parent waits for its
	// end.
	ParentID string
	Depth    int
	Waits    bool
	// QueuedAs is its place in line when it was submitted, 0 if a slot was free.
	// Set by the store if the submission had a Room.
	QueuedAs int

	CreatedAt    time.Time
	DispatchedAt time.Time // last claim
	StartedAt    time.Time // accepted by the agent
	EndedAt      time.Time

	// The execution. Agent, AgentURL, Slot, Fence and TaskID are those of the
	// last claim and stay readable after the end.
	Agent     string
	AgentURL  string
	Slot      int
	Fence     int64  // 0: never claimed
	TaskID    string // the agent's own id for it
	Attempts  int    // failed dispatches, which count against MaxAttempts, including that of a rejected task
	Claims    int    // all claims
	NoAnswers int    // claims that ended without any answer or at a closed agent; at most MaxNoAnswers
	LastError string

	CancelRequested bool
	CancelledBy     string
	// StopReason is the limit that stops it, if no one cancelled it. With
	// StopMessage it becomes the reason of its end.
	StopReason  Reason
	StopMessage string

	// RequestSize and ResultSize are the stored bytes, as counted by Request.Size and
	// Result.Size when the request and the result are stored. A RequestSize of 0 comes
	// from a release that did not count.
	RequestSize, ResultSize int64

	// Failure is the line that most likely says why it failed, and Cause the
	// Fingerprint of that line: see SetFailure.
	Failure string
	Cause   string

	// Requeues are its latest returns to the queue, oldest first, at most
	// MaxRequeues; nil: none. The slice is immutable and shared between copies of the row.
	Requeues *[]Requeue

	// Spent is what its runs reported, including runs that were lost and repeated, but not
	// what void runs reported later (Stale).
	Spent Spent

	// EditedAt is when EditedBy last edited it while it waited; zero: never.
	EditedAt time.Time
	EditedBy string

	// IgnoreGates lets it be claimed and run even if the account of its agent is not open or a
	// budget other than its own is used up. It is reset at the end of the run.
	IgnoreGates bool

	// Parking is how it was last parked; nil: never. Immutable.
	Parking *Parking

	// Budget limits what its runs may spend in total: Spent and the run in flight.
	Budget Budget

	// Needs is what its run holds, by resource; nil: nothing. Immutable.
	Needs     *[]Need
	Workplace Workplace // where its run works
	Landing   *Landing  // the landing of its work on a branch; nil: not wanted. Immutable
}

// Requires lists what the execution of the task at an agent holds, by resource. folder is the
// folder in which the run works at that agent, "": none.
func (t *Task) Requires(folder string) []Need {
	var needs []Need
	if t.Needs != nil {
		needs = *t.Needs
	}
	if folder == "" {
		return needs
	}
	return append([]Need{{Exclusive("folder", folder), 1}}, needs...)
}

// Kept returns how many bytes an ended task counts against the limits on retained
// tasks. A task stored by a release that did not count has 0: only its age limits it.
func (t *Task) Kept() int64 {
	if t.RequestSize == 0 {
		return 0
	}
	return t.RequestSize + t.ResultSize
}

// QueueStatus returns the seed's status of the task at submit (seed
// execution-queue): "running", or "queued:N" with its place in line. It is
// "queued" for a task that was only queued or that ended before it ran.
func (t *Task) QueueStatus() string {
	switch {
	case t.QueuedAs > 0:
		return "queued:" + strconv.Itoa(t.QueuedAs)
	case t.Mode == ModeQueue || t.Mode == ModeTool || t.neverRan():
		return "queued"
	}
	return "running"
}

func (t *Task) neverRan() bool { return t.State.Terminal() && t.StartedAt.IsZero() }

// WasQueued reports whether the task had to wait at its submit, or ended before it ran.
func (t *Task) WasQueued() bool { return t.QueuedAs > 0 || t.neverRan() }

// OrderKey returns the key by which waiting tasks are ordered: the time of
// enqueueing in ms, minus the bias of the priority. It is fixed when the task
// is enqueued, so that a high priority overtakes others but never starves them.
func (t *Task) OrderKey() int64 { return t.EnqueuedAt.UnixMilli() - t.Bias.Milliseconds() }

// Limits on claims and priorities.
const (
	MaxNoAnswers = 10 // claims that may end without any answer (design §2)
	MinPriority  = -10
	MaxPriority  = 10
)

package signalbox

import (
	"encoding/json"
	"strconv"
	"time"
)

// Source says by which way a task came in.
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

// OnLost says what becomes of a task whose agent is lost after it started.
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
	ModeQueue  Mode = ""       // submitted: nobody need wait for it
	ModeChat   Mode = "chat"   // a turn of the agent's conversation, in the agent's own queue
	ModeBypass Mode = "bypass" // isolated, beside the queue, without a conversation
	ModeTool   Mode = "tool"   // a tool call as a task, run by the director's own executor
	ModeLand   Mode = "land"   // lands the work of another task, beside the queue as a bypass; Request.Land says which
)

// Overflow says what becomes of a call when its agent cannot start it at once.
type Overflow string

// The overflow policies.
const (
	OverflowReject  Overflow = "reject"  // it is refused with CodeAgentBusy, and nothing is stored
	OverflowWait    Overflow = "wait"    // it waits for its wait timeout at most
	OverflowPersist Overflow = "persist" // it waits in the backlog, under the limit "work", for as long as it takes
)

// MaxCallDepth bounds chains of agents that call agents.
const MaxCallDepth = 8

// Project is the working context of a task: where the agent's CLI runs.
type Project struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
}

// Request is what the submitter asked for. It does not change after submit,
// but for its Env, which is erased when the task ends.
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
	// For ModeBypass, where the runner knows them.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	SystemPrompt string   `json:"system_prompt,omitempty"`
	// For ModeTool. Arguments are those of the call, a JSON object without the
	// properties that the tool marks as secret: these are in SealedEnv, as JSON
	// by their names. Metadata is a JSON object or empty; TimeoutMS is the task's
	// own limit on the run, 0: the tool's.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	// Trace is the W3C traceparent of the span that submitted it: what follows
	// is traced under it, across restarts. "" where nothing is traced.
	Trace string `json:"trace,omitempty"`
	// SealedEnv is the task's environment, encrypted. The store keeps it
	// apart and erases it when the task ends.
	SealedEnv []byte `json:"-"`
	// EnvBy is EnvByCaller where no admin gave the environment and the checks, else "".
	EnvBy     EnvBy      `json:"env_by,omitempty"`
	Checking  Checking   `json:"checking,omitzero"`
	Workspace *Workspace `json:"workspace,omitempty"` // nil: as its agent is configured
	// Land says what a task of ModeLand lands; nil for all others.
	Land *Land `json:"land,omitempty"`
}

// rowSize is about how much the rows of a task take beside its texts, with their
// indexes and journal entries, in bytes.
const rowSize = 1 << 10

// Size is about how much a store takes for what was asked for and the row of its
// task, in bytes. The environment is not counted: it goes when the task ends.
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

// Task is a task's row without its request and result, which a store keeps
// apart because they can be large.
type Task struct {
	ID  string
	Seq int64 // order of submission; set by the store
	Rev int64 // 1 at submit, one more with each change; set by the store

	State   State
	Reason  Reason // empty until terminal
	Message string // for people: why it ended, or what it waits for

	// Where it waits and in which order. The lowest OrderKey is first, then
	// the lowest Place.
	Queue      string
	Limit      string // the limit it counts against while pending
	Priority   int
	Bias       time.Duration // Priority × age step, fixed at submit
	EnqueuedAt time.Time     // never decreases from one enqueueing to the next; set by the store
	Place      int64         // order of enqueueing; set by the store
	NotBefore  time.Time     // zero: at once
	WaitUntil  time.Time     // zero: waits for ever
	// Ready says that it stands in the claim index: pending, due, and the
	// only one of its session that is ready or in flight. Set by the store.
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
	// IdempotencyKey makes at most one task; IdempotencyHash is of the body
	// that came with it.
	IdempotencyKey  string
	IdempotencyHash string

	Mode Mode
	// Tool is the tool that it calls, for ModeTool.
	Tool string
	// Owner is the key of the principal who asked (Principal.Key), from the
	// identity that was shown, never from the body; "" is nobody in particular.
	Owner      string
	OwnerEmail string
	// ParentID is the task whose execution made this call, Depth how many such
	// calls lead to it, Waits whether the parent waits for its end.
	ParentID string
	Depth    int
	Waits    bool
	// QueuedAs is its place in line when it was submitted, 0 where a slot was
	// free for it. Set by the store, where the submission had a Room.
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
	Attempts  int    // dispatches that failed and count against MaxAttempts, that of a rejected task too
	Claims    int    // all claims
	NoAnswers int    // claims that ended without any answer, or at an agent that is closed; bounded by MaxNoAnswers
	LastError string

	CancelRequested bool
	CancelledBy     string
	// StopReason is why it is being stopped where nobody cancelled it: a limit
	// that fired. With StopMessage it becomes the reason of its end.
	StopReason  Reason
	StopMessage string

	// RequestSize and ResultSize are what the store keeps of it, in bytes, as
	// Request.Size and Result.Size count it: set where the one and the other are.
	// A RequestSize of 0 is that of a release which did not count.
	RequestSize, ResultSize int64

	// Failure is the line that most likely says why it failed, and Cause the
	// Fingerprint of that line: see SetFailure.
	Failure string
	Cause   string

	// Requeues are its latest returns to the queue, oldest first, at most
	// MaxRequeues; nil: none. What it points to never changes, so that rows share it.
	Requeues *[]Requeue

	// Spent is what its runs reported, those that were lost and run again too; not
	// what void runs said later (Stale).
	Spent Spent

	// EditedAt is when EditedBy changed it last while it waited; zero: never.
	EditedAt time.Time
	EditedBy string

	// Anyway lets it be claimed, and run, though the account of its agent is not open or a
	// budget other than its own is used up; it ends with the run.
	Anyway bool

	// Parking is how it was parked last; nil: never. What it points to never changes.
	Parking *Parking

	// Budget bounds what its runs may spend together: Spent and the one in flight.
	Budget Budget

	// Needs is what its run holds, by resource; nil: nothing. What it points to never changes.
	Needs     *[]Need
	Workplace Workplace // where its run works
	Landing   *Landing  // the way of its work to a branch; nil: nobody wants it there. What it points to never changes
}

// Requires lists what the execution of the task at an agent holds, by resource; folder is the
// one in which the agent's runs work unless they are placed elsewhere, "": none.
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

// Kept is how much it counts, once it has ended, against the bounds on what is
// kept of ended tasks, in bytes. What was stored by a release that did not count
// counts nothing: it goes with its time.
func (t *Task) Kept() int64 {
	if t.RequestSize == 0 {
		return 0
	}
	return t.RequestSize + t.ResultSize
}

// QueueStatus is the seed's word for how the task fared at submit: "running",
// or "queued:N" with its place in line (seed execution-queue). A task that was
// only put into a queue, or ended before it ran, is "queued".
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

// WasQueued reports whether the task had to wait: at its submit, or until it ended.
func (t *Task) WasQueued() bool { return t.QueuedAs > 0 || t.neverRan() }

// OrderKey is the key by which waiting tasks are taken: the time of
// enqueueing in ms, less the bias of the priority. It is fixed when the task
// is enqueued, so that a high priority can overtake but never starve.
func (t *Task) OrderKey() int64 { return t.EnqueuedAt.UnixMilli() - t.Bias.Milliseconds() }

// Limits on claims and priorities.
const (
	MaxNoAnswers = 10 // claims that may end without any answer (design §2)
	MinPriority  = -10
	MaxPriority  = 10
)

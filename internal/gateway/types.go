package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Kind is the kind of a tool's provider.
type Kind string

// The kinds. Internal tools are Signalbox's own and bypass all tool queues.
const (
	KindMCP      Kind = "mcp"
	KindREST     Kind = "rest"
	KindOpenAPI  Kind = "openapi"
	KindCommand  Kind = "command"
	KindInternal Kind = "internal"
)

// Tool is a callable tool.
type Tool struct {
	Name   string // as callers use it: server__tool, rest__name
	Server string // its provider: the server's name, "rest", or the description's name
	Kind   Kind
	Queue  string // "": it bypasses all queues
	// Definition is the MCP Tool object of the upstream, with the name replaced.
	Definition json.RawMessage
	Timeout    time.Duration // of one call and of its wait. An Async tool waits without limit, and 0 means no limit for its run
	// Async makes every call a task; the caller gets the task's ID.
	Async bool
	// Restart says what happens to the tool's tasks when the director restarts.
	Restart RestartPolicy
	// Secrets are the arguments whose values are encrypted at rest and masked in all output.
	Secrets []string
}

// RestartPolicy says what happens to a tool's tasks when the director restarts (in
// the seed async-task-queue both fail).
type RestartPolicy struct {
	FailPending    bool // waiting tasks fail instead of being kept; false by default
	RequeueRunning bool // running tasks start again instead of failing; false by default
}

// Caller is the caller of a tool.
type Caller struct {
	Session   string // key of a session lease; "": none
	Principal string // its signalbox.Principal.Key
	Agent     string // the agent whose execution makes the call, if known
	Execution string // its queue_id, if known
	// Who is the principal itself; required for calls that become tasks.
	Who signalbox.Principal
}

// Call is one call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object, or empty
	Meta      json.RawMessage // the request's _meta without its progress token, or empty
	Caller    Caller
	// Progress is called with the progress: the position in the queue, then what the upstream
	// reports. nil: no reports. Calls do not overlap.
	Progress func(Progress)
	// Task is the ID of the task that the call belongs to, or "".
	Task string
	// Mark identifies the run among all processes of the machine (SIGNALBOX_RUN in their
	// environment), so that surviving processes are found after this process has ended. "":
	// the provider generates a mark.
	Mark string
	// Secrets are arguments to mask in addition to Tool.Secrets: the tool may have named
	// them when the call was made.
	Secrets []string
	// Limit, if above 0, is the task's own timeout of the run and has precedence over the
	// tool's. A provider of KindCommand enforces it itself, because its runs end with proof:
	// for this provider Limit is the effective timeout, and 0 is none.
	Limit time.Duration
	// QueueTimeoutOnly says that only the queue's own bound ends the wait, not the tool's timeout: no
	// connection is open during the wait.
	QueueTimeoutOnly bool
	// Log, if set, receives the output of the tool while it runs, in whole UTF-8 characters.
	// Calls do not overlap.
	Log func(stream string, text []byte)
	// OnWait, if set, is called once, before the call first waits for a slot. It must return
	// quickly.
	OnWait func(toolqueue.Waiting)
	// OnStart, if set, is called once, when the call has its slot and before it runs. It may set
	// Task, Mark and Log. If it returns an error, the call ends without a run.
	OnStart func(*Call) error
}

// Progress is a progress report of a call.
type Progress struct {
	Progress float64
	Total    float64 // 0: unknown
	Message  string
	// Position is the position in the queue while the call waits, otherwise 0.
	Position int
	// StartsAt is the earliest time at which the call may start, if its queue is closed or has a
	// rate limit. Zero: the call waits for a slot, or runs.
	StartsAt time.Time
}

// Result is the answer of a tool: the parts of an MCP CallToolResult, each as the upstream
// wrote it.
type Result struct {
	Content    json.RawMessage // an array of content blocks
	Structured json.RawMessage // structuredContent, or empty
	Meta       json.RawMessage // _meta, or empty
	IsError    bool
	// Metadata is the key metadata beside the content, as in the seed async-task-queue; or
	// empty.
	Metadata json.RawMessage
	// Run says how the run of a command ended, completed or not. It stays inside the process.
	Run *RunEnd
}

// RunEnd says how the run of a command ended.
type RunEnd struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // why it did not complete
	ExitCode  *int             // nil: ended by a signal, or not started
	Truncated bool             // the output was longer than the answer
	Took      time.Duration
	// Alive lists processes that could not be killed; nil: none. The slot is held until Alive
	// returns an empty list.
	Alive func() []int
}

// ProtocolError is a JSON-RPC error of an upstream, passed on unchanged.
type ProtocolError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *ProtocolError) Error() string { return e.Message }

// State is the state of a provider's server.
type State string

const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateFailed   State = "failed" // retried after a while
	StateStopped  State = "stopped"
)

// Server is the status of a provider.
type Server struct {
	Name     string
	Kind     Kind
	State    State
	Error    string    // why it is not ready, or a problem of a ready server
	Restarts int       // since the gateway started
	PIDs     []int     // the processes it started
	Tools    int       // number of tools it offers
	Since    time.Time // start of the state
}

// Provider provides tools. All methods are safe for concurrent use.
type Provider interface {
	// Name is unique among the providers.
	Name() string
	// Start connects. It returns quickly: slow work continues in the background until ctx
	// ends, visible in Server. changed is called without locks whenever the tools change.
	Start(ctx context.Context, changed func()) error
	// Tools lists the tools that can be called now, or could be before the server went down.
	// Queue and Timeout are set.
	Tools() []Tool
	// Call calls one of Tools by its Name while the slot is held. When ctx ends, it notifies the
	// upstream and returns quickly. The error is a *ProtocolError for a JSON-RPC error, a
	// *Refused for a call that the upstream did not process, otherwise a *signalbox.Error.
	Call(ctx context.Context, c Call) (Result, error)
	// EndSession is called when a session will make no more calls.
	EndSession(session string)
	// Server returns the status.
	Server() Server
	// Close ends all connections and processes, including child processes, and waits
	// until they ended.
	Close() error
}

// Checker is a Provider that can validate a call locally, before the call waits for a slot.
type Checker interface {
	// Check returns a validation_error, or nil.
	Check(c Call) error
}

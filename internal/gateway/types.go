package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Kind is the kind of provider of a tool.
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
	Name   string // as callers name it: server__tool, rest__name
	Server string // its provider: the server's name, "rest", the description's name
	Kind   Kind
	Queue  string // "": it bypasses all queues
	// Definition is the MCP Tool object of the upstream, with the name replaced.
	Definition json.RawMessage
	Timeout    time.Duration // of one call and of its wait; 0 for an Async tool: no limit. An Async tool waits without limit
	// Async makes every call a task, answered with its ID.
	Async bool
	// Restart is what happens to its tasks when the director restarts.
	Restart RestartPolicy
	// Secrets are the arguments whose values are encrypted at rest and masked in all output.
	Secrets []string
}

// RestartPolicy is what happens to a tool's tasks when the director restarts (seed
// async-task-queue: both fail).
type RestartPolicy struct {
	FailPending    bool // waiting tasks fail, else they are kept; false by default
	RequeueRunning bool // running tasks start again, else they fail; false by default
}

// Caller is the caller of a tool.
type Caller struct {
	Session   string // key of a session lease; "": none
	Principal string // signalbox.Principal.Key of it
	Agent     string // the agent in whose execution the call is made, if known
	Execution string // its queue_id, if known
	// Who is the principal itself, if tasks can be made.
	Who signalbox.Principal
}

// Call is one call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object, or empty
	Meta      json.RawMessage // the request's _meta without its progress token, or empty
	Caller    Caller
	// Progress is called with the progress: the position in the queue, then what the upstream
	// reports. nil: none. It is called from one goroutine at a time.
	Progress func(Progress)
	// Task is the ID of the task that the call is part of, or "".
	Task string
	// Mark identifies the run among all processes of the machine (SIGNALBOX_RUN in their
	// environment), so that leftovers are found when this process is gone. "": the provider
	// generates one.
	Mark string
	// Secrets are arguments to mask besides those that the tool names now: it may have named
	// them when the call was made.
	Secrets []string
	// Limit, if above 0, is the task's own timeout of the run, before the tool's. A provider of
	// KindCommand enforces it itself, because its runs end with proof: for it Limit is the
	// effective timeout, 0 is none.
	Limit time.Duration
	// QueueTimeoutOnly says that only the queue's own bound ends the wait, not the tool's timeout: no
	// connection is open for it.
	QueueTimeoutOnly bool
	// Log, if set, receives the output of the tool while it runs: whole UTF-8 characters. It is
	// called from one goroutine at a time.
	Log func(stream string, text []byte)
	// OnWait, if set, is called once before the call first waits for a slot. It must return soon.
	OnWait func(toolqueue.Waiting)
	// OnStart, if set, is called once when the call has its slot and before it runs. It may set Task,
	// Mark and Log. An error ends the call, and nothing runs.
	OnStart func(*Call) error
}

// Progress is a progress report of a call.
type Progress struct {
	Progress float64
	Total    float64 // 0: unknown
	Message  string
	// Position is the position in the queue while the call waits, else 0.
	Position int
	// StartsAt is when the call may start at the earliest, where a closed queue or the rate of its
	// queue holds it; zero: it waits for a slot, or runs.
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
	// Run is how the run of a command ended, completed or not. It is not shown outside of the
	// process.
	Run *RunEnd
}

// RunEnd is how the run of a command ended.
type RunEnd struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // why it did not complete
	ExitCode  *int             // nil: ended by a signal, or not started
	Truncated bool             // the output is longer than the answer
	Took      time.Duration
	// Alive lists processes that could not be killed; nil: none. The slot is held until Alive
	// returns none.
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
	Error    string    // why it is not ready, or a problem although it is
	Restarts int       // since the start
	PIDs     []int     // of the processes it started
	Tools    int       // how many it offers
	Since    time.Time // of the state
}

// Provider provides tools. All methods are safe for concurrent use.
type Provider interface {
	// Name is unique among the providers.
	Name() string
	// Start connects. It returns soon: slow work goes on in the background until ctx ends,
	// visible in Server. changed is called without locks whenever the tools change.
	Start(ctx context.Context, changed func()) error
	// Tools lists the tools that can be called now or could before the server went down. Queue
	// and Timeout are set.
	Tools() []Tool
	// Call calls one of Tools by its Name, while the slot is held. When ctx ends it notifies
	// the upstream and returns soon. Errors are *ProtocolError for JSON-RPC errors, *Refused for
	// a call that the upstream did not process, else *signalbox.Error.
	Call(ctx context.Context, c Call) (Result, error)
	// EndSession is called when a session will make no more calls.
	EndSession(session string)
	// Server returns the status.
	Server() Server
	// Close ends all connections and processes, with their children, and waits for that.
	Close() error
}

// Checker is a Provider that can validate a call without asking anyone, before the call waits
// for a slot.
type Checker interface {
	// Check returns a validation_error, or nil.
	Check(c Call) error
}

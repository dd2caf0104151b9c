package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Kind says what provides a tool.
type Kind string

// The kinds. Internal tools are Signalbox's own and bypass all tool queues.
const (
	KindMCP      Kind = "mcp"
	KindREST     Kind = "rest"
	KindOpenAPI  Kind = "openapi"
	KindCommand  Kind = "command"
	KindInternal Kind = "internal"
)

// Tool is what callers can call.
type Tool struct {
	Name   string // as callers name it: server__tool, rest__name
	Server string // of which provider it is: the server's name, "rest", the description's name
	Kind   Kind
	Queue  string // "": it bypasses all queues
	// Definition is the MCP Tool object as the upstream wrote it, but for its name.
	Definition json.RawMessage
	Timeout    time.Duration // of one call, and of its wait in line; 0 for an Async one: no limit. An Async one waits without regard to it
	// Async says that a call becomes a task and is answered with its id.
	Async bool
	// Restart says what becomes of its tasks when the director restarts.
	Restart RestartPolicy
	// Secrets are the properties of the arguments whose values are kept
	// encrypted and hidden in all output.
	Secrets []string
}

// RestartPolicy says what becomes of a tool's tasks when the director
// restarts (seed async-task-queue: both fail).
type RestartPolicy struct {
	FailPending    bool // what waits fails, else it is kept; false by default
	RequeueRunning bool // what ran starts anew, else it fails; false by default
}

// Caller is who calls.
type Caller struct {
	Session   string // keeps a session lease; "": every call is for itself
	Principal string // signalbox.Principal.Key of it
	Agent     string // the agent in whose execution the call is made, if known
	Execution string // its queue_id, if known
	// Who is the principal itself, where tasks can be made.
	Who signalbox.Principal
}

// Call is one call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object, or empty
	Meta      json.RawMessage // the request's _meta without its progress token, or empty
	Caller    Caller
	// Progress takes what the caller is to be told while it waits: its place in
	// line, then what the upstream says. nil: the caller does not want to know.
	// It is called from one goroutine at a time.
	Progress func(Progress)
	// Task is the id of the task that the call is part of, "" if it is none.
	Task string
	// Mark names the run among all processes of the machine (SIGNALBOX_RUN in
	// their environment), so that what is left of it can be found when this
	// process is gone. "": whoever starts a process makes one.
	Mark string
	// Secrets are arguments that are not to be shown, beside those that the tool
	// names: it may have named them when the call was made, and no longer does.
	Secrets []string
	// Limit, if above 0, is the task's own limit on the run, before the tool's.
	// A provider of KindCommand keeps that time by itself, because its runs end
	// with proof: for it Limit is the time that holds, the tool's own where the
	// caller gave none, and 0 where there is none.
	Limit time.Duration
	// Patient says that only the queue's own bound ends the wait in line, and
	// not the tool's timeout: nobody holds a connection for it.
	Patient bool
	// Log, if set, takes what the tool prints while it runs, as it comes: whole
	// characters of UTF-8. It is called from one goroutine at a time.
	Log func(stream string, text []byte)
	// Waits, if set, is told once when the call has to stand in line, before it
	// does. It must return soon.
	Waits func(toolqueue.Waiting)
	// Begun, if set, is called when the call has its slot and before it runs. It
	// may fill in Task, Mark and Log, for those who know them only then. An error
	// ends the call with it, and nothing runs.
	Begun func(*Call) error
}

// Progress is a word on how far a call is.
type Progress struct {
	Progress float64
	Total    float64 // 0: unknown
	Message  string
	// Position is the place in line while the call waits, else 0.
	Position int
}

// Result is what a tool answered: an MCP CallToolResult in its parts, each as
// the upstream wrote it.
type Result struct {
	Content    json.RawMessage // an array of content blocks
	Structured json.RawMessage // structuredContent, or empty
	Meta       json.RawMessage // _meta, or empty
	IsError    bool
	// Metadata is the key metadata beside the content, as the seed
	// async-task-queue has it; or empty.
	Metadata json.RawMessage
	// Run is how the run ended, where a provider of KindCommand made one,
	// whether or not it completed. Nobody outside of the process is told it.
	Run *RunEnd
}

// RunEnd is how the run of a command ended.
type RunEnd struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // why it did not complete
	ExitCode  *int             // nil where a signal ended it, or nothing was started
	Truncated bool             // more was printed than the answer holds
	Took      time.Duration
	// Alive lists what could not be killed and lives on; nil: nothing does. The
	// slot of the run is given to nobody else before Alive returns none.
	Alive func() []int
}

// ProtocolError is a JSON-RPC error of an upstream; it is handed on unchanged.
type ProtocolError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *ProtocolError) Error() string { return e.Message }

// State is how a provider's server is.
type State string

// The states of a server.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateFailed   State = "failed" // it is tried again after a while
	StateStopped  State = "stopped"
)

// Server is one provider, for those who look at the gateway.
type Server struct {
	Name     string
	Kind     Kind
	State    State
	Error    string    // why it is not ready, or what is wrong although it is
	Restarts int       // since the start
	PIDs     []int     // of the processes it started
	Tools    int       // how many it offers
	Since    time.Time // of the state
}

// Provider has tools. All methods are safe for use from several goroutines.
type Provider interface {
	// Name names the provider among all of them.
	Name() string
	// Start connects. It returns soon: what takes time goes on in the
	// background until ctx ends, and shows in Server. changed is called
	// whenever the tools are others than before, with nothing locked.
	Start(ctx context.Context, changed func()) error
	// Tools are those that can be called now or that could be called before
	// the server went away. Queue and Timeout are filled in.
	Tools() []Tool
	// Call calls one of Tools by its Name; the slot is held already. It
	// returns soon after ctx ends, having told the upstream. Errors are
	// *ProtocolError for what the upstream said, else *signalbox.Error.
	Call(ctx context.Context, c Call) (Result, error)
	// EndSession is told that a session will not call again.
	EndSession(session string)
	// Server describes it.
	Server() Server
	// Close ends all connections and processes, with their children, and
	// returns when they are gone.
	Close() error
}

// Checker is a Provider that can tell a call that does not fit its tool from
// one that does without asking anyone. It is asked before the call waits for
// a slot.
type Checker interface {
	// Check returns a validation_error, or nil.
	Check(c Call) error
}

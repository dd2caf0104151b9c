package toolconf

import (
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Config is the configuration of the gateway. The zero Config has no tools.
type Config struct {
	Queues  map[string]Queue // has "default" if there is any tool
	Servers []Server         // by name, like the others
	Rest    []RestTool
	OpenAPI []OpenAPI
	// Commands are the command tools, by name.
	Commands []CommandTool
	// MaxConcurrent is how many async commands may run at a time, as given by a tools
	// file (maxConcurrent, maxParallelTasks); 0: not given.
	MaxConcurrent int
	Notes         []Note // for the log
}

// Note is something in a file that is not an error but worth logging, such as an
// ignored key of another program.
type Note struct {
	Where   string // file:line
	Key     string
	Text    string
	Warning bool // a setting has no effect
}

func (n Note) String() string {
	return conffile.Problem{Where: n.Where, Key: n.Key, Text: n.Text}.String()
}

// Empty reports whether there is nothing to serve.
func (c Config) Empty() bool { return len(c.Servers)+len(c.Rest)+len(c.OpenAPI)+len(c.Commands) == 0 }

// Queue is a tool queue.
type Queue struct {
	Concurrent int           // concurrent calls, 1 to 1000000
	MaxWait    time.Duration // 0: the tool's own timeout
	MaxWaiters int           // 0: no limit
	LeaseIdle  time.Duration // session lease: ends after this time without a call; 0: no lease
	LeaseHold  time.Duration // session lease: ends after this time; 0: no limit
	Rate       toolqueue.Rate
	Per        Per    // each of these has its own limits; "": all calls share them
	Argument   string // for PerArgument
	Shared     bool   // by all directors over one store; otherwise each has slots of its own
	Where      string // file:line
}

// Per is what each set of a queue's limits applies to.
type Per string

// Values of Per.
const (
	PerCaller   Per = "caller"
	PerSession  Per = "session"
	PerArgument Per = "argument"
)

// Transport is how an MCP server is reached.
type Transport string

// The transports.
const (
	Stdio     Transport = "stdio"
	HTTP      Transport = "http" // streamable HTTP
	SSE       Transport = "sse"  // HTTP with SSE, of protocol version 2024-11-05
	WebSocket Transport = "websocket"
)

// Server is an MCP server.
type Server struct {
	Name      string
	Transport Transport
	Command   string            // for stdio
	Args      []string          // for stdio
	Env       map[string]string // for stdio, added to a small environment
	Cwd       string            // for stdio; "": the gateway's
	URL       string            // for the other transports
	Headers   map[string]string // for the other transports
	Secrets   []string          // values of variables in any of these: must never be shown

	ToolsAllowed []string // the server's own names, where * stands for any text; empty: all
	ToolsDenied  []string // has precedence
	// Shared servers have one connection or process for all sessions, others have one
	// for each session.
	Shared         bool
	HealthProbe    string            // ping, listTools or off
	RequestTimeout time.Duration     // of one call; 0: the gateway's
	Queue          string            // for its tools, never empty
	ToolQueues     map[string]string // for some of them, by the server's own names
	Where          string            // file:line
}

// RestTool is one HTTP request as a tool. Its URL, headers and body are
// templates with ${parameters.NAME}.
type RestTool struct {
	Name         string
	Description  string
	Method       string // upper case
	URL          string // its scheme and host contain no parameters
	Headers      map[string]string
	Parameters   []byte        // JSON Schema of the arguments; empty: any object
	BodyTemplate []byte        // JSON; empty: no body, unless the method has one: then the arguments as JSON
	Queue        string        // never empty
	Timeout      time.Duration // 0: the gateway's
	Secrets      []string      // values of variables in any of these, except in the host and path of the URL: must never be shown
	Where        string
}

// OpenAPI is a description whose operations are tools.
type OpenAPI struct {
	Name           string
	Spec           string // a file, absolute, or a URL
	BaseURL        string // "": the description's first server
	Headers        map[string]string
	Secrets        []string // values of variables in the headers: must never be shown
	IncludeMethods []string // upper case; empty: all
	TagFilter      []string // empty: all
	ToolNamePrefix string
	Queue          string            // never empty
	ToolQueues     map[string]string // by operationId, or by the tool's name
	Timeout        time.Duration     // 0: the gateway's
	Where          string
}

// CommandTool is a program as a tool (seed async-task-queue). It gets one
// line of JSON as input: {tool, input, metadata, taskId}.
type CommandTool struct {
	Name        string // as callers use it: without a prefix
	Title       string
	Description string

	Command string            // absolute path, or a name that is looked up in PATH when a run begins
	Args    []string          // never given to a shell
	Cwd     string            // absolute; "": the folder of the file that declares it
	CwdRoot string            // absolute; must contain the working folder after resolving links; "": no restriction
	CwdFrom string            // property of the input that names the working folder, relative to Cwd; "": none
	Env     map[string]string // the complete environment; nothing is inherited
	Values  []string          // values of variables in any of these: must never be shown

	InputSchema []byte   // JSON Schema of an object; empty: any object
	Secrets     []string // properties of the input that are encrypted and masked

	Async   bool
	Timeout time.Duration // of a run; 0: none for an async tool, otherwise the gateway's
	Queue   string        // its tool queue; "": none. Tools that are not async have "default"
	Restart Restart
	Limits  CommandLimits
	Sandbox Sandbox
	Where   string // file:line
}

// Restart is what happens to a tool's tasks when the director restarts.
type Restart struct {
	Pending string // keep (default) or fail
	Running string // fail (default) or requeue
}

// CommandLimits limit a run with all processes that it starts. 0 is no limit, except
// for Output.
type CommandLimits struct {
	Memory    int64         // bytes
	CPUs      float64       // CPU cores, such as 0.5
	CPUTime   time.Duration // of all cores together
	Processes int           // alive at the same time, including threads
	FileSize  int64         // bytes of one file
	OpenFiles int           // of one process
	Output    int64         // bytes of both outputs together; 0: DefaultOutput
}

// DefaultOutput limits what a run may print, 64 MiB. The first 1 MiB of each output is
// kept as its result.
const DefaultOutput = 64 << 20

// Sandbox is what a run may access.
type Sandbox struct {
	// Mode is off (default), auto (if this machine has one; otherwise a warning)
	// or required (without it a run is refused).
	Mode    string
	Kind    string   // "": any, or bubblewrap or landlock
	Read    []string // absolute; in addition to the system's folders, the command and its working folder
	Write   []string // absolute; in addition to a temporary folder of the run
	Network bool     // it may use the network
}

// Values of a restart policy and of a sandbox's mode.
const (
	Keep    = "keep"
	Fail    = "fail"
	Requeue = "requeue"

	SandboxOff      = "off"
	SandboxAuto     = "auto"
	SandboxRequired = "required"
)

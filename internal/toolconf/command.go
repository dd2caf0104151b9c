package toolconf

import "time"

// CommandTool is a program as a tool (seed async-task-queue). It is given one
// line of JSON on its input: {tool, input, metadata, taskId}.
type CommandTool struct {
	Name        string // as callers name it: nothing is put in front
	Title       string
	Description string

	Command string            // absolute path, or a name that is looked up in PATH when a run begins
	Args    []string          // never given to a shell
	Cwd     string            // absolute; "": the folder of the file that declares it
	CwdRoot string            // absolute; the working folder must lie within it, links resolved; "": anywhere
	CwdFrom string            // property of the input that names the working folder, relative to Cwd; "" none
	Env     map[string]string // the whole environment; nothing is inherited
	Values  []string          // values of variables that stand in any of these: never to be shown

	InputSchema []byte   // JSON Schema of an object; empty: an object of anything
	Secrets     []string // properties of the input that are kept encrypted and hidden

	Async   bool
	Timeout time.Duration // of a run; 0: none for an async tool, the gateway's for another
	Queue   string        // its tool queue; "": none. Tools that are not async have "default"
	Restart Restart
	Limits  CommandLimits
	Sandbox Sandbox
	Where   string // file:line
}

// Restart is what becomes of a tool's tasks at a restart of the director.
type Restart struct {
	Pending string // keep (default) or fail
	Running string // fail (default) or requeue
}

// CommandLimits bound a run with all that it starts. 0 is no limit, but for
// Output.
type CommandLimits struct {
	Memory    int64         // bytes
	CPUs      float64       // cores' worth of time, such as 0.5
	CPUTime   time.Duration // of all cores together
	Processes int           // alive at one time, threads included
	FileSize  int64         // bytes, of one file
	OpenFiles int           // of one process
	Output    int64         // bytes of both outputs together; 0: DefaultOutput
}

// DefaultOutput bounds what a run may print, 64 MiB. Of that the first 1 MiB of
// each output is kept as its result.
const DefaultOutput = 64 << 20

// Sandbox is what a run may reach.
type Sandbox struct {
	// Mode is off (default), auto (where this machine has one; a warning where
	// not) or required (a run without it is refused).
	Mode    string
	Kind    string   // "" any, bubblewrap or landlock
	Read    []string // absolute; more than the system's folders, the command and its working folder
	Write   []string // absolute; more than a temporary folder of the run
	Network bool     // it may use the network
}

// DefaultConcurrent is how many async commands run side by side (seed:
// maxConcurrent).
const DefaultConcurrent = 10

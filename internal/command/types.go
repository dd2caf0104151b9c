package command

import (
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Texts of the seed async-task-queue.
const (
	NoOutput     = "(no output)"
	StderrPrefix = "stderr:\n"
)

// KeptOutput bounds what is kept of each output as the result, 1 MiB.
const KeptOutput = signalbox.OutputBytes

// CancelGrace is how long a run has between SIGTERM and SIGKILL when it is
// cancelled. One that is out of time gets SIGKILL at once (seed).
const CancelGrace = 2 * time.Second

// Run is one run of a tool.
type Run struct {
	TaskID   string          // in the line of JSON; "" for a call that is no task
	Mark     string          // unique; all it starts is found by it
	Input    json.RawMessage // an object that Check has passed, or empty
	Metadata json.RawMessage // an object, or empty
	Timeout  time.Duration   // before the tool's own; 0: the tool's
	// Log takes what it prints as it comes, "stdout" or "stderr", from one
	// goroutine at a time.
	Log func(stream string, text []byte)
}

// Outcome is how a run ended. Nothing of it lives.
type Outcome struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // as the seed words it; never empty unless completed
	Stdout    string           // the first KeptOutput bytes, valid UTF-8, secrets hidden
	Stderr    string           // likewise
	Truncated bool             // more was printed than is kept
	ExitCode  *int             // nil where a signal ended it, or nothing was started
	Struck    string           // the limit that ended it: time, memory, processes, cpu_time, file_size, output; or ""
	Took      time.Duration
	// Alive are processes that could not be killed. Whoever gave the run its
	// slot must not give it to another while they live.
	Alive []int
}

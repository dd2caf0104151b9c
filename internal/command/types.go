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
	StdoutPrefix = "stdout:\n" // of a run that was ended, whose message comes first
)

// KeptOutput bounds what is kept of each output as the result, 1 MiB.
const KeptOutput = signalbox.OutputBytes

// SettleTime is how long others that a program started may go on to print when
// it has ended by itself: what it piped its output through has a last line.
const SettleTime = 250 * time.Millisecond

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
	Secrets  []string        // properties of the input that are hidden, beside the tool's own
	// Log takes what it prints as it comes, "stdout" or "stderr", from one
	// goroutine at a time: whole characters of UTF-8, secrets hidden. The text is
	// its until it returns.
	Log func(stream string, text []byte)
	// Started, if set, is told the program's process.
	Started func(pid int)
}

// Outcome is how a run ended. Nothing of it lives.
type Outcome struct {
	Reason    signalbox.Reason // completed, exit_nonzero, run_timeout, cancelled or agent_error
	Message   string           // as the seed words it; never empty unless completed. Up to KeptOutput, being what was printed
	Stdout    string           // the first KeptOutput bytes, valid UTF-8, secrets hidden
	Stderr    string           // likewise
	Truncated bool             // more was printed than is kept
	ExitCode  *int             // nil where a signal ended it, or nothing was started
	Struck    string           // the limit that ended it: time, memory, processes, cpu_time, file_size, output; or ""
	Took      time.Duration
	// Alive are processes that could not be killed. Whoever gave the run its
	// slot must not give it to another while they live.
	Alive []int
	// Still, where there are any, says which of them live now.
	Still func() []int
}

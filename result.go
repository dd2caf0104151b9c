package signalbox

// Result is what an execution left behind.
type Result struct {
	Output          string  `json:"output"` // the agent's answer
	Tail            string  `json:"tail"`   // end of the streamed log, at most TailBytes
	TailSeq         int64   `json:"tail_seq"`
	Truncated       bool    `json:"truncated,omitempty"` // the log is longer than Tail
	ExitCode        *int    `json:"exit_code,omitempty"`
	InputTokens     int64   `json:"input_tokens,omitempty"`
	OutputTokens    int64   `json:"output_tokens,omitempty"`
	CostUSD         float64 `json:"cost_usd,omitempty"`
	ToolCount       int64   `json:"tool_count,omitempty"`       // number of tool uses
	DurationSeconds float64 `json:"duration_seconds,omitempty"` // as the agent measured it
	ErrorType       string  `json:"error_type,omitempty"`       // as the agent names it
	// Answer is the answer of a tool: an MCP CallToolResult as JSON, with the key
	// metadata as in the seed async-task-queue, or the key error with the JSON-RPC
	// error of its server. "" for prompts and for calls that got no answer.
	Answer string `json:"answer,omitempty"`
	// LogTimes says when pieces of Tail arrived, in ascending order of position and
	// time, at most MaxLogTimes.
	LogTimes []LogTime `json:"log_times,omitempty"`
	// Calls are the run's tool calls through the gateway of the director that ended it, in
	// the order in which they ended; at most the last MaxToolCalls.
	Calls []ToolCall `json:"calls,omitempty"`
	// Model is the model that ran, as the agent reports it, at most MaxModel bytes.
	Model string `json:"model,omitempty"`
	// TailLine is the number of the line in which Tail begins, from 1. 0 means unknown, or 1
	// if TailSeq is 0.
	TailLine int64 `json:"tail_line,omitempty"`
	// Changes is what the run changed in its repository; nil: there was none, or the agent
	// does not report it.
	Changes *Changes `json:"changes,omitempty"`
	// Checked is the outcome of the checks of its work; nil: there were none, or the agent does
	// not report it.
	Checked *Checked `json:"checked,omitempty"`
	// Landed is where the run landed the work of another task; nil: it did not.
	Landed *Landed `json:"landed,omitempty"`
}

// Size returns about how many bytes it takes in a store.
func (r *Result) Size() int64 {
	return int64(len(r.Output)+len(r.Tail)+len(r.Answer)) + r.Changes.Size() + r.Checked.Size()
}

// TailBytes is the maximum size of the tail of a run's log that the director keeps: 128 KiB.
const TailBytes = 128 << 10

// OutputBytes is the maximum size of an agent's answer that the director keeps: 1 MiB.
const OutputBytes = 1 << 20

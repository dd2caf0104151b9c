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
	ToolCount       int64   `json:"tool_count,omitempty"`       // uses of tools
	DurationSeconds float64 `json:"duration_seconds,omitempty"` // as the agent measured it
	ErrorType       string  `json:"error_type,omitempty"`       // the agent's own word
	// Answer is what a tool answered, an MCP CallToolResult as JSON, with the
	// key metadata as the seed async-task-queue has it, or the key error with the
	// JSON-RPC error of its server. "" for prompts, and for calls that came to
	// nothing.
	Answer string `json:"answer,omitempty"`
	// LogTimes says when pieces of Tail came, in the order of both, at most
	// MaxLogTimes.
	LogTimes []LogTime `json:"log_times,omitempty"`
	// Calls are the tool calls of the run that came through the gateway of the
	// director that ended it, in the order of their ends, at most MaxToolCalls: the latest.
	Calls []ToolCall `json:"calls,omitempty"`
	// Model is what ran, as the agent says it, at most MaxModel bytes.
	Model string `json:"model,omitempty"`
	// TailLine is the number of the line in which Tail begins, from 1. 0 is not known,
	// or 1 if TailSeq is 0.
	TailLine int64 `json:"tail_line,omitempty"`
	// Changes is what the run changed in its repository; nil: it worked in none, or its
	// agent does not tell.
	Changes *Changes `json:"changes,omitempty"`
	// Checked is what the checks of its work said; nil: there were none, or its agent does not
	// tell.
	Checked *Checked `json:"checked,omitempty"`
	// Landed is where the run landed the work of another task; nil: it landed none.
	Landed *Landed `json:"landed,omitempty"`
}

// Size is about how much a store takes for it, in bytes.
func (r *Result) Size() int64 {
	return int64(len(r.Output)+len(r.Tail)+len(r.Answer)) + r.Changes.Size() + r.Checked.Size()
}

// TailBytes bounds the tail of a run's log that the director keeps, 128 KiB.
const TailBytes = 128 << 10

// OutputBytes bounds the answer of an agent that the director keeps, 1 MiB.
const OutputBytes = 1 << 20

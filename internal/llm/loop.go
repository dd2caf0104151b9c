package llm

import (
	"context"
	"log/slog"

	"github.com/signalbox-ai/signalbox/steplimit"
)

// Defaults.
const (
	DefaultMaxTurns    = 10
	DefaultMaxToolText = 256 << 10
	DefaultMaxTools    = 512 // more than any vendor accepts: the vendor's own limit applies
)

// Loop runs conversations. Its fields must not be changed while one runs.
type Loop struct {
	Model Model
	Tools Toolset // nil: none

	MaxTurns    int // per run; in the last turn the model may not call tools. 0: DefaultMaxTurns
	MaxToolText int // bytes of one tool's answer that the model sees; the rest is cut, with a note. 0: DefaultMaxToolText
	MaxTools    int // more tools are an error; 0: DefaultMaxTools

	Limit  steplimit.Options // for the tool calls of one turn; it uses this Logger unless it has its own
	Events Events
	Logger *slog.Logger // nil: nothing is logged
}

// Input is the input of one run.
type Input struct {
	Model     string
	System    string
	MaxTokens int       // of one turn
	History   []Message // earlier messages; repaired if necessary
	Prompt    string
}

// Outcome is the result of a run. It is complete even if there is an error.
type Outcome struct {
	Messages  []Message // the conversation including this run: save it
	Text      string    // the model's last text in this run
	End       End
	Turns     int
	ToolCalls int // calls that the model requested, executed or not
	Usage     Usage
}

// End says why a run ended.
type End string

// The ends. Aborted and Failed come with an error, the others do not.
const (
	Completed End = "completed"
	MaxTurns  End = "max_turns"  // the model still called tools in the last turn
	MaxTokens End = "max_tokens" // the answer was cut off
	Refused   End = "refusal"    // the model, or the vendor's filter, refused to answer
	Aborted   End = "aborted"    // the context ended
	Failed    End = "failed"     // the model or the list of tools was not available
)

// Usage is the sum over the turns of a run.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
}

// Events receive what happens. Calls do not overlap, so they need no lock.
// Each may be nil. Turns are numbered from 1.
type Events struct {
	Text      func(turn int, delta string)
	TurnEnded func(turn int, t Turn, total Usage) // the answer is complete or broke off; its tool calls come next
	ToolBegan func(turn int, c ToolCall)          // for each call that the step limit admits
	ToolEnded func(turn int, r steplimit.Result)  // for each call of a step, however it ended
}

// Run answers one prompt. The error is the context's, or that of the model or
// the list of tools. Save the outcome in any case.
func (l *Loop) Run(ctx context.Context, in Input) (Outcome, error) {
	r, err := newRun(l, in)
	if err != nil {
		r.out.End, r.out.Messages = Failed, r.messages
		return r.out, err
	}
	end, err := r.turns(ctx)
	r.out.End = end
	r.out.Messages = Repair(r.messages)
	return r.out, err
}

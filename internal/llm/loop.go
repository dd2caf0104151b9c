package llm

import (
	"context"
	"log/slog"

	"github.com/signalbox-ai/signalbox/steplimit"
)

// The bounds where nothing else is said.
const (
	DefaultMaxTurns    = 10
	DefaultMaxToolText = 256 << 10
	DefaultMaxTools    = 512 // more than any vendor takes: theirs is the word that counts
)

// Loop runs conversations. Its fields are not to be changed while one runs.
type Loop struct {
	Model Model
	Tools Toolset // nil: none

	MaxTurns    int // of one run; in the last the model may call no tools. 0: DefaultMaxTurns
	MaxToolText int // bytes of one tool's answer that the model is shown; the rest is cut with a word. 0: DefaultMaxToolText
	MaxTools    int // more are an error; 0: DefaultMaxTools

	Limit  steplimit.Options // of the tool calls of one turn; without a Logger it has this one
	Events Events
	Logger *slog.Logger // nil: nothing is logged
}

// Input is what one run answers.
type Input struct {
	Model     string
	System    string
	MaxTokens int       // of one turn
	History   []Message // what was said before; it is repaired where it has to be
	Prompt    string
}

// Outcome is what came of a run. It is complete also when there is an error.
type Outcome struct {
	Messages  []Message // the conversation with this run: save it
	Text      string    // what the model said last, in this run
	End       End
	Turns     int
	ToolCalls int // that the model asked for, executed or not
	Usage     Usage
}

// End says why a run ended.
type End string

// The ends. Aborted and Failed come with an error, the others without.
const (
	Completed End = "completed"
	MaxTurns  End = "max_turns"  // the model still called tools when it might not
	MaxTokens End = "max_tokens" // its answer was cut off
	Refused   End = "refusal"    // it, or the vendor's filter, would not answer
	Aborted   End = "aborted"    // the context ended
	Failed    End = "failed"     // the model or the list of tools could not be had
)

// Usage is the sum over the turns of a run.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
}

// Events are told what happens, one at a time, so that they need no lock.
// Each may be nil. Turns are numbered from 1.
type Events struct {
	Text      func(turn int, delta string)
	TurnEnded func(turn int, t Turn, total Usage) // the model has said all of it, or has broken off; its tools come next
	ToolBegan func(turn int, c ToolCall)          // each call that the step limit lets through
	ToolEnded func(turn int, r steplimit.Result)  // each call of a step, however it ended
}

// Run answers one prompt. The error is that of the context, or what made the
// model or the list of tools fail; the outcome is to be saved in any case.
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

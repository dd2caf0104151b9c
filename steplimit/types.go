package steplimit

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// DefaultMax is the default of Options.Max.
const DefaultMax = 10

// AbortedText is the answer to a call whose context ended first.
const AbortedText = "Tool execution aborted by the user."

// Call is one tool call, as requested by the model.
type Call struct {
	ID   string
	Name string
	// Arguments is the model's raw string. It need not be JSON, and it is never
	// parsed or changed here.
	Arguments string
}

// Answer is the answer of a tool, including one that reports a failure.
type Answer struct {
	Text    string
	IsError bool
	NotRun  bool // the tool could not be run, as Text says; the outcome is Failed
}

// Execute runs one call. An error says that the call could not be run, and becomes the
// answer. Execute must return soon after ctx ends, because the step waits for it. It is
// called concurrently.
type Execute func(ctx context.Context, c Call) (Answer, error)

// Result is the outcome of one call of a step. Text can always be sent to the model.
type Result struct {
	Answer
	Call     Call
	Outcome  Outcome
	Step     int
	Position int           // among the counted calls of the step, from 1; 0 for calls that do not count
	Exempt   bool          // it did not count because of Options.Exempt
	Limit    int           // of the step
	Waited   time.Duration // for its turn or for approval
	Took     time.Duration // to execute
	Err      error         // with Failed and Aborted: why, for logs
}

// Outcome is the outcome of a call.
type Outcome string

// The outcomes.
const (
	Executed      Outcome = "executed"       // the tool answered
	Failed        Outcome = "failed"         // it could not be run, or panicked
	Refused       Outcome = "refused"        // beyond the limit
	NeedsApproval Outcome = "needs_approval" // needed an approval, but no one could give it
	Denied        Outcome = "denied"         // a person said no
	Aborted       Outcome = "aborted"        // the context ended first
)

// Policy says what happens to calls beyond the limit.
type Policy string

// The policies.
const (
	Reject Policy = "reject" // answered with RefusalText; the default
	Queue  Policy = "queue"  // run when others are done
)

// Options configure a Limiter. The zero value is the seed's behaviour: ten calls of a
// step run, the rest are refused.
type Options struct {
	// Max is how many calls of a step run; 0: DefaultMax. Less than 1 counts as 1.
	Max int
	// MaxFunc, if set, returns Max at the beginning of each step, so that the limit
	// can follow the load. Less than 1 counts as 1.
	MaxFunc func() int

	Policy Policy // "": Reject

	// Exempt selects calls that do not count. NeedsApproval selects calls that need a
	// person's approval. See Named for lists of tools.
	Exempt        func(Call) bool
	NeedsApproval func(Call) bool
	// Approve asks a person and returns when they have answered or ctx has ended. It
	// is called concurrently. Nil: no one can approve, and the call is answered with
	// ApprovalText.
	Approve func(ctx context.Context, c Call) (Decision, error)

	Hooks  Hooks
	Logger *slog.Logger // nil: nothing is logged
	Prefix string       // prefix of log lines; "": the seed's, [streamChat]
}

// Decision is a person's answer.
type Decision struct {
	Approved bool
	Reason   string // for the model, if it was not approved; may be empty
}

// Hooks are called on events, for metrics. Each may be nil. They are called
// concurrently and must return soon.
type Hooks struct {
	Queued func(c Call, step, position, limit int) // a call beyond the limit starts to wait
	Asked  func(c Call, step int)                  // a call starts to wait for approval
	Ended  func(Result)                            // once for each call
}

// Named returns a predicate for Options that matches calls of the tools with exactly
// these names; * is not a wildcard.
func Named(tools ...string) func(Call) bool {
	set := make(map[string]bool, len(tools))
	for _, t := range tools {
		set[t] = true
	}
	return func(c Call) bool { return set[c.Name] }
}

// RefusalText returns the answer to a call beyond the limit, in the words of the seed.
func RefusalText(c Call) string {
	return "The tool " + c.Name + " with arguments " + c.Arguments + " could not be executed due to rate limit. Call it again."
}

// ApprovalText returns the answer to a call that needs approval if no one can give it.
func ApprovalText(c Call) string {
	return "The tool " + c.Name + " needs a person's approval, which nobody can give here. It was not executed. Go on without it, or say what you need it for."
}

// DeniedText returns the answer to a call that a person did not approve.
func DeniedText(c Call, reason string) string {
	text := "The tool " + c.Name + " was not executed: a person did not approve it."
	if reason != "" {
		text += " They said: " + reason
	}
	return text
}

// logger writes the log lines of the seed. Their parts are also attributes.
type logger struct {
	to     *slog.Logger
	prefix string
}

func (l logger) line(level slog.Level, t *ticket, text string, more ...any) {
	if l.to == nil {
		return
	}
	attrs := append([]any{"step", t.s.number, "tool", t.call.Name, "call_id", t.call.ID}, more...)
	l.to.Log(context.Background(), level, l.prefix+" "+text, attrs...)
}

func (l logger) position(t *ticket) {
	l.line(slog.LevelInfo, t, fmt.Sprintf("Step %d, Tool %d/%d: %s", t.s.number, t.pos, t.s.limit, called(t)), "position", t.pos, "limit", t.s.limit)
}

func (l logger) executing(t *ticket) { l.line(slog.LevelInfo, t, "Executing tool: "+called(t)) }

func (l logger) completed(t *ticket) {
	l.line(slog.LevelInfo, t, "Tool execution completed: "+called(t))
}

func (l logger) refused(t *ticket) {
	l.line(slog.LevelWarn, t, fmt.Sprintf("Tool call %s exceeds parallel limit (%d). Returning rate limit error.", called(t), t.s.limit), "limit", t.s.limit)
}

func (l logger) queued(t *ticket) {
	l.line(slog.LevelInfo, t, fmt.Sprintf("Tool call %s exceeds parallel limit (%d). Waiting for its turn.", called(t), t.s.limit), "limit", t.s.limit)
}

func (l logger) asked(t *ticket) {
	l.line(slog.LevelInfo, t, "Tool call "+called(t)+" needs approval. Waiting for a person.")
}

func (l logger) unapproved(t *ticket) {
	l.line(slog.LevelWarn, t, "Tool call "+called(t)+" was not approved. It is not executed.")
}

func (l logger) failed(t *ticket, err error) {
	l.line(slog.LevelWarn, t, "Tool execution failed: "+called(t), "error", err)
}

func (l logger) aborted(t *ticket) {
	l.line(slog.LevelInfo, t, "Tool execution aborted: "+called(t))
}

// called formats a call as the seed does.
func called(t *ticket) string { return t.call.Name + " (ID: " + t.call.ID + ")" }

// line admits a limited number of calls at once, and the others in order.
type line struct {
	mu      sync.Mutex
	free    int
	waiting list.List // of chan struct{}, closed when the turn comes
}

// place is a place in the line, inside or waiting.
type place struct {
	in    *line
	turn  chan struct{} // nil: admitted at once
	entry *list.Element
}

// join takes a place at once. Places get their turn in the order of join, even if
// wait is called later.
func (l *line) join() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{in: l}
	if l.free > 0 {
		l.free--
		return p
	}
	p.turn = make(chan struct{})
	p.entry = l.waiting.PushBack(p.turn)
	return p
}

// wait returns when it is the place's turn. If ctx ends first the place is
// given up and the error is the context's.
func (p *place) wait(ctx context.Context) error {
	if p.turn == nil {
		return nil
	}
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	select {
	case <-p.turn: // its turn came at the same moment: pass it on
		p.in.next()
	default:
		p.in.waiting.Remove(p.entry)
	}
	return ctx.Err()
}

// leave admits the next place.
func (p *place) leave() {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.next()
}

// next passes a turn on. The caller holds mu.
func (l *line) next() {
	first := l.waiting.Front()
	if first == nil {
		l.free++
		return
	}
	l.waiting.Remove(first)
	close(first.Value.(chan struct{}))
}

package llm

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/signalbox-ai/signalbox/steplimit"
)

// run is one run of a loop.
type run struct {
	l        *Loop
	in       Input
	messages []Message
	ids      map[string]bool // of all tool calls in the conversation
	tools    []Tool
	known    map[string]bool
	turn     int
	cut      bool // the turn was cut off at its token limit
	limiter  *steplimit.Limiter
	log      *slog.Logger
	out      Outcome

	events sync.Mutex
}

func newRun(l *Loop, in Input) (*run, error) {
	r := &run{l: l, in: in, ids: map[string]bool{}, log: l.Logger}
	r.log = cmp.Or(r.log, slog.New(slog.DiscardHandler))
	r.messages = append(Repair(in.History), Message{Role: RoleUser, Text: in.Prompt})
	for _, m := range r.messages {
		for _, c := range m.ToolCalls {
			r.ids[c.ID] = true
		}
	}
	o := l.Limit
	if o.Logger == nil {
		o.Logger = l.Logger
	}
	o.Hooks.Ended = func(res steplimit.Result) {
		if l.Limit.Hooks.Ended != nil {
			l.Limit.Hooks.Ended(res)
		}
		if e := l.Events.ToolEnded; e != nil {
			r.say(func() { e(r.turn, res) })
		}
	}
	var err error
	r.limiter, err = steplimit.New(o)
	return r, err
}

// say calls the events one at a time.
func (r *run) say(f func()) {
	r.events.Lock()
	defer r.events.Unlock()
	f()
}

// turns continues until the model calls no tools, or may not call any.
func (r *run) turns(ctx context.Context) (End, error) {
	most := orDefault(r.l.MaxTurns, DefaultMaxTurns)
	for r.turn = 1; ; r.turn++ {
		if err := r.list(ctx); err != nil {
			return r.failed(ctx, err)
		}
		last := r.turn >= most
		t, err := r.stream(ctx, last)
		if err != nil {
			return r.brokeOff(ctx, err)
		}
		switch {
		case len(t.Message.ToolCalls) == 0:
			return ending(t.StopReason), nil
		case last || t.StopReason == StopRefusal:
			r.answerAll(t.Message.ToolCalls, lastTurnText)
			if t.StopReason == StopRefusal {
				return Refused, nil
			}
			r.log.Warn("the model called tools in its last turn, in which it may not; they were not executed", "max_turns", most)
			return MaxTurns, nil
		}
		r.execute(ctx, t.Message.ToolCalls)
		if err := ctx.Err(); err != nil {
			return Aborted, err
		}
	}
}

// ending returns the end for a last turn without tool calls.
func ending(s StopReason) End {
	switch s {
	case StopLength:
		return MaxTokens
	case StopRefusal:
		return Refused
	}
	return Completed
}

func (r *run) failed(ctx context.Context, err error) (End, error) {
	if ctx.Err() != nil {
		return Aborted, ctx.Err()
	}
	return Failed, err
}

// brokeOff completes a turn that broke off: its text is kept, and its calls
// get answers saying that they were not executed.
func (r *run) brokeOff(ctx context.Context, err error) (End, error) {
	why := brokenText
	if ctx.Err() != nil {
		why = steplimit.AbortedText
	}
	m := &r.messages[len(r.messages)-1]
	if m.Role == RoleAssistant {
		for i := range m.ToolCalls {
			m.ToolCalls[i].Arguments = RepairArguments(m.ToolCalls[i].Arguments)
		}
		r.answerAll(m.ToolCalls, why)
	}
	return r.failed(ctx, err)
}

// list lists the tools. If a later list fails, the run continues with the
// last one.
func (r *run) list(ctx context.Context) error {
	if r.l.Tools == nil {
		return nil
	}
	tools, err := r.l.Tools.Tools(ctx)
	if err != nil && r.known != nil && ctx.Err() == nil {
		r.log.Warn("the tools could not be listed again; the run continues with the last list", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the tools could not be listed: %w", err)
	}
	r.tools, r.known = nil, map[string]bool{}
	for _, t := range tools {
		if !r.known[t.Name] {
			r.known[t.Name] = true
			r.tools = append(r.tools, t)
		}
	}
	if most := orDefault(r.l.MaxTools, DefaultMaxTools); len(r.tools) > most {
		return fmt.Errorf("there are %d tools, more than the %d that a model can be given; allow fewer of them", len(r.tools), most)
	}
	return nil
}

// stream runs one turn and adds the result to the conversation, even if the
// turn broke off.
func (r *run) stream(ctx context.Context, last bool) (Turn, error) {
	q := Request{Model: r.in.Model, System: r.in.System, Messages: r.messages, Tools: r.tools, NoTools: last, MaxTokens: r.in.MaxTokens}
	t, err := r.l.Model.Stream(ctx, q, func(delta string) {
		if e := r.l.Events.Text; e != nil && delta != "" {
			r.say(func() { e(r.turn, delta) })
		}
	})
	if err == nil && ctx.Err() != nil && len(t.Message.ToolCalls) == 0 && t.Message.Text == "" {
		err = ctx.Err() // a stream that ended early without an error
	}
	r.cut = t.StopReason == StopLength
	r.take(&t.Message, err != nil)
	r.out.Turns = r.turn
	r.out.Usage.InputTokens += t.InputTokens
	r.out.Usage.OutputTokens += t.OutputTokens
	if e := r.l.Events.TurnEnded; e != nil {
		r.say(func() { e(r.turn, t, r.out.Usage) })
	}
	return t, err
}

// take adds the model's message to the conversation. Calls without unique IDs
// get new ones, because answers refer to the ID.
func (r *run) take(m *Message, broken bool) {
	m.Role = RoleAssistant
	calls := m.ToolCalls
	m.ToolCalls = nil
	for _, c := range calls {
		if c.Name == "" && broken {
			continue // it broke off before the name of the tool
		}
		c.Name = cmp.Or(c.Name, unnamed)
		if c.ID == "" || r.ids[c.ID] {
			c.ID = r.newID()
		}
		r.ids[c.ID] = true
		m.ToolCalls = append(m.ToolCalls, c)
	}
	r.out.ToolCalls += len(m.ToolCalls)
	if m.Text != "" {
		r.out.Text = m.Text
	}
	if m.Text != "" || len(m.ToolCalls) > 0 {
		r.messages = append(r.messages, *m)
	}
}

func (r *run) newID() string {
	for n := len(r.ids) + 1; ; n++ {
		if id := fmt.Sprintf("call_%d", n); !r.ids[id] {
			return id
		}
	}
}

// execute runs the calls of a turn and adds the answers to the conversation,
// in the order of the calls.
func (r *run) execute(ctx context.Context, calls []ToolCall) {
	step := make([]steplimit.Call, len(calls))
	for i, c := range calls {
		step[i] = steplimit.Call(c)
	}
	for _, res := range r.limiter.Run(ctx, r.turn, step, r.call) {
		text := res.Text
		if res.Outcome == steplimit.Failed {
			text = r.fit(text)
		}
		r.answer(ToolCall(res.Call), text, res.IsError)
	}
}

func (r *run) answerAll(calls []ToolCall, text string) {
	for _, c := range calls {
		r.answer(c, text, true)
	}
}

func (r *run) answer(c ToolCall, text string, isError bool) {
	r.messages = append(r.messages, Message{Role: RoleTool, ToolID: c.ID, ToolName: c.Name, Text: text, IsError: isError})
}

func orDefault(n, d int) int {
	if n <= 0 {
		return d
	}
	return n
}

package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// goesOn proves that a conversation is valid at both vendors, whichever began
// it.
func goesOn(t *testing.T, history []llm.Message) {
	t.Helper()
	for _, v := range llmtest.Vendors {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "on we go"}))
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search")}, llm.Input{History: history, Prompt: "and now?"})
		if n := len(out.Messages); out.Messages[n-2].Text != "and now?" || out.Messages[n-1].Text != "on we go" {
			t.Errorf("%s: %+v", v, out.Messages)
		}
	}
}

func TestAbortInTheMiddleOfArguments(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		hang := make(chan struct{})
		calls := []llm.ToolCall{{ID: "a", Name: "search", Arguments: `{"z": 1,  "a": 2}`}, {ID: "b", Name: "search", Arguments: `{"q": "half of a ques`}}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "I look", Calls: calls, Chunk: 5, Hang: hang}))
		ctx, cancel := context.WithCancel(inTime(t))
		go func() { <-hang; cancel() }()
		b := tools("search")
		out, err := (&llm.Loop{Model: s.Model(), Tools: b}).Run(ctx, llm.Input{Model: "m", Prompt: "go"})
		if !errors.Is(err, context.Canceled) || out.End != llm.Aborted || b.count() != 0 {
			t.Fatalf("%d executed, %v, %+v", b.count(), err, out)
		}
		if len(out.Messages) != 4 || out.Messages[1].Text != "I look" {
			t.Fatalf("%+v", out.Messages)
		}
		got := out.Messages[1].ToolCalls
		if got[0].Arguments != calls[0].Arguments || got[1].Arguments != `{"q": "half of a ques"}` {
			t.Errorf("calls: %+v", got)
		}
		if want := "Tool execution aborted by the user."; out.Messages[2].Text != want || out.Messages[3].Text != want {
			t.Errorf("answers: %q", answers(out.Messages))
		}
		goesOn(t, out.Messages)
	})
}

// TestStreamThatBreaksOff: the partial arguments are kept, and the answer
// says why the calls were not executed.
func TestStreamThatBreaksOff(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		calls := []llm.ToolCall{{ID: "a", Name: "search", Arguments: `{"z": 1,  "a": 2}`}, {ID: "b", Name: "search", Arguments: `{"q": "half of a ques`}}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: calls, Chunk: 3, Break: true}))
		b := tools("search")
		out, err := (&llm.Loop{Model: s.Model(), Tools: b}).Run(inTime(t), llm.Input{Model: "m", Prompt: "go"})
		var e *llm.ModelError
		if !errors.As(err, &e) || out.End != llm.Failed || b.count() != 0 {
			t.Fatalf("%d executed, %v, %+v", b.count(), err, out)
		}
		got := out.Messages[1].ToolCalls
		if len(got) != 2 || got[0].Arguments != calls[0].Arguments || got[1].Arguments != `{"q": "half of a ques"}` {
			t.Errorf("calls: %+v", got)
		}
		contains(t, answers(out.Messages)[1], "broke off")
		goesOn(t, out.Messages)
	})
}

func TestAbortInTheMiddleOfTools(t *testing.T) {
	for _, policy := range []steplimit.Policy{steplimit.Reject, steplimit.Queue} {
		t.Run(string(policy), func(t *testing.T) {
			eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
				s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: searches(1, 4)}))
				ctx, cancel := context.WithCancel(inTime(t))
				b := tools("search")
				first := make(chan struct{})
				b.do = func(ctx context.Context, c llm.ToolCall) (string, bool, error) {
					if c.ID == "call_1_1" {
						close(first)
						return "I was quick", false, nil
					}
					<-first
					cancel()
					<-ctx.Done()
					return "", false, ctx.Err()
				}
				out, err := (&llm.Loop{Model: s.Model(), Tools: b, Limit: steplimit.Options{Max: 2, Policy: policy}}).Run(ctx, llm.Input{Model: "m", Prompt: "go"})
				if !errors.Is(err, context.Canceled) || out.End != llm.Aborted || len(s.Requests()) != 1 {
					t.Fatalf("%v, %+v", err, out)
				}
				got := answers(out.Messages)
				if len(got) != 4 || got[0] != "I was quick" || got[1] != steplimit.AbortedText {
					t.Errorf("answers: %q", got)
				}
				goesOn(t, out.Messages)
			})
		})
	}
}

func TestAbortBeforeAnything(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		hang := make(chan struct{})
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Hang: hang}))
		ctx, cancel := context.WithCancel(inTime(t))
		go func() { <-hang; cancel() }()
		out, err := (&llm.Loop{Model: s.Model()}).Run(ctx, llm.Input{Model: "m", Prompt: "go"})
		if !errors.Is(err, context.Canceled) || out.End != llm.Aborted || len(out.Messages) != 1 {
			t.Fatalf("%v, %+v", err, out)
		}
		goesOn(t, out.Messages)
	})
}

// TestAbortKeepsWhatWasSaid: text that arrived before the abort is kept.
func TestAbortKeepsWhatWasSaid(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "one two three", Hang: make(chan struct{})}))
		ctx, cancel := context.WithCancel(inTime(t))
		l := llm.Loop{Model: s.Model(), Events: llm.Events{Text: func(_ int, d string) {
			if strings.Contains(d, "three") {
				cancel()
			}
		}}}
		out, err := l.Run(ctx, llm.Input{Model: "m", Prompt: "go"})
		if !errors.Is(err, context.Canceled) || out.Text != "one two three" || len(out.Messages) != 2 {
			t.Fatalf("%v, %+v", err, out)
		}
		goesOn(t, out.Messages)
	})
}

package llm_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// The cases of the seed parallel-tool-execution, with the real loop and the
// real protocols.

func TestSeedStepTracking(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		var out bytes.Buffer
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: searches(1, 2)}, llmtest.Reply{Calls: searches(2, 1)}, llmtest.Reply{Text: "done"}))
		mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search"), Limit: steplimit.Options{Max: 3}, Logger: slog.New(slog.NewTextHandler(&out, nil))}, llm.Input{})
		contains(t, out.String(), "Step 1, Tool 1/3: search (ID: call_1_1)", "Step 1, Tool 2/3: search (ID: call_1_2)", "Step 2, Tool 1/3: search (ID: call_2_1)")
	})
}

// TestSeedLimitOfThree is the seed's example: five calls, a limit of three;
// the model repeats the last two in the next step.
func TestSeedLimitOfThree(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		five := searches(1, 5)
		s := llmtest.New(t, v, func(r llmtest.Request) llmtest.Reply {
			if r.Turn > 2 {
				return llmtest.Reply{Text: "done"}
			}
			if r.Turn == 1 {
				return llmtest.Reply{Calls: five}
			}
			var again []llm.ToolCall // the calls that it was told to repeat
			for i, text := range answers(r.Messages) {
				if text == refusal(five[i]) {
					again = append(again, llm.ToolCall{ID: fmt.Sprintf("again_%d", i), Name: "search", Arguments: five[i].Arguments})
				}
			}
			return llmtest.Reply{Calls: again}
		})
		b := tools("search")
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b, Limit: steplimit.Options{Max: 3}}, llm.Input{})
		want := []string{"did search", "did search", "did search", refusal(five[3]), refusal(five[4]), "did search", "did search"}
		if got := answers(out.Messages); !slices.Equal(got, want) {
			t.Errorf("answers:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if b.count() != 5 || out.Turns != 3 || out.ToolCalls != 7 || out.End != llm.Completed || out.Text != "done" {
			t.Errorf("%d executed, %+v", b.count(), out)
		}
		if want := (llm.Usage{InputTokens: 3 * llmtest.InputTokens, OutputTokens: 3 * llmtest.OutputTokens}); out.Usage != want {
			t.Errorf("usage %+v, want %+v", out.Usage, want)
		}
	})
}

func TestSeedErrorMessageFormat(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		c := []llm.ToolCall{{ID: "a", Name: "search", Arguments: "{}"}, {ID: "b", Name: "literature_search", Arguments: `{"query": "signal boxes",  "limit": 5}`}}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: c, Chunk: 3}, llmtest.Reply{Text: "done"}))
		mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search", "literature_search"), Limit: steplimit.Options{Max: 1}}, llm.Input{})
		want := `The tool literature_search with arguments {"query": "signal boxes",  "limit": 5} could not be executed due to rate limit. Call it again.`
		if got := answers(s.Last().Messages)[1]; got != want {
			t.Errorf("the model was told\n%s\nwant\n%s", got, want)
		}
	})
}

func TestSeedCounterIsResetBetweenSteps(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: searches(1, 2)}, llmtest.Reply{Calls: searches(2, 2)}, llmtest.Reply{Calls: searches(3, 2)}, llmtest.Reply{Text: "done"}))
		b := tools("search")
		mustRun(t, llm.Loop{Model: s.Model(), Tools: b, Limit: steplimit.Options{Max: 2}}, llm.Input{})
		if b.count() != 6 {
			t.Errorf("%d of 6 calls in three steps of two were executed", b.count())
		}
	})
}

func TestSeedLimits(t *testing.T) {
	for _, c := range []struct{ limit, asked, executed int }{{1, 4, 1}, {10, 12, 10}, {0, 12, 10}, {100, 40, 40}} {
		t.Run(fmt.Sprintf("limit %d", c.limit), func(t *testing.T) {
			eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
				s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: searches(1, c.asked)}, llmtest.Reply{Text: "done"}))
				b := tools("search")
				out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b, Limit: steplimit.Options{Max: c.limit}}, llm.Input{})
				if b.count() != c.executed || len(answers(out.Messages)) != c.asked {
					t.Errorf("%d executed, want %d; %d answered", b.count(), c.executed, len(answers(out.Messages)))
				}
			})
		})
	}
}

// TestSeedProperty6: any set of tool calls up to the limit runs in parallel,
// and calls beyond the limit are queued or rejected.
func TestSeedProperty6(t *testing.T) {
	ctx := inTime(t)
	rapid.Check(t, func(t *rapid.T) {
		limit, asked := rapid.IntRange(1, 6).Draw(t, "limit"), rapid.IntRange(1, 12).Draw(t, "calls")
		policy := rapid.SampledFrom([]steplimit.Policy{steplimit.Reject, steplimit.Queue}).Draw(t, "policy")
		var began, now, most atomic.Int32
		together := make(chan struct{}) // closed once as many run as are allowed
		b := tools("search")
		b.do = func(ctx context.Context, c llm.ToolCall) (string, bool, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if int(began.Add(1)) == min(limit, asked) {
				close(together)
			}
			select {
			case <-together:
			case <-ctx.Done():
			}
			return c.ID, false, ctx.Err()
		}
		calls := searches(1, asked)
		m := &script{turns: []llm.Turn{{Message: llm.Message{ToolCalls: calls}}, {Message: llm.Message{Text: "done"}}}}
		l := llm.Loop{Model: m, Tools: b, Limit: steplimit.Options{Max: limit, Policy: policy}}
		out, err := l.Run(ctx, llm.Input{Prompt: "go"})
		if err != nil || int(most.Load()) > limit {
			t.Fatalf("%d at once with limit %d, %v", most.Load(), limit, err)
		}
		for i, text := range answers(out.Messages) {
			want := calls[i].ID
			if i >= limit && policy == steplimit.Reject {
				want = refusal(calls[i])
			}
			if text != want {
				t.Fatalf("answer %d is %q, want %q", i, text, want)
			}
		}
	})
}

// script is a model without an endpoint.
type script struct {
	turns []llm.Turn
	asked []llm.Request
	err   error // after the last turn
}

func (s *script) Stream(_ context.Context, r llm.Request, text func(string)) (llm.Turn, error) {
	s.asked = append(s.asked, r)
	if len(s.asked) > len(s.turns) {
		return llm.Turn{}, s.err
	}
	t := s.turns[len(s.asked)-1]
	text(t.Message.Text)
	t.Message.ToolCalls = slices.Clone(t.Message.ToolCalls)
	return t, nil
}

func TestAnswersComeInTheOrderOfTheCalls(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		calls := searches(1, 4)
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "I look", Calls: calls, Chunk: 4, Mixed: v == llmtest.OpenAI}, llmtest.Reply{Text: "done"}))
		b := tools("search")
		ended := make([]chan struct{}, 5) // each call waits for the next one
		for i := range ended {
			ended[i] = make(chan struct{})
		}
		close(ended[4])
		b.do = func(_ context.Context, c llm.ToolCall) (string, bool, error) {
			i := int(c.ID[len(c.ID)-1] - '1')
			<-ended[i+1]
			close(ended[i])
			return c.ID + " " + c.Arguments, false, nil
		}
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b}, llm.Input{})
		for i, text := range answers(out.Messages) {
			if text != calls[i].ID+" "+calls[i].Arguments {
				t.Errorf("answer %d: %s", i, text)
			}
		}
	})
}

func TestApprovalExemptAndLoad(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		calls := []llm.ToolCall{{ID: "1", Name: "delete", Arguments: "{}"}, {ID: "2", Name: "note", Arguments: "{}"}, {ID: "3", Name: "search", Arguments: "{}"},
			{ID: "4", Name: "note", Arguments: "{}"}, {ID: "5", Name: "search", Arguments: `{"q":"2"}`}}
		again := slices.Clone(calls)
		for i := range again {
			again[i].ID += "b"
		}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: calls}, llmtest.Reply{Calls: again}, llmtest.Reply{Text: "done"}))
		var load atomic.Int32
		o := steplimit.Options{Exempt: steplimit.Named("note"), NeedsApproval: steplimit.Named("delete"), MaxFunc: func() int { return int(load.Add(1)) }}
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("delete", "note", "search"), Limit: o}, llm.Input{})
		approval := steplimit.ApprovalText(steplimit.Call(calls[0]))
		want := []string{approval, "did note", "did search", "did note", refusal(calls[4]), approval, "did note", "did search", "did note", "did search"}
		if got := answers(out.Messages); !slices.Equal(got, want) {
			t.Errorf("answers:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestLastTurn: it may not call tools; they stay declared.
func TestLastTurn(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, func(r llmtest.Request) llmtest.Reply {
			if r.ToolChoice == "none" {
				return llmtest.Reply{Text: "that is all I know"}
			}
			return llmtest.Reply{Calls: searches(r.Turn, 1)}
		})
		b := tools("search")
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b, MaxTurns: 3}, llm.Input{})
		if out.End != llm.Completed || out.Turns != 3 || b.count() != 2 || out.Text != "that is all I know" {
			t.Errorf("%d executed, %+v", b.count(), out)
		}
		if len(s.Last().Tools) != 1 {
			t.Errorf("tools in the last turn: %v", s.Last().Tools)
		}
	})
}

func TestModelThatCallsToolsInItsLastTurn(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		var log bytes.Buffer
		s := llmtest.New(t, v, func(r llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Text: "more!", Calls: searches(r.Turn, 2)}
		})
		b := tools("search")
		l := llm.Loop{Model: s.Model(), Tools: b, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		out := mustRun(t, l, llm.Input{})
		if out.End != llm.MaxTurns || out.Turns != 10 || b.count() != 18 { // the seed's default
			t.Errorf("%d executed, %+v", b.count(), out)
		}
		all := answers(out.Messages)
		contains(t, all[len(all)-1], "last turn")
		contains(t, log.String(), "last turn")
		// the conversation can be continued: the endpoint is strict
		mustRun(t, llm.Loop{Model: s.Model(), Tools: b, MaxTurns: 1}, llm.Input{History: out.Messages, Prompt: "again"})
	})
}

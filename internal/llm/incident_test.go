package llm_test

import (
	"context"
	"slices"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// oddArguments are JSON that no encoder would produce.
const oddArguments = "{ \"zeta\" : 1.50,\n\t\"alpha\":\"\\u00e4 <&>\",  \"big\":12345678901234567890, \"zeta\":2 }"

// TestIncidentArgumentsWereReserialised: the model's raw string reaches the
// refusal, the tool and the saved conversation byte for byte, and OpenAI's
// endpoint again.
func TestIncidentArgumentsWereReserialised(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		calls := []llm.ToolCall{{ID: "1", Name: "search", Arguments: oddArguments}, {ID: "2", Name: "search", Arguments: oddArguments}}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: calls, Chunk: 1}, llmtest.Reply{Text: "done"}))
		b := tools("search")
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b, Limit: steplimit.Options{Max: 1}}, llm.Input{})
		if b.called[0].Arguments != oddArguments {
			t.Errorf("the tool got %q", b.called[0].Arguments)
		}
		if got, want := answers(out.Messages)[1], "The tool search with arguments "+oddArguments+" could not be executed due to rate limit. Call it again."; got != want {
			t.Errorf("refusal %q, want %q", got, want)
		}
		store, err := llm.OpenStore(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Save("s", out.Messages); err != nil {
			t.Fatal(err)
		}
		saved, err := store.Load("s")
		if err != nil || saved[1].ToolCalls[1].Arguments != oddArguments {
			t.Errorf("saved as %+v, %v", saved, err)
		}
		if v == llmtest.OpenAI && s.Last().Messages[1].ToolCalls[0].Arguments != oddArguments {
			t.Errorf("sent back as %q", s.Last().Messages[1].ToolCalls[0].Arguments)
		}
	})
}

// TestIncidentCallBeyondTheLimitCostATurn: with the policy reject, a call
// above the limit is refused even if the others have ended, and the model has
// to request it again; with queue it runs in the same step.
func TestIncidentCallBeyondTheLimitCostATurn(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		for policy, turns := range map[steplimit.Policy]int{steplimit.Reject: 3, steplimit.Queue: 2} {
			s := llmtest.New(t, v, func(r llmtest.Request) llmtest.Reply {
				got := answers(r.Messages)
				switch {
				case r.Turn == 1:
					return llmtest.Reply{Calls: searches(1, 2)}
				case got[len(got)-1] != "did search":
					return llmtest.Reply{Calls: searches(r.Turn, 1)}
				}
				return llmtest.Reply{Text: "done"}
			})
			b := tools("search")
			out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b, Limit: steplimit.Options{Max: 1, Policy: policy}}, llm.Input{})
			if out.Turns != turns || b.count() != 2 {
				t.Errorf("%s: %d turns, want %d; %d executed", policy, out.Turns, turns, b.count())
			}
		}
	})
}

// TestIncidentApprovalUsedUpTheLimit: calls that need approval are separated
// before the limit is applied.
func TestIncidentApprovalUsedUpTheLimit(t *testing.T) {
	calls := []llm.ToolCall{{ID: "1", Name: "delete"}, {ID: "2", Name: "delete"}, {ID: "3", Name: "search"}, {ID: "4", Name: "search"}}
	m := &script{turns: []llm.Turn{{Message: llm.Message{ToolCalls: calls}}, {Message: llm.Message{Text: "done"}}}}
	b := tools("search", "delete")
	mustRun(t, llm.Loop{Model: m, Tools: b, Limit: steplimit.Options{Max: 2, NeedsApproval: steplimit.Named("delete")}}, llm.Input{})
	if b.count() != 2 || b.called[0].Name != "search" || b.called[1].Name != "search" {
		t.Errorf("executed: %v", b.called)
	}
}

// TestIncidentToolErrorEndedTheRun: unknown tools, invalid arguments and
// failures are reported to the model.
func TestIncidentToolErrorEndedTheRun(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		calls := []llm.ToolCall{{ID: "1", Name: "nosuch", Arguments: "{}"}, {ID: "2", Name: "search", Arguments: "{"}, {ID: "3", Name: "search", Arguments: "{}"}}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: calls}, llmtest.Reply{Text: "done"}))
		b := tools("search")
		b.do = func(context.Context, llm.ToolCall) (string, bool, error) { panic("a bug of the tool") }
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b}, llm.Input{})
		if out.End != llm.Completed || len(answers(s.Last().Messages)) != 3 {
			t.Errorf("%+v", out)
		}
	})
}

// TestIncidentAbortLeftCallsOpen: a conversation that was saved with
// unanswered calls is repaired when it is continued.
func TestIncidentAbortLeftCallsOpen(t *testing.T) {
	history := []llm.Message{{Role: llm.RoleUser, Text: "go"}, {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "search", Arguments: `{"q": "x`}, {ID: "b", Name: "search"}}}}
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "done"}))
		mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search")}, llm.Input{History: history, Prompt: "go on"})
		if got, want := answers(s.Last().Messages), []string{steplimit.AbortedText, steplimit.AbortedText}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if got := s.Last().Messages[1].ToolCalls[0].Arguments; got != `{"q": "x"}` && got != `{"q":"x"}` {
			t.Errorf("arguments %s", got)
		}
	})
}

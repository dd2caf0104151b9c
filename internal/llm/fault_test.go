package llm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// TestWhatTheModelDoesWrong: a mistake is reported to the model and never ends
// the run.
func TestWhatTheModelDoesWrong(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		calls := []llm.ToolCall{
			{ID: "1", Name: "serch", Arguments: `{}`},
			{ID: "2", Name: "search", Arguments: `{"q": `},
			{ID: "3", Name: "search", Arguments: `[1]`},
			{ID: "4", Name: "search", Arguments: `{} {}`},
			{ID: "5", Name: "search", Arguments: ``},
			{ID: "6", Name: "fails", Arguments: `{}`},
			{ID: "7", Name: "panics", Arguments: `{}`},
			{ID: "8", Name: "gone", Arguments: `{}`},
			{ID: "9", Name: "search", Arguments: `q=x`},
		}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: calls}, llmtest.Reply{Text: "done"}))
		b := tools("search", "fails", "panics", "gone")
		b.do = func(_ context.Context, c llm.ToolCall) (string, bool, error) {
			switch c.Name {
			case "fails":
				return "no such page", true, nil
			case "panics":
				panic("oh")
			case "gone":
				return "", false, errors.New("the tool's server is not there")
			}
			return "arguments " + c.Arguments, false, nil
		}
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b}, llm.Input{})
		for i, want := range []string{
			`There is no tool "serch". The tools are: fails, gone, panics, search.`, "they end too early", "another kind of value", "something follows", "arguments {}",
			"no such page", "The tool panics could not be executed", "The tool gone could not be executed: the tool's server is not there", "not a JSON object: invalid character 'q'",
		} {
			contains(t, answers(out.Messages)[i], want)
		}
		if out.End != llm.Completed || out.Turns != 2 {
			t.Errorf("%+v", out)
		}
	})
}

func TestArgumentsThatWereCutOff(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		stop := map[llmtest.Vendor]string{llmtest.OpenAI: "length", llmtest.Anthropic: "max_tokens"}[v]
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Calls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: `{"q": "a very long`}}, Stop: stop}, llmtest.Reply{Text: "half an ans", Stop: stop}))
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search")}, llm.Input{})
		contains(t, answers(out.Messages)[0], "cut off at its limit of tokens")
		if out.End != llm.MaxTokens || out.Text != "half an ans" {
			t.Errorf("%+v", out)
		}
	})
}

func TestRefusalOfTheModel(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		stop := map[llmtest.Vendor]string{llmtest.OpenAI: "content_filter", llmtest.Anthropic: "refusal"}[v]
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "no", Calls: searches(1, 1), Stop: stop}))
		b := tools("search")
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b}, llm.Input{})
		if out.End != llm.Refused || b.count() != 0 {
			t.Errorf("%d executed, %+v", b.count(), out)
		}
		goesOn(t, out.Messages)
	})
}

// TestCallsWithoutIDsOfTheirOwn: some endpoints give calls no IDs, or the
// same ones in each turn.
func TestCallsWithoutIDsOfTheirOwn(t *testing.T) {
	calls := []llm.ToolCall{{Name: "search", Arguments: "{}"}, {ID: "call_0", Name: "search", Arguments: "{}"}, {ID: "call_0", Name: "search", Arguments: "{}"}, {ID: "x", Arguments: "{}"}}
	turn := llm.Turn{Message: llm.Message{ToolCalls: calls}}
	m := &script{turns: []llm.Turn{turn, turn, {Message: llm.Message{Text: "done"}}}}
	out := mustRun(t, llm.Loop{Model: m, Tools: tools("search")}, llm.Input{})
	ids := map[string]bool{}
	for _, msg := range out.Messages {
		for _, c := range msg.ToolCalls {
			if c.ID == "" || c.Name == "" || ids[c.ID] {
				t.Errorf("call %+v", c)
			}
			ids[c.ID] = true
		}
	}
	if len(ids) != 8 || len(answers(out.Messages)) != 8 {
		t.Errorf("ids %v", ids)
	}
	goesOn(t, out.Messages)
}

func TestLongAnswersAreCut(t *testing.T) {
	b := tools("search", "fails")
	long := strings.Repeat("ä", 600) + "\xff"
	b.do = func(_ context.Context, c llm.ToolCall) (string, bool, error) {
		if c.Name == "fails" {
			return "", false, errors.New(long)
		}
		return long, false, nil
	}
	m := &script{turns: []llm.Turn{{Message: llm.Message{ToolCalls: []llm.ToolCall{{ID: "1", Name: "search"}, {ID: "2", Name: "fails"}}}}, {Message: llm.Message{Text: "done"}}}}
	out := mustRun(t, llm.Loop{Model: m, Tools: b, MaxToolText: 1001}, llm.Input{})
	got := answers(out.Messages)
	contains(t, got[0], strings.Repeat("ä", 500)+"\n[Cut off here: the tool answered 1201 bytes, of which these are the first 1000.")
	for _, text := range got {
		if !utf8.ValidString(text) || len(text) > 1200 {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
}

func TestLists(t *testing.T) {
	t.Run("too many", func(t *testing.T) {
		out, err := (&llm.Loop{Model: &script{}, Tools: tools("a", "b", "c"), MaxTools: 2}).Run(t.Context(), llm.Input{Prompt: "go"})
		if err == nil || out.End != llm.Failed || len(out.Messages) != 1 {
			t.Fatalf("%v %+v", err, out)
		}
		contains(t, err.Error(), "3 tools", "2")
	})
	t.Run("the first of two counts", func(t *testing.T) {
		m := &script{turns: []llm.Turn{{Message: llm.Message{Text: "done"}}}}
		mustRun(t, llm.Loop{Model: m, Tools: tools("a", "b", "a")}, llm.Input{})
		if len(m.asked[0].Tools) != 2 {
			t.Errorf("%v", m.asked[0].Tools)
		}
	})
	t.Run("cannot be had", func(t *testing.T) {
		for _, after := range []int32{0, 1} {
			f := &flaky{box: tools("search"), after: after}
			m := &script{turns: []llm.Turn{{Message: llm.Message{ToolCalls: searches(1, 1)}}, {Message: llm.Message{Text: "done"}}}}
			out, err := (&llm.Loop{Model: m, Tools: f}).Run(t.Context(), llm.Input{Prompt: "go"})
			if after == 0 && (err == nil || out.End != llm.Failed) || after == 1 && (err != nil || len(m.asked[1].Tools) != 1) {
				t.Errorf("after %d: %v %+v", after, err, out)
			}
		}
	})
	t.Run("changes", func(t *testing.T) {
		b := tools("search")
		m := &script{turns: []llm.Turn{{Message: llm.Message{ToolCalls: searches(1, 1)}}, {Message: llm.Message{Text: "done"}}}}
		b.do = func(context.Context, llm.ToolCall) (string, bool, error) {
			b.tools = append(b.tools, llm.Tool{Name: "more"})
			return "", false, nil
		}
		mustRun(t, llm.Loop{Model: m, Tools: b}, llm.Input{})
		if len(m.asked[0].Tools) != 1 || len(m.asked[1].Tools) != 2 {
			t.Errorf("%v %v", m.asked[0].Tools, m.asked[1].Tools)
		}
	})
}

// flaky lists its tools only this often.
type flaky struct {
	*box
	after, asked int32
}

func (f *flaky) Tools(ctx context.Context) ([]llm.Tool, error) {
	if atomic.AddInt32(&f.asked, 1) > f.after {
		return nil, errors.New("the gateway is gone")
	}
	return f.box.Tools(ctx)
}

func TestEventsComeOneAtATime(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "I look around", Chunk: 4, Calls: searches(1, 3)}, llmtest.Reply{Text: "done"}))
		var log []string // without a lock: calls must not overlap
		e := llm.Events{
			Text: func(turn int, d string) { log = append(log, fmt.Sprintf("%d text %s", turn, d)) },
			TurnEnded: func(turn int, _ llm.Turn, u llm.Usage) {
				log = append(log, fmt.Sprintf("%d ended %d", turn, u.OutputTokens))
			},
			ToolBegan: func(turn int, c llm.ToolCall) { log = append(log, fmt.Sprintf("%d began %s", turn, c.ID)) },
			ToolEnded: func(turn int, r steplimit.Result) {
				log = append(log, fmt.Sprintf("%d %s %s", turn, r.Outcome, r.Call.ID))
			},
		}
		mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search"), Limit: steplimit.Options{Max: 2}, Events: e}, llm.Input{})
		if want := []string{"1 text I lo", "1 text ok a", "1 text roun", "1 text d", "1 ended 7"}; !slices.Equal(log[:5], want) {
			t.Errorf("%q", log[:5])
		}
		tools := log[5 : len(log)-2]
		slices.Sort(tools)
		if want := []string{"1 began call_1_1", "1 began call_1_2", "1 executed call_1_1", "1 executed call_1_2", "1 refused call_1_3"}; !slices.Equal(tools, want) {
			t.Errorf("%q", tools)
		}
		if want := []string{"2 text done", "2 ended 14"}; !slices.Equal(log[len(log)-2:], want) {
			t.Errorf("%q", log[len(log)-2:])
		}
	})
}

func TestRequestCarriesAll(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "done"}))
		history := []llm.Message{{Role: llm.RoleUser, Text: "before"}, {Role: llm.RoleAssistant, Text: "yes"}}
		mustRun(t, llm.Loop{Model: s.Model(), Tools: tools("search")}, llm.Input{Model: "some-model", System: "be brief", MaxTokens: 77, History: history, Prompt: "now"})
		r := s.Last()
		if r.Model != "some-model" || r.System != "be brief" || r.MaxTokens != 77 || len(r.Messages) != 3 || r.Messages[2].Text != "now" || r.ToolChoice != "" {
			t.Errorf("%+v", r)
		}
		contains(t, string(r.Tools[0].Schema), `"additionalProperties":false`, `"q":{"type":"string"}`)
		if r.Tools[0].Name != "search" || r.Tools[0].Description != "does search" {
			t.Errorf("%+v", r.Tools[0])
		}
	})
}

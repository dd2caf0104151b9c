package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/steplimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a set of tools.
type box struct {
	tools []llm.Tool
	do    func(ctx context.Context, c llm.ToolCall) (string, bool, error)

	mu     sync.Mutex
	called []llm.ToolCall
}

func tools(names ...string) *box {
	b := &box{do: func(_ context.Context, c llm.ToolCall) (string, bool, error) { return "did " + c.Name, false, nil }}
	for _, n := range names {
		b.tools = append(b.tools, llm.Tool{Name: n, Description: "does " + n, Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false}`)})
	}
	return b
}

func (b *box) Tools(context.Context) ([]llm.Tool, error) { return b.tools, nil }

func (b *box) Call(ctx context.Context, c llm.ToolCall) (string, bool, error) {
	b.mu.Lock()
	b.called = append(b.called, c)
	b.mu.Unlock()
	return b.do(ctx, c)
}

func (b *box) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.called)
}

// searches are n calls of the tool "search" in one turn.
func searches(turn, n int) []llm.ToolCall {
	var out []llm.ToolCall
	for i := 1; i <= n; i++ {
		out = append(out, llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", turn, i), Name: "search", Arguments: fmt.Sprintf(`{"q": "%d"}`, i)})
	}
	return out
}

// answers are the texts of the answers to the conversation's calls.
func answers(messages []llm.Message) []string {
	var out []string
	for _, m := range messages {
		if m.Role == llm.RoleTool {
			out = append(out, m.Text)
		}
	}
	return out
}

func refusal(c llm.ToolCall) string { return steplimit.RefusalText(steplimit.Call(c)) }

// eachVendor runs a test with both protocols.
func eachVendor(t *testing.T, f func(t *testing.T, v llmtest.Vendor)) {
	for _, v := range llmtest.Vendors {
		t.Run(string(v), func(t *testing.T) { f(t, v) })
	}
}

// inTime is a context for a test that would hang if it failed.
func inTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustRun(t *testing.T, l llm.Loop, in llm.Input) llm.Outcome {
	t.Helper()
	if in.Model == "" {
		in.Model = "a-model"
	}
	if in.Prompt == "" {
		in.Prompt = "go"
	}
	out, err := l.Run(inTime(t), in)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return out
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("missing %q in:\n%s", p, text)
		}
	}
}

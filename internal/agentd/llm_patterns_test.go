package agentd_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
)

// approval and exempt accept the same patterns as allowed_tools.
func TestLLMToolListsAcceptPatterns(t *testing.T) {
	s := newToolServer(t)
	var deleted atomic.Int64
	s.tool("rest__delete", func(context.Context, string) string { deleted.Add(1); return "deleted" })
	s.tool("fs__read", echo)
	asked := []llm.ToolCall{{ID: "a", Name: "rest__delete", Arguments: "{}"}, {ID: "b", Name: "fs__read", Arguments: "{}"}, {ID: "c", Name: "fs__read", Arguments: "{}"}}
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Calls: asked}, llmtest.Reply{Text: "ok"}))
	cfg := withTools(llmConfig(t, m), s)
	cfg.Runner.LLM.Steps = runner.NewSteps(1, 0)
	cfg.Runner.LLM.Approval, cfg.Runner.LLM.Exempt = []string{"rest__*"}, []string{"*__read"}
	a := start(t, cfg)
	if end := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID); end.State != "completed" || end.ToolCount != 2 {
		t.Fatalf("%d tools, %+v", end.ToolCount, end.Error)
	}
	last := m.Last().Messages
	if deleted.Load() != 0 || !strings.Contains(last[2].Text, "needs a person's approval") {
		t.Errorf("deleted %d times; the model was told %q", deleted.Load(), last[2].Text)
	}
	if last[3].Text != "got {}" || last[4].Text != "got {}" {
		t.Errorf("exempt calls were answered %q and %q", last[3].Text, last[4].Text)
	}
}

// A pattern that matches no tool fails the run before the first request to
// the model: a misspelt approval must not leave its tool unguarded.
func TestLLMToolListWithoutMatchFails(t *testing.T) {
	for key, change := range map[string]func(*[]string, *[]string){
		"agent.llm.approval": func(approval, _ *[]string) { *approval = []string{"fs__*", "rest__delte"} },
		"agent.llm.exempt":   func(_, exempt *[]string) { *exempt = []string{"rest__delte"} },
	} {
		s := newToolServer(t)
		s.tool("rest__delete", echo)
		s.tool("fs__read", echo)
		m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "ok"}))
		cfg := withTools(llmConfig(t, m), s)
		change(&cfg.Runner.LLM.Approval, &cfg.Runner.LLM.Exempt)
		a := start(t, cfg)
		end := a.end(a.submit(api.AgentTask{Prompt: "x"}).TaskID)
		wantError(t, end, "failed", "tools_error", key)
		wantError(t, end, "failed", "tools_error", `did you mean "rest__delete"`)
		if len(m.Requests()) != 0 {
			t.Errorf("%s: the model was asked", key)
		}
	}
}

// A task that narrows its tools does not make the agent's lists invalid.
func TestLLMToolListsApplyToAllTools(t *testing.T) {
	s := newToolServer(t)
	s.tool("rest__delete", echo)
	s.tool("fs__read", echo)
	m := llmtest.New(t, llmtest.OpenAI, llmtest.Script(llmtest.Reply{Text: "ok"}))
	cfg := withTools(llmConfig(t, m), s)
	cfg.Runner.LLM.Approval = []string{"rest__*"}
	a := start(t, cfg)
	end := a.end(a.submit(api.AgentTask{Prompt: "x", Isolated: true, AllowedTools: []string{"fs__*"}}).TaskID)
	if end.State != "completed" || !slices.ContainsFunc(m.Last().Tools, func(t llm.Tool) bool { return t.Name == "fs__read" }) {
		t.Errorf("%s %+v", end.State, end.Error)
	}
}

// A text that cannot be the name of a tool is refused when the agent starts.
func TestLLMToolListsAreCheckedAtStart(t *testing.T) {
	for _, bad := range []string{"rest delete", "", "Bash(git *)"} {
		m := llmtest.New(t, llmtest.OpenAI, llmtest.Script())
		cfg := llmConfig(t, m)
		cfg.Runner.LLM.Approval = []string{bad}
		if _, err := agentd.New(cfg); err == nil || !strings.Contains(err.Error(), "agent.llm.approval") {
			t.Errorf("approval [%q]: %v", bad, err)
		}
	}
}

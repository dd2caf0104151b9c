package runner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

func newLLM(t *testing.T, o runner.LLM) runner.Runner {
	t.Helper()
	r, err := runner.New("llm", runner.Options{LLM: o, Tiers: map[string]string{"fast": "small"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLLMOptions(t *testing.T) {
	for want, o := range map[string]runner.LLM{
		"openai, anthropic": {Provider: "gpt"},
		"reject, queue":     {OverLimit: "drop"},
	} {
		if _, err := runner.New("llm", runner.Options{LLM: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	r := newLLM(t, runner.LLM{})
	if m, err := r.Model("", "fast", ""); m != "small" || err != nil {
		t.Error(m, err)
	}
	if _, err := r.Model("", "", ""); err == nil || !strings.Contains(err.Error(), "agent.model") {
		t.Error(err)
	}
}

// A vendor requires a key, other endpoints do not. Tools of a director
// require its URL.
func TestLLMPlan(t *testing.T) {
	for _, c := range []struct {
		o    runner.LLM
		env  []string
		want string
	}{
		{runner.LLM{Tools: "none"}, nil, "OPENAI_API_KEY"},
		{runner.LLM{Tools: "none", Provider: "anthropic"}, []string{"OPENAI_API_KEY=x"}, "ANTHROPIC_API_KEY"},
		{runner.LLM{Tools: "none", BaseURL: "https://api.openai.com/v1/"}, nil, "OPENAI_API_KEY"},
		{runner.LLM{Tools: "none"}, []string{"OPENAI_API_KEY=x"}, ""},
		{runner.LLM{Tools: "none", APIKey: "x"}, nil, ""},
		{runner.LLM{Tools: "none", BaseURL: "http://127.0.0.1:11434/v1"}, nil, ""},
		{runner.LLM{Tools: "none"}, []string{"OPENAI_BASE_URL=http://127.0.0.1:11434/v1"}, ""},
		{runner.LLM{Tools: "none", BaseURL: "127.0.0.1"}, nil, "not one such as"},
		{runner.LLM{APIKey: "x"}, nil, ""},
		{runner.LLM{APIKey: "x", Tools: "director"}, nil, "--director"},
		{runner.LLM{APIKey: "x"}, []string{"SIGNALBOX_DIRECTOR=http://127.0.0.1:8080"}, ""},
		{runner.LLM{APIKey: "x", Tools: "127.0.0.1:1"}, nil, "agent.llm.tools"},
	} {
		_, err := newLLM(t, c.o).Plan(runner.Task{Prompt: "x", Model: "m", Env: c.env})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v %q: %v, want %q", c.o, c.env, err, c.want)
		}
	}
}

func TestLLMExtras(t *testing.T) {
	r := newLLM(t, runner.LLM{})
	if err := r.CheckExtras([]string{"fs__read", "rest__weather", "fs__*", "*", "*__read"}, "Be brief."); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "Bash(git *)", "fs read", strings.Repeat("x", 300)} {
		if r.CheckExtras([]string{bad}, "") == nil {
			t.Errorf("%q is accepted as a tool", bad)
		}
	}
	if r.CheckExtras(make([]string, 101), "") == nil || r.CheckExtras(nil, "a\x00b") == nil {
		t.Error("too many tools, or a NUL, are taken")
	}
}

// Detecting the kind never selects llm, which would spend money unasked.
func TestNoLLMIsOnPath(t *testing.T) {
	if slices.ContainsFunc(runner.OnPath(), func(f runner.DetectedCLI) bool { return f.Kind == "llm" }) {
		t.Error("llm is found like a CLI")
	}
}

package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// The configuration in docs/agents.md for a model with tools is valid, and reaches the
// runner.
func TestModelWithToolsOfTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/agents.md shows no configuration")
	}
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Sources{File: file, Env: func(name string) (string, bool) { return "/home/x", name == "HOME" }})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Agent.Kind = "llm"
	got := (&process{cfg: cfg, folder: t.TempDir()}).daemonConfig()
	if _, err := runner.New(got.Kind, got.Runner); err != nil {
		t.Fatal(err)
	}
	l := got.Runner.LLM
	if got.Model != "gpt-5.1" || l.Provider != "openai" || l.BaseURL != "http://127.0.0.1:11434/v1" || l.MaxTurns != 20 || l.Steps.Told().Limit != 3 ||
		l.MaxTokens != 8192 || l.OverLimit != "reject" || l.Tools != "auto" || !strings.HasPrefix(l.System, "You look") || !slices.Equal(l.Approval, []string{"fs__delete_file"}) {
		t.Errorf("%s, %+v", got.Model, l)
	}
}

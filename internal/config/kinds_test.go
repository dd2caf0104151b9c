package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Each kind has its own options, which override those of agent; a flag
// overrides both, and the options of one kind do not affect another.
func TestForAKind(t *testing.T) {
	dir := t.TempDir()
	file := `
agent: {permission_mode: default, model: opus, tiers: {fast: a}, prices: {x: {input: 3, output: 4}}, args: [--all]}
agents:
  claude: {permission_mode: plan, workdir: one, llm: {max_turns: 3}, tiers: {heavy: b}, prices: {o*: {input: 1, output: 2}}}
  codex: {model: o5, args: [], home: "${FOLDER}"}
  demo:
`
	if err := os.WriteFile(filepath.Join(dir, "signalbox.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		return map[string]string{"HOME": dir, "FOLDER": "/far"}[name], name == "HOME" || name == "FOLDER"
	}
	c, err := Load(Sources{Dir: dir, File: "signalbox.yaml", Env: env, Flags: []Flag{{Name: "--model", Key: "agent.model", Values: []string{"m"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Kinds, []string{"claude", "codex", "demo"}) || c.Agents != nil {
		t.Errorf("%q %+v", c.Kinds, c.Agents)
	}
	before := c.Agent
	claude, codex, other := c.For("claude").Agent, c.For("codex").Agent, c.For("opencode").Agent
	if claude.Kind != "claude" || claude.PermissionMode != "plan" || claude.WorkDir != filepath.Join(dir, "one") || claude.LLM.MaxTurns != 3 || claude.Model != "m" || len(claude.Args) != 1 || claude.Tiers["heavy"] != "b" || claude.Tiers["fast"] != "" {
		t.Errorf("claude: %+v", claude)
	}
	if claude.Prices["o*"] != (Price{1, 2, 1, 1}) || len(claude.Prices) != 1 || codex.Prices["x"] != (Price{3, 4, 3, 3}) {
		t.Errorf("prices: claude %v, codex %v", claude.Prices, codex.Prices)
	}
	if codex.PermissionMode != "default" || codex.Model != "m" || len(codex.Args) != 0 || codex.Home != "/far" || codex.WorkDir != "" {
		t.Errorf("codex: %+v", codex)
	}
	before.Kind = "opencode"
	if !reflect.DeepEqual(other, before) {
		t.Errorf("opencode: %+v, want %+v", other, before)
	}
	own := c.For("claude")
	if at := own.Origin("agent.permission_mode"); at != "signalbox.yaml:4" {
		t.Errorf("it comes from %s", at)
	}
	if own := c.For("codex"); own.Origin("agent.model") != "--model" {
		t.Errorf("it comes from %s", own.Origin("agent.model"))
	}
}

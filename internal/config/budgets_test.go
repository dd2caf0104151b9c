package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

func loadBudgets(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(path, []byte("budgets:\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Sources{File: path, Dir: filepath.Dir(path), Env: func(name string) (string, bool) { return "/home/ada", name == "HOME" }})
	return c, err
}

func TestBudgets(t *testing.T) {
	c, err := loadBudgets(t, `  task: {usd: 5, tokens: 2000000}
  day: {usd: 100}
  users: {"*": {usd: 20}, ann@example.org: {usd: 50.25}, "user:bob": {usd: 0}}
  agents: {coder: {tokens: 7}}
  accounts: {"*": {usd: 60}}
`)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Budgets
	usd := func(n float64) signalbox.Budget { return signalbox.Budget{NanoUSD: int64(n * 1e9)} }
	if b.Task != (signalbox.Budget{NanoUSD: 5e9, Tokens: 2_000_000}) || b.Day != usd(100) ||
		!maps.Equal(b.Users, map[string]signalbox.Budget{"*": usd(20), "ann@example.org": usd(50.25), "user:bob": {}}) ||
		!maps.Equal(b.Agents, map[string]signalbox.Budget{"coder": {Tokens: 7}}) || !maps.Equal(b.Accounts, map[string]signalbox.Budget{"*": usd(60)}) {
		t.Errorf("%+v", b)
	}
}

// An invalid budget is an error with the line, the key and what is expected.
func TestInvalidBudgets(t *testing.T) {
	for text, want := range map[string]string{
		"  task: {usd: -5}\n":                      ":2: budgets.task.usd: want US dollars",
		"  task: {usd: .nan}\n":                    ":2: budgets.task.usd: want US dollars",
		"  task: {usd: .inf}\n":                    ":2: budgets.task.usd: want US dollars",
		"  task: {usd: 1e-12}\n":                   ":2: budgets.task.usd: want US dollars",
		"  day: {tokens: 0.5}\n":                   ":2: budgets.day.tokens: want a whole number of tokens",
		"  day: {tokens: -1}\n":                    ":2: budgets.day.tokens: want a whole number of tokens",
		"  day: {euro: 5}\n":                       ":2: budgets.day.euro: there is no such key",
		"  day: 5\n":                               ":2: budgets.day",
		"  week: {usd: 5}\n":                       ":2: budgets.week: there is no such key",
		"  users: {ann: {usd: 5}}\n":               ":2: budgets.users.ann: want a user",
		"  agents: {\"a b\": {usd: 5}}\n":          ":2: budgets.agents.a b: want the name of an agent",
		"  accounts: [team]\n":                     ":2: budgets.accounts: want a section",
		"  agents:\n    coder:\n      usd: many\n": ":4: budgets.agents.coder.usd: want US dollars",
		"  agents: {coder: {usd: 1}, coder: {}}\n": ":2: budgets.agents.coder",
	} {
		if _, err := loadBudgets(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

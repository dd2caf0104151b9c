package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// fake makes a program that prints and exits as a CLI does.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cli")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// The reported login is what the CLI itself says.
func TestLogin(t *testing.T) {
	const claudeIn = `echo '{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty","apiKeySource":"ANTHROPIC_API_KEY"}'`
	for name, c := range map[string]struct {
		kind, script string
		env          string
		known, in    bool
		says         string
	}{
		"claude key":      {"claude", claudeIn, "", true, true, "spends the account of ANTHROPIC_API_KEY"},
		"claude plan":     {"claude", `echo '{"loggedIn":true,"authMethod":"claude.ai","apiProvider":"firstParty","email":"ada@example.org","subscriptionType":"max"}'`, "", true, true, "spends the account of ada@example.org (max)"},
		"claude token":    {"claude", `echo '{"loggedIn":true,"authMethod":"oauth_token"}'`, "", true, true, "spends the account of CLAUDE_CODE_OAUTH_TOKEN"},
		"claude provider": {"claude", `echo '{"loggedIn":true,"authMethod":"third_party","apiProvider":"bedrock"}'`, "", true, true, "spends the account of bedrock"},
		"claude out":      {"claude", `echo '{"loggedIn":false}'; exit 1`, "", true, false, "not logged in: run claude auth login"},
		"claude old":      {"claude", `echo 'unknown command'; exit 1`, "", false, false, "is not known"},
		"codex in":        {"codex", `echo 'WARNING: x' >&2; echo 'Logged in using an API key - sk-proj-***abc' >&2`, "", true, true, "spends the account that it is logged in using an API key"},
		"codex out":       {"codex", `echo 'Not logged in' >&2; exit 1`, "OPENAI_API_KEY=x", true, false, "not logged in: run codex login, or set CODEX_API_KEY"},
		"codex key":       {"codex", `echo 'Not logged in' >&2; exit 1`, "CODEX_API_KEY=x", true, true, "spends the account of CODEX_API_KEY"},
		"codex gone":      {"codex", `exit 3`, "", false, false, "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runner.LoginOf(t.Context(), c.kind, fake(t, c.script), t.TempDir(), []string{"PATH=/usr/bin:/bin", c.env})
			if got.Known != c.known || got.In != c.in || !strings.Contains(got.Text, c.says) || strings.Contains(got.Text, "sk-proj") {
				t.Errorf("%+v", got)
			}
		})
	}
	home := t.TempDir()
	if got := runner.LoginOf(t.Context(), "opencode", "", home, nil); got.Known || !strings.Contains(got.Text, "no login of its own") {
		t.Errorf("%+v", got)
	}
	folder := filepath.Join(home, ".local", "share", "opencode")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "auth.json"), []byte(`{"zeta":{},"acme":{"type":"api","key":"k"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runner.LoginOf(t.Context(), "opencode", "", home, nil); !got.In || !strings.HasSuffix(got.Text, "it is logged in with acme, zeta") {
		t.Errorf("%+v", got)
	}
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"model = \"m\"\nmodel_provider = \"local\"\n[model_providers.local]\n": "what its model provider local is configured with",
		"[profiles.x]\nmodel_provider = \"local\"\n":                           "not logged in",
	} {
		if err := os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := runner.LoginOf(t.Context(), "codex", fake(t, "echo 'Not logged in'; exit 1"), home, []string{"PATH=/usr/bin:/bin"}); !strings.Contains(got.Text, want) {
			t.Errorf("%+v", got)
		}
	}
	if got := runner.LoginOf(t.Context(), "claude", "/no/such/program", home, nil); got.Known {
		t.Errorf("%+v", got)
	}
}

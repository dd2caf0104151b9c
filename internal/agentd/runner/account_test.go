package runner_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// homeWith creates a home with these files.
func homeWith(t *testing.T, files map[string]string) string {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// The same login gives the same account in every home, a different login a different
// one. An unknown login gives a separate account in each home. No name or text
// contains a key.
func TestAccountIsOfTheLogin(t *testing.T) {
	type files = map[string]string
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
	}
	plan := func(account, org, email string) files {
		return files{".claude.json": `{"oauthAccount":{"accountUuid":"` + account + `","organizationUuid":"` + org + `","emailAddress":"` + email + `"}}`}
	}
	chatgpt := func(account, user, email string) files {
		return files{".codex/auth.json": `{"OPENAI_API_KEY":null,"tokens":{"account_id":"` + account + `","id_token":"` + token(`{"email":"`+email+`","https://api.openai.com/auth":{"chatgpt_user_id":"`+user+`"}}`) + `"}}`}
	}
	local := func(url, name string) string {
		return "model_provider = \"local\"\n[model_providers.local]\nbase_url = \"" + url + "\"\nenv_key = \"" + name + "\"\n"
	}
	const open = ".local/share/opencode/auth.json"
	cases := []struct {
		name, kind string
		files      files
		env        []string
		login      string
		own        bool // a separate account in each home
	}{
		{"plan", "claude", plan("a", "o", "ada@example.org"), nil, "ada@example.org", false},
		{"same person, other organization", "claude", plan("a", "p", "ada@example.org"), nil, "ada@example.org", false},
		{"other person", "claude", plan("b", "o", "bob@example.org"), nil, "bob@example.org", false},
		{"key", "claude", plan("a", "o", "ada@example.org"), []string{"ANTHROPIC_API_KEY=sk-1"}, "API key", false},
		{"key elsewhere", "claude", nil, []string{"ANTHROPIC_API_KEY=sk-1", "ANTHROPIC_BASE_URL=http://127.0.0.1:1"}, "API key", false},
		{"other key", "claude", nil, []string{"ANTHROPIC_API_KEY=sk-2"}, "API key", false},
		{"key of settings", "claude", files{".claude/settings.json": `{"env":{"ANTHROPIC_API_KEY":"sk-3"}}`}, []string{"ANTHROPIC_API_KEY=sk-1"}, "API key", false},
		{"token", "claude", nil, []string{"CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-x"}, "OAuth token", false},
		{"token of a gateway", "claude", nil, []string{"ANTHROPIC_AUTH_TOKEN=sk-1", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-x"}, "OAuth token", false},
		{"helper", "claude", files{".claude/settings.json": `{"apiKeyHelper":"print-key"}`}, nil, "API key", true},
		{"login without a name", "claude", files{".claude/.credentials.json": `{}`}, nil, "a login that tells no account", true},
		{"cloud", "claude", plan("a", "o", "ada@example.org"), []string{"CLAUDE_CODE_USE_BEDROCK=1"}, "the login of bedrock", true},
		{"nothing", "claude", files{".claude.json": "not JSON", ".claude/settings.json": "[1]"}, nil, "not logged in", true},

		{"chatgpt", "codex", chatgpt("w", "u1", "ada@example.org"), []string{"OPENAI_API_KEY=sk-1"}, "ada@example.org", false},
		{"chatgpt, same workspace", "codex", chatgpt("w", "u2", "bob@example.org"), nil, "bob@example.org", false},
		{"codex key", "codex", chatgpt("w", "u1", "ada@example.org"), []string{"CODEX_API_KEY=sk-1"}, "API key", false},
		{"codex login with a key", "codex", files{".codex/auth.json": `{"OPENAI_API_KEY":"sk-2"}`}, nil, "API key", false},
		{"codex provider", "codex", files{".codex/config.toml": local("http://127.0.0.1:1/v1", "LOCAL_KEY")}, []string{"LOCAL_KEY=sk-1"}, "API key", false},
		{"codex provider elsewhere", "codex", files{".codex/config.toml": local("http://127.0.0.1:2/v1", "LOCAL_KEY")}, []string{"LOCAL_KEY=sk-1"}, "API key", false},
		{"codex nothing", "codex", files{".codex/auth.json": `{"tokens":{"id_token":"a.b.c"}}`}, nil, "not logged in", true},

		{"opencode key", "opencode", files{open: `{"acme":{"type":"api","key":"sk-1"}}`}, nil, "acme", false},
		{"opencode keys", "opencode", files{open: `{"acme":{"type":"api","key":"sk-1"},"zeta":{"type":"api","key":"sk-2"}}`}, nil, "acme, zeta", false},
		{"opencode account", "opencode", files{open: `{"openai":{"type":"oauth","accountId":"w","refresh":"rt-1"}}`}, nil, "openai", false},
		{"opencode plan", "opencode", files{open: `{"anthropic":{"type":"oauth","refresh":"rt-1"}}`}, nil, "anthropic", true},
		{"opencode variable", "opencode", nil, []string{"OPENAI_API_KEY=sk-1"}, "API key", false},
		{"opencode configuration", "opencode", files{".config/opencode/opencode.json": `{"provider":{"local":{"options":{"baseURL":"http://127.0.0.1:1","apiKey":"sk-1"}}}}`}, nil, "API key", false},
		{"opencode nothing", "opencode", nil, nil, "not logged in", true},

		{"llm", "llm", nil, []string{"OPENAI_API_KEY=sk-1"}, "API key", false},
		{"llm elsewhere", "llm", nil, []string{"OPENAI_API_KEY=sk-1", "OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "API key", false},
		{"llm without", "llm", nil, []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "no key", false},
	}
	form := regexp.MustCompile(`^(claude|codex|opencode|llm)-[0-9a-f]{10}$`)
	seen := map[string]string{}
	for _, c := range cases {
		r := must(t, c.kind, runner.Options{})
		a, b := r.Account(homeWith(t, c.files), c.env, nil), r.Account(homeWith(t, c.files), c.env, nil)
		if (a.Name != b.Name) != c.own || a.Login != c.login || !form.MatchString(a.Name) || strings.Contains(a.Login, "sk-") {
			t.Errorf("%s: %+v, in another home %+v", c.name, a, b)
		}
		if other := seen[a.Name]; other != "" {
			t.Errorf("%s has the account of %s", c.name, other)
		}
		seen[a.Name] = c.name
	}
	llm := must(t, "llm", runner.Options{LLM: runner.LLM{APIKey: "sk-1"}})
	if own, brought := llm.Account("", nil, nil), llm.Account("", nil, map[string]string{"OPENAI_API_KEY": "sk-2"}); own == brought {
		t.Errorf("a task with its own key uses %+v", brought)
	}
	for _, kind := range []string{"command", "demo"} {
		if a := must(t, kind, runner.Options{Command: []string{"true"}}).Account(t.TempDir(), []string{"OPENAI_API_KEY=sk-1"}, nil); a != (runner.Account{}) {
			t.Errorf("%s spends %+v", kind, a)
		}
	}
}

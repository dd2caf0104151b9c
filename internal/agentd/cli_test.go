package agentd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// clis are the real coding CLIs, installed by scripts/install-agents.sh.
var clis = []string{"claude", "codex", "opencode"}

// binary finds a CLI, or skips the test; in CI its absence is a failure.
func binary(t *testing.T, kind string) string {
	t.Helper()
	dir := os.Getenv("SIGNALBOX_TEST_AGENTS")
	if dir == "" {
		dir = filepath.Join("..", "..", ".cache", "agents", "bin")
	}
	path, err := filepath.Abs(filepath.Join(dir, kind))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		return path
	}
	reason := fmt.Sprintf("%s is not installed: run scripts/install-agents.sh and set SIGNALBOX_TEST_AGENTS to the folder that it prints (%v)", kind, err)
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
	return ""
}

// cli starts an agent of a real CLI with a scripted model. Such tests run in
// parallel, because they mostly wait for the CLI.
func cli(t *testing.T, kind string, change func(*agentd.Config)) (*agent, *model.Server) {
	t.Helper()
	return cliAt(t, kind, func(m *model.Server) string { return m.URL }, change)
}

// cliAt is cli with another URL for the model.
func cliAt(t *testing.T, kind string, at func(*model.Server) string, change func(*agentd.Config)) (*agent, *model.Server) {
	t.Helper()
	t.Parallel()
	bin := binary(t, kind)
	m, err := model.Start(model.Replies(model.Reply{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	cfg := config(t, kind)
	cfg.Runner.Binary = bin
	cfg.KillGrace = 2 * time.Second
	pointAt(t, kind, &cfg, at(m))
	if change != nil {
		change(&cfg)
	}
	return start(t, cfg), m
}

// pointAt configures a CLI to use the model at url.
func pointAt(t *testing.T, kind string, cfg *agentd.Config, url string) {
	t.Helper()
	write := func(name, text string) {
		path := filepath.Join(cfg.Home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	switch kind {
	case "claude":
		cfg.Environ = append(cfg.Environ, "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=test-key", "CLAUDE_CODE_MAX_RETRIES=0",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1")
	case "codex":
		cfg.Environ = append(cfg.Environ, "OPENAI_API_KEY=test-key")
		write(".codex/config.toml", fmt.Sprintf(`
model = "scripted"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "%s/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
`, url))
	case "opencode":
		cfg.Environ = append(cfg.Environ, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
			"OPENCODE_MODELS_PATH="+filepath.Join(cfg.Home, "models.json"))
		if !soak.On() { // collecting garbage and optimizing take half of the time of a short run
			cfg.Environ = append(cfg.Environ, "BUN_JSC_useGC=0", "BUN_JSC_useDFGJIT=0")
			cfg.PassEnv = append(cfg.PassEnv, "BUN_JSC_useGC", "BUN_JSC_useDFGJIT")
		}
		write("models.json", "{}")        // an empty catalogue: reading the built-in one takes a third of the start
		write(".npmrc", "offline=true\n") // the first start in a home would download 90 MB
		write(".config/opencode/opencode.json", fmt.Sprintf(`{
  "model": "local/scripted", "small_model": "local/scripted", "autoupdate": false, "share": "disabled",
  "provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local",
    "options": {"baseURL": "%s/v1", "apiKey": "test-key"}, "models": {"scripted": {"name": "scripted"}}}}}`, url))
	}
}

func TestCLIAnswersAndResumes(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			if kind == "opencode" { // each start takes seconds
				soak.Only(t, "what opencode makes of a prompt and of its conversation without a director before it; e2e TestRealCLIs has both with one")
			}
			a, m := cli(t, kind, nil)
			m.Use(model.Replies(model.Reply{Text: "The answer is forty-two.", Chunks: 3}))
			// A prompt that begins with a dash is not taken for a flag.
			acc := a.submit(api.AgentTask{Prompt: "--help me: what is the answer?", SessionID: "talk-1"})
			s := a.end(acc.TaskID)
			if s.State != "completed" || s.Output != "The answer is forty-two." {
				t.Fatalf("got %s %q %+v", s.State, s.Output, s.Error)
			}
			if s.SessionID != "talk-1" || s.TokenUsage == nil || s.TokenUsage.Input < model.InputTokens || s.TokenUsage.Output < model.OutputTokens {
				t.Errorf("session %q, tokens %+v", s.SessionID, s.TokenUsage)
			}
			// The text, which arrives in parts, is in the output once, and without events.
			if out := a.says(acc.TaskID, "forty-two"); strings.Contains(out, "{") || strings.Count(out, "The answer") != 1 || !strings.HasSuffix(out, "The answer is forty-two.\n") {
				t.Errorf("output: %q", out)
			}

			m.Use(model.Replies(model.Reply{Text: "I remember."}))
			s = a.end(a.submit(api.AgentTask{Prompt: "and what did I ask before?", SessionID: "talk-1"}).TaskID)
			if s.State != "completed" || s.Output != "I remember." {
				t.Fatalf("resumed: %s %q %+v", s.State, s.Output, s.Error)
			}
			resumed := false
			for _, r := range m.Requests() {
				resumed = resumed || strings.Contains(r.Text, "what is the answer?")
			}
			if !resumed {
				t.Error("the resumed conversation does not contain the first prompt")
			}
			if ids := sessionIDs(a); !slices.Equal(ids, []string{"talk-1"}) {
				t.Errorf("conversations %q", ids)
			}
			if kind != "opencode" { // opencode keeps them in a database
				forgetConversations(t, a.cfg.Home)
				if ids := sessionIDs(a); len(ids) != 0 {
					t.Errorf("conversations that the CLI no longer has: %q", ids)
				}
			}
		})
	}
}

// forgetConversations removes the conversations that the CLIs keep.
func forgetConversations(t *testing.T, home string) {
	t.Helper()
	for _, dir := range []string{".claude/projects", ".codex/sessions"} {
		if err := os.RemoveAll(filepath.Join(home, dir)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCLIReportsAModelError(t *testing.T) {
	for _, kind := range []string{"claude", "codex"} { // opencode: TestOpencodeLogErrorsAreReported
		t.Run(kind, func(t *testing.T) {
			a, m := cli(t, kind, nil)
			m.Use(model.Replies(model.Reply{Status: 400, Message: "the model has no such thing"}))
			s := a.end(a.submit(api.AgentTask{Prompt: "hello"}).TaskID)
			wantError(t, s, "failed", "claude_error", "no such thing")
		})
	}
}

// The CLI's shell tool starts a child process; a cancel must end that as
// well.
func TestCLICancelLeavesNothingAlive(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			a, m := cli(t, kind, allowShell)
			m.Use(model.Replies(model.Reply{Tool: model.Shell("echo started > started; sleep 300")}, model.Reply{Text: "done"}))
			acc := a.submit(api.AgentTask{Prompt: "run it"})
			testkit.Wait(t, "its tool has begun", func() bool {
				_, err := os.Stat(filepath.Join(a.cfg.WorkDir, "started"))
				return err == nil
			})
			var c api.AgentCancelled
			if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &c); code != 200 || c.State != "cancelled" {
				t.Fatalf("cancel: %d %+v", code, c)
			}
			gone(t, acc.TaskID)
			wantError(t, a.get(acc.TaskID), "cancelled", "cancelled", "cancelled")
		})
	}
}

func TestCLITimeout(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			if kind != "codex" {
				soak.Only(t, "a CLI that outlives its timeout: it ends as by a cancel, which TestCLICancelLeavesNothingAlive has")
			}
			a, m := cli(t, kind, nil)
			m.Use(model.Replies(model.Reply{Text: "thinking about it", Hang: true, Chunks: 2}))
			acc := a.submit(api.AgentTask{Prompt: "hello", TimeoutSeconds: 4})
			wantError(t, a.end(acc.TaskID), "failed", "timeout", "4s")
			gone(t, acc.TaskID)
		})
	}
}

// allowShell lets the CLI run commands without asking.
func allowShell(c *agentd.Config) {
	switch c.Kind {
	case "claude":
		c.Runner.AllowedTools = []string{"Bash"}
	case "codex":
		c.Runner.Permission = "danger-full-access"
	case "opencode":
		c.Runner.Permission = "allow"
	}
}

// An isolated run has its own home, in which the CLI still finds its login
// and configuration, and every option reaches the CLI.
func TestCLIIsolatedWithOptions(t *testing.T) {
	names := map[string]string{"claude": "haiku", "codex": "scripted", "opencode": "local/scripted"}
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			a, m := cli(t, kind, allowShell)
			yes := true
			s := usesItsTools(t, a, m, api.AgentTask{Prompt: "run it", Isolated: true, Thinking: &yes, Model: names[kind]})
			if s.SessionID != "" {
				t.Errorf("session %q", s.SessionID)
			}
			if _, err := os.Stat(filepath.Join(a.cfg.DataDir, "runs", s.TaskID, "home")); err == nil {
				t.Error("the home, which links to the login, is still there")
			}
			if entries, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, "sessions")); len(entries) != 0 {
				t.Error("an isolated run has a conversation")
			}
		})
	}
}

// Each CLI uses its tools in the user's home; opencode, whose starts take
// seconds, does so only in TestCLIIsolatedWithOptions.
func TestCLIUsesItsTools(t *testing.T) {
	soak.Only(t, "a CLI that uses its tools in a home of its own and not in its user's; that it starts them there TestCLICancelLeavesNothingAlive sees")
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			a, m := cli(t, kind, allowShell)
			usesItsTools(t, a, m, api.AgentTask{Prompt: "run it"})
		})
	}
}

// usesItsTools runs a turn in which the CLI runs the command and reports it on one
// line.
func usesItsTools(t *testing.T, a *agent, m *model.Server, task api.AgentTask) api.AgentTaskStatus {
	t.Helper()
	proof := filepath.Join(a.cfg.WorkDir, "proof") // an isolated run has its own folder
	m.Use(model.Replies(model.Reply{Text: "I shall look.", Tool: model.Shell("echo it-ran > " + proof)}, model.Reply{Text: "Done."}))
	s := a.end(a.submit(task).TaskID)
	if s.State != "completed" || s.Output != "Done." {
		t.Fatalf("%s %q %+v", s.State, s.Output, s.Error)
	}
	if b, err := os.ReadFile(proof); err != nil || string(b) != "it-ran\n" {
		t.Errorf("the command did not run: %q, %v", b, err)
	}
	if out := a.says(s.TaskID, "Done."); !strings.Contains(out, "it-ran > "+proof) || !strings.Contains(out, "I shall look.") {
		t.Errorf("output: %q", out)
	}
	if s.TokenUsage == nil || s.TokenUsage.Input == 0 {
		t.Errorf("tokens %+v", s.TokenUsage)
	}
	return s
}

// The login of each CLI is recognized: a new home has none, and a key in the
// environment counts if the CLI uses it.
func TestLoginOfTheRealCLIs(t *testing.T) {
	for kind, keys := range map[string]map[string]string{
		"claude": {"": "not logged in", "ANTHROPIC_API_KEY": "spends the account of ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN": "spends the account of CLAUDE_CODE_OAUTH_TOKEN"},
		"codex":  {"": "not logged in", "OPENAI_API_KEY": "not logged in", "CODEX_API_KEY": "spends the account of CODEX_API_KEY"},
	} {
		t.Run(kind, func(t *testing.T) {
			bin := binary(t, kind)
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, "."+kind), 0o700); err != nil {
				t.Fatal(err)
			}
			for key, want := range keys {
				env := []string{"PATH=" + os.Getenv("PATH"), "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", key + "=sk-test"}
				if key == "" {
					env = env[:3]
				}
				var got runner.Login
				for begun := time.Now(); !got.Known && time.Since(begun) < time.Minute; { // it gives up after a while on a busy machine
					got = runner.LoginOf(t.Context(), kind, bin, home, env)
				}
				if !got.Known || got.In != strings.HasPrefix(want, "spends") || !strings.HasPrefix(got.Text, want) {
					t.Errorf("%q: %+v", key, got)
				}
			}
		})
	}
}

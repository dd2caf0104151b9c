package runner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Login is whose account a coding CLI spends, as far as it can be told without
// asking its model.
type Login struct {
	// Known is false where the CLI did not say; Text then says why.
	Known bool
	In    bool   // it has a key or login to work with
	Text  string // a sentence without its end, such as "spends the account of CODEX_API_KEY"
}

// loginTime bounds a question to a CLI.
const loginTime = 5 * time.Second

// LoginOf asks the CLI of a kind at path, as it would run with that home and
// environment.
func LoginOf(ctx context.Context, kind, path, home string, environ []string) Login {
	environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, "CLAUDE_CONFIG_DIR=") }) // as for runs
	environ = append(environ, "HOME="+home)
	switch kind {
	case "claude":
		return claudeLogin(ctx, path, environ)
	case "codex":
		return codexLoginOf(ctx, path, filepath.Join(home, ".codex"), environ)
	case "opencode":
		return opencodeLogin(home)
	}
	return Login{Text: "its account is not known"}
}

// say runs a command of a CLI and returns what it prints on both outputs. An
// exit status of its own is no error.
func say(ctx context.Context, environ []string, argv ...string) (out, complaint string, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = environ, &stdout, &stderr, time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() == nil && errors.As(err, &exit) {
		err = nil
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), err
}

func claudeLogin(ctx context.Context, path string, environ []string) Login {
	out, _, _, err := say(ctx, environ, path, "auth", "status")
	var s struct {
		In       *bool  `json:"loggedIn"`
		Method   string `json:"authMethod"`
		Provider string `json:"apiProvider"`
		Key      string `json:"apiKeySource"`
		Email    string `json:"email"`
		Plan     string `json:"subscriptionType"`
	}
	switch {
	case err != nil || json.Unmarshal([]byte(out), &s) != nil || s.In == nil:
		return Login{Text: "whose account it spends is not known: claude auth status does not say"}
	case !*s.In:
		return Login{Known: true, Text: "not logged in: run claude auth login, or set ANTHROPIC_API_KEY"}
	}
	who := cmp.Or(s.Key, s.Email)
	switch {
	case s.Provider != "" && s.Provider != "firstParty":
		who = "of " + s.Provider
	case s.Method == "oauth_token":
		who = "of CLAUDE_CODE_OAUTH_TOKEN"
	case who == "":
		who = "that claude is logged in with"
	default:
		who = "of " + who
	}
	if s.Plan != "" {
		who += " (" + s.Plan + ")"
	}
	return Login{Known: true, In: true, Text: "spends the account " + oneLine(Plain(who), 120)}
}

// codexProvider is the line of config.toml that names another provider.
var codexProvider = regexp.MustCompile(`(?m)^\s*model_provider\s*=\s*["']([^"']+)["']`)

// codexLoginOf knows that codex exec takes CODEX_API_KEY before its login, and
// OPENAI_API_KEY not at all unless a provider of its configuration names that.
func codexLoginOf(ctx context.Context, path, folder string, environ []string) Login {
	if text, err := os.ReadFile(filepath.Join(folder, "config.toml")); err == nil {
		top, _, _ := strings.Cut("\n"+string(text), "\n[") // what stands before the first table
		if m := codexProvider.FindStringSubmatch(top); m != nil && m[1] != "openai" {
			return Login{Text: "spends what its model provider " + oneLine(Plain(m[1]), 60) + " is configured with"}
		}
	}
	environ = append(environ, "CODEX_HOME="+folder)
	if env(environ, "CODEX_API_KEY") != "" {
		return Login{Known: true, In: true, Text: "spends the account of CODEX_API_KEY"}
	}
	out, complaint, status, err := say(ctx, environ, path, "login", "status")
	for line := range strings.Lines(Plain(out + complaint)) {
		switch line = strings.TrimSpace(line); {
		case status == 0 && strings.HasPrefix(line, "Logged in"):
			how, _, _ := strings.Cut(line, " - ") // then comes a piece of the key
			return Login{Known: true, In: true, Text: "spends the account that it is l" + oneLine(how, 120)[1:]}
		case line == "Not logged in":
			return Login{Known: true, Text: "not logged in: run codex login, or set CODEX_API_KEY"}
		}
	}
	return Login{Text: "whose account it spends is not known: codex login status does not say" + because(err)}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

// opencodeLogin reads the logins that opencode has. Which it spends depends on
// the provider of its model, whose key may stand in its configuration or in a
// variable too.
func opencodeLogin(home string) Login {
	var logins map[string]json.RawMessage
	if err := readJSON(filepath.Join(home, ".local", "share", "opencode", "auth.json"), &logins); err != nil {
		return Login{Text: "whose account it spends is not known: " + err.Error()}
	}
	if len(logins) == 0 {
		return Login{Text: "no login of its own: spends what the provider of its model is configured with, if anything"}
	}
	names := make([]string, 0, len(logins))
	for name := range logins {
		names = append(names, oneLine(Plain(name), 60))
	}
	slices.Sort(names)
	return Login{Known: true, In: true, Text: "spends the account of its model's provider; it is logged in with " + strings.Join(names, ", ")}
}

package runner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// DetectedCLI is a coding CLI on this machine.
type DetectedCLI struct {
	Kind string // claude, codex or opencode
	Path string
}

var versionForm = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9A-Za-z.+-]*`)

// OnPath finds the coding CLIs on PATH.
func OnPath() (found []DetectedCLI) {
	for _, kind := range []string{"claude", "codex", "opencode"} {
		if path, err := exec.LookPath(kind); err == nil {
			found = append(found, DetectedCLI{Kind: kind, Path: path})
		}
	}
	return found
}

// Version asks the CLI for its version, for at most 10 s; it is empty if the CLI
// does not answer. Some CLIs take seconds to start.
func (f DetectedCLI) Version(ctx context.Context) string {
	out, err := f.output(ctx, "--version")
	if err != nil {
		return ""
	}
	return versionForm.FindString(out)
}

// output returns what the CLI prints with an option that needs no model,
// within 10 s.
func (f DetectedCLI) output(ctx context.Context, option string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.Path, option)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return string(out), err
}

// Login is the account that a coding CLI uses, as far as it is known without a
// request to its model.
type Login struct {
	// Known is false if the CLI did not say; Text then has the reason.
	Known bool
	In    bool   // it has a usable key or login
	Text  string // a sentence without its full stop, such as "spends the account of CODEX_API_KEY"
}

// loginTime bounds a query of a CLI.
const loginTime = 5 * time.Second

// LoginOf asks the CLI of a kind at path, as it would run with this home and
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

// runCommand runs a command of a CLI and returns its output and its error output. A
// nonzero exit status is not an error.
func runCommand(ctx context.Context, environ []string, argv ...string) (out, complaint string, status int, err error) {
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
	out, _, _, err := runCommand(ctx, environ, path, "auth", "status")
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

// codexLoginOf takes into account that codex exec prefers CODEX_API_KEY to its
// login, and ignores OPENAI_API_KEY unless a configured provider names it.
func codexLoginOf(ctx context.Context, path, folder string, environ []string) Login {
	if text, err := os.ReadFile(filepath.Join(folder, "config.toml")); err == nil {
		if name := codexSetting(string(text), "", "model_provider"); name != "" && name != "openai" {
			return Login{Text: "spends what its model provider " + oneLine(Plain(name), 60) + " is configured with"}
		}
	}
	environ = append(environ, "CODEX_HOME="+folder)
	if env(environ, "CODEX_API_KEY") != "" {
		return Login{Known: true, In: true, Text: "spends the account of CODEX_API_KEY"}
	}
	out, complaint, status, err := runCommand(ctx, environ, path, "login", "status")
	for line := range strings.Lines(Plain(out + complaint)) {
		switch line = strings.TrimSpace(line); {
		case status == 0 && strings.HasPrefix(line, "Logged in"):
			how, _, _ := strings.Cut(line, " - ") // part of the key follows
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

// opencodeLogin reads the logins that opencode has. The provider of its model
// decides which one it uses; that provider's key may also be in its
// configuration or in a variable.
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

const (
	maxSystemPrompt = 100_000 // bytes; it is a single argument (maxArg), and quoting may lengthen it
	maxAllowedTools = 100
)

func checkSystemPrompt(text string) error {
	switch {
	case len(text) > maxSystemPrompt:
		return fmt.Errorf("system_prompt has %d bytes: %d at most", len(text), maxSystemPrompt)
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("system_prompt may not contain NUL characters")
	}
	return nil
}

// claudeTool matches the name of a tool, of the CLI or of an MCP server, with
// an optional pattern. A match cannot be taken for an option or for two
// tools. It is compiled on first use, because that takes long.
var claudeTool = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]{0,63}|mcp__[A-Za-z0-9_.*-]{1,190})(\([^(),\x00-\x1f\x7f]{1,200}\))?$`)
})

func (c claudeRunner) CheckExtras(allowedTools []string, systemPrompt string) error {
	if len(allowedTools) > maxAllowedTools {
		return fmt.Errorf("allowed_tools has %d entries: %d at most", len(allowedTools), maxAllowedTools)
	}
	for _, tool := range allowedTools {
		name, pattern := splitTool(tool)
		switch {
		case !claudeTool().MatchString(tool):
			return fmt.Errorf("allowed_tools: %q is not the name of a tool, such as Read, Bash(git *) or mcp__server__tool", clip(tool))
		case pattern && c.opt.Permission == "bypassPermissions":
			return fmt.Errorf("allowed_tools: %q cannot be held to its pattern, because this agent runs with bypassPermissions: name %s as a whole, or leave it out", clip(tool), name)
		}
	}
	return checkSystemPrompt(systemPrompt)
}

// toolArgs makes the CLI offer only the tools that a task allows, if it names
// any, and run without asking those of them that the agent's configuration
// allows. A task never gets more than that: the permission mode belongs to
// the agent. The gateway's tools are allowed in every mode: the director
// decides what they may do.
func (c claudeRunner) toolArgs(only []string, gateway bool) []string {
	allowed := slices.Clone(c.opt.AllowedTools)
	var args []string
	if len(only) > 0 {
		args = append(args, "--tools="+strings.Join(builtin(only), ","))
		allowed = intersect(allowed, only)
	}
	switch {
	case gateway && len(only) > 0:
		allowed = append(allowed, slices.DeleteFunc(slices.Clone(only), func(tool string) bool { return !ofGateway(tool) })...)
	case gateway:
		allowed = append(allowed, "mcp__"+gatewayName)
	}
	if len(allowed) > 0 {
		args = append(args, "--allowedTools="+strings.Join(allowed, ","))
	}
	return args
}

// builtin returns the names of the CLI's own tools in a list.
func builtin(tools []string) []string {
	var names []string
	for _, tool := range tools {
		if name, _ := splitTool(tool); !strings.HasPrefix(name, "mcp__") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// intersect returns what both lists allow; a pattern is part of a tool's name.
func intersect(granted, only []string) []string {
	var both []string
	for _, g := range granted {
		for _, o := range only {
			grantedName, grantedPart := splitTool(g)
			name, part := splitTool(o)
			var pick string
			switch {
			case grantedName != name:
				continue
			case !grantedPart:
				pick = o
			case !part || o == g:
				pick = g
			default:
				continue
			}
			if !slices.Contains(both, pick) {
				both = append(both, pick)
			}
		}
	}
	return both
}

func splitTool(tool string) (name string, pattern bool) {
	name, _, pattern = strings.Cut(tool, "(")
	return name, pattern
}

// clip shortens untrusted text for a message.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
	return oneLine(s, 100)
}

// tomlString quotes text as a basic string of TOML.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

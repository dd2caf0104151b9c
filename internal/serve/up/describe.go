package up

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/agent"
)

// describe prints what people must know about an agent: its CLI, working directory and
// permissions, and whose account it uses.
func (c *local) describe(out io.Writer) {
	a := c.Config.Agent
	what := ""
	switch c.Kind {
	case "llm":
		c.describeLLM(out)
		return
	case "demo":
		what = "demo agent, which streams a few lines and touches nothing"
	case "command":
		what = "runs " + strings.Join(a.Command, " ")
	default:
		what = fmt.Sprintf("%s (%s)", cmp.Or(c.version, "version unknown"), c.found.Path)
	}
	workDir := c.workDir()
	where := "working directory " + workDir
	if a.Workspace.Kind == "worktree" {
		where = "a git worktree of " + workDir + " for each conversation"
	}
	fmt.Fprintf(out, "  %-9s %s\n", c.Name, what)
	fmt.Fprintf(out, "  %-9s   %s · HOME %s\n", "", where, homeOf(a))
	switch c.Kind {
	case "demo":
		return
	case "command":
		fmt.Fprintf(out, "  %-9s   may do all that its user may\n", "")
		return
	}
	fmt.Fprintf(out, "  %-9s   %s · %s\n", "", permissions(a), c.login.Text)
	if line := c.describeLimits(workDir); line != "" {
		fmt.Fprintf(out, "  %-9s   %s\n", "", line)
	}
}

// workDir is the agent's working folder; "" if it is not known.
func (c *local) workDir() string {
	if dir := c.Config.Agent.WorkDir; dir != "" {
		return dir
	}
	dir, _ := os.Getwd()
	return dir
}

// adviseOnFolder prints how coding agents that share a folder can work at the same time.
func adviseOnFolder(out io.Writer, agents []*local) {
	in := map[string][]string{}
	for _, a := range agents {
		if runner.SpeaksMCP(a.Kind) && a.Config.Agent.Workspace.Kind != "worktree" {
			in[a.workDir()] = append(in[a.workDir()], a.Name)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(in)) {
		if names := in[dir]; len(names) > 1 {
			fmt.Fprintf(out, "\n%s share one folder, so one run works at a time. In a git repository --workspace worktree lets them work in parallel.\n", serve.List(names))
		}
	}
}

// describeLimits says which MCP servers a CLI uses through the director's tool queues, and
// which it starts itself, outside their limits.
func (c *local) describeLimits(workDir string) string {
	cfg := c.Config
	if !runner.SpeaksMCP(c.Kind) || cfg.Tools.Empty() || cfg.Agent.Tools == "none" {
		return ""
	}
	var inside, outside []string
	for _, s := range cfg.Tools.Servers {
		inside = append(inside, s.Name)
	}
	line := c.Name + " uses " + cmp.Or(serve.List(inside), "the director's tools") + " through the tool queues"
	r, err := runner.New(c.Kind, runner.Options{ExtraArgs: cfg.Agent.Args})
	if err != nil {
		return line // the agent itself reports why it cannot start
	}
	own, err := r.OwnServers(homeOf(cfg.Agent), workDir, os.Environ())
	for _, s := range own {
		if !slices.Contains(inside, s.Name) {
			outside = append(outside, s.Name)
		}
	}
	if len(outside) > 0 {
		line += "; its own " + serve.List(outside) + " stays outside them"
	}
	if err != nil {
		line += fmt.Sprintf("; which others it starts itself is not known: %v", err)
	}
	return line
}

// describeLLM is describe for an agent of kind llm, which has no CLI and no folder, but
// a model and the tools of a gateway.
func (c *local) describeLLM(out io.Writer) {
	a := c.Config.Agent
	key := llmKeys[a.LLM.Provider]
	spends := "no account: " + key + " is not set"
	switch {
	case a.LLM.APIKey != "":
		spends = "the account of agent.llm.api_key"
	case os.Getenv(key) != "":
		spends = "the account of " + key
	case a.LLM.BaseURL != "":
		spends = "no account: it has no API key"
	}
	fmt.Fprintf(out, "  %-9s model %s (%s)\n", c.Name, cmp.Or(a.Model, "of each task"), a.LLM.Provider)
	fmt.Fprintf(out, "  %-9s   tools %s · spends %s\n", "", llmTools(a.LLM.Tools), spends)
}

func llmTools(tools string) string {
	switch tools {
	case "auto":
		return "of this director, if it has any"
	case "director":
		return "of this director"
	case "none":
		return "none"
	}
	return "of an MCP endpoint" // its URL may hold a secret
}

// llmKeys are the variables that have the key of a provider, for kind llm.
var llmKeys = map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}

// defaultPermission has the default modes of the runners: the safest that work unattended.
var defaultPermission = map[string]string{"claude": "acceptEdits", "codex": "workspace-write", "opencode": "ask (what its configuration would ask about is refused)"}

// permissions describes what a coding CLI may do without asking, as far as its agent's
// configuration says.
func permissions(a config.Agent) string {
	text := "permission mode " + cmp.Or(a.PermissionMode, defaultPermission[a.Kind])
	var flags []string // without their values, which may be secrets
	for _, arg := range a.Args {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "-") {
			flags = append(flags, name)
		}
	}
	if len(flags) > 0 {
		text += ", and what its arguments " + serve.List(flags) + " say"
	}
	return text
}

// homeOf is the home folder of an agent; "" if the environment has none.
func homeOf(a config.Agent) string {
	home, _ := os.UserHomeDir()
	return cmp.Or(a.Home, home)
}

// loginOf returns the login whose account an agent's CLI uses.
func loginOf(ctx context.Context, a config.Agent, found runner.DetectedCLI) runner.Login {
	return runner.LoginOf(ctx, a.Kind, found.Path, homeOf(a), os.Environ())
}

// Examine returns doctor's checks of the coding CLIs that signalbox up would start: those on
// PATH, and those with options in the configuration.
func Examine(ctx context.Context, cfg config.Config) []api.Check {
	found := runner.OnPath()
	for _, kind := range cfg.Kinds {
		if runner.SpeaksMCP(kind) && !slices.ContainsFunc(found, func(f runner.DetectedCLI) bool { return f.Kind == kind }) {
			found = append(found, runner.DetectedCLI{Kind: kind})
		}
	}
	checks := make([]api.Check, len(found))
	var group sync.WaitGroup
	for i, f := range found {
		group.Go(func() { checks[i] = examineCLI(ctx, cfg.For(f.Kind).Agent, f) })
	}
	group.Wait()
	return checks
}

func examineCLI(ctx context.Context, a config.Agent, found runner.DetectedCLI) api.Check {
	check := api.Check{Area: "agents", State: "fail"}
	a.Name = cmp.Or(a.Name, a.Kind)
	err := agent.CanRun(a)
	if err == nil {
		_, err = runner.New(a.Kind, agent.RunnerOptions(a))
	}
	if err != nil {
		check.Text, check.Cure = "signalbox up cannot start it: "+err.Error(), "correct it, or choose the kinds with signalbox up --agents"
		return check
	}
	login := loginOf(ctx, a, found)
	check.State = "ok"
	if login.Known && !login.In {
		check.State, check.Cure = "warn", "its tasks fail until then"
	}
	check.Text = a.Kind + ": " + permissions(a) + "; " + login.Text
	return check
}

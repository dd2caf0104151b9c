package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// defaultPermission is the runners' own, the safest that works unattended.
var defaultPermission = map[string]string{"claude": "acceptEdits", "codex": "workspace-write", "opencode": "ask (what its configuration would ask about is refused)"}

// permissions are what a coding CLI may do without asking, as far as its agent
// says.
func permissions(a config.Agent) string {
	text := "permission mode " + cmp.Or(a.PermissionMode, defaultPermission[a.Kind])
	var flags []string // without their values, which may be secrets
	for _, arg := range a.Args {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "-") {
			flags = append(flags, name)
		}
	}
	if len(flags) > 0 {
		text += ", and what its arguments " + someOf(flags) + " say"
	}
	return text
}

// loginOf is whose account the CLI of an agent spends.
func loginOf(ctx context.Context, a config.Agent, found runner.Found) runner.Login {
	return runner.LoginOf(ctx, a.Kind, found.Path, cmp.Or(a.Home, os.Getenv("HOME")), os.Environ())
}

// examineCLIs is what doctor says of the coding CLIs that signalbox up would
// start: those on PATH, and those that have options.
func examineCLIs(ctx context.Context, cfg config.Config) []api.Check {
	found := runner.Detect()
	for _, kind := range cfg.Kinds {
		if runner.SpeaksMCP(kind) && !slices.ContainsFunc(found, func(f runner.Found) bool { return f.Kind == kind }) {
			found = append(found, runner.Found{Kind: kind})
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

func examineCLI(ctx context.Context, a config.Agent, found runner.Found) api.Check {
	check := api.Check{Area: "agents", State: "fail"}
	a.Name = cmp.Or(a.Name, a.Kind)
	err := canRun(a)
	if err == nil {
		_, err = runner.New(a.Kind, runnerOptions(a))
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
